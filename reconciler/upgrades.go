package reconciler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/releases"
)

// Clusters whose documents allow newer versions of their template (`upgrades`)
// are proposed to be moved to them, by pull requests of ours in their own
// repository. Which there shall be is derived from the tracked branch and the tags
// each time; the records say which there are. What a pull request shall be is
// recorded before the forge is asked for it, and its branch follows from that: a
// crash in between makes no second one.

const (
	// upgradesEvery is how often the upgrades of a repository are looked at, at
	// most, however much is pushed there.
	upgradesEvery = 10 * time.Second
	// upgradesLease is how long a replica has a repository's upgrades to itself.
	// One that works on longer than that does no harm: records are optimistic.
	upgradesLease = time.Minute
	// forbiddenRetry is how long it takes until a forge that did not let us push
	// is asked again: people have to do something first.
	forbiddenRetry = time.Hour

	forbiddenTrouble = "the forge does not let Holdfast push: give the App Contents: write"
)

// upgrader is what a Reconciler remembers of upgrades.
type upgrader struct {
	every  time.Duration
	one    striped // looks at one repository's upgrades, too
	checks *upgradeChecks

	mu      sync.Mutex
	looked  map[string]time.Time       // by repository
	settled map[string]holdfast.Digest // what the open pull requests were last made from, by branch
	refused map[string]refusedProposal // what forges did not take at all, by branch
}

// refusedProposal is what a forge did not take, for a reason that does not pass.
type refusedProposal struct {
	digest holdfast.Digest // empty: it was not to be closed
	at     time.Time
}

func newUpgrader() *upgrader {
	return &upgrader{
		every:  upgradesEvery,
		checks: &upgradeChecks{last: make(map[string]map[upgradeCheck]holdfast.Faults)},
		looked: make(map[string]time.Time), settled: make(map[string]holdfast.Digest),
		refused: make(map[string]refusedProposal),
	}
}

// settle remembers what the pull request of a branch was made from.
func (u *upgrader) settle(rec holdfast.Upgrade, from holdfast.Digest) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.settled[rec.Repo+" "+rec.Branch] = from
}

// isSettled reports whether the pull request of a branch was made from that.
func (u *upgrader) isSettled(rec holdfast.Upgrade, from holdfast.Digest) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.settled[rec.Repo+" "+rec.Branch].Equal(from)
}

// refuse remembers that a forge does not take a proposal.
func (u *upgrader) refuse(rec holdfast.Upgrade, digest holdfast.Digest, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.refused[rec.Repo+" "+rec.Branch] = refusedProposal{digest, now}
}

// refusedAt is when a forge last did not take a proposal; zero: never.
func (u *upgrader) refusedAt(rec holdfast.Upgrade, digest holdfast.Digest) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	if was, ok := u.refused[rec.Repo+" "+rec.Branch]; ok && was.digest == digest {
		return was.at
	}
	return time.Time{}
}

// askUpgrades asks for a look at the upgrades of a repository, soon.
func (r *Reconciler) askUpgrades(repo string) {
	r.upgrader.mu.Lock()
	wait := r.upgrader.every - time.Since(r.upgrader.looked[repo])
	r.upgrader.mu.Unlock()
	r.upgrades.AddAfter(repo, wait)
}

// lookAtUpgrades makes the upgrade pull requests of a repository what they shall
// be, if no other replica does.
func (r *Reconciler) lookAtUpgrades(ctx context.Context, name string) error {
	repo, ok := r.repos[name]
	if !ok {
		return nil
	}
	r.upgrader.mu.Lock()
	r.upgrader.looked[name] = time.Now()
	r.upgrader.mu.Unlock()
	ours, err := r.opts.Store.Lease(ctx, "upgrades:"+name, r.opts.Identity, r.opts.Now(), upgradesLease)
	if err != nil {
		return fmt.Errorf("lease the upgrades of %s: %w", name, err)
	}
	if !ours { // the other may not have heard of what is asked for here
		r.upgrades.AddAfter(name, upgradesLease/2)
		return nil
	}
	return r.upgrade(ctx, repo, false)
}

// upgrade brings all upgrades of a repository up to date. Somebody who has asked
// for it does not wait until trouble is looked at again.
func (r *Reconciler) upgrade(ctx context.Context, repo Repository, asked bool) error {
	unlock := r.upgrader.one.lock(holdfast.Request{Cluster: repo.Name})
	defer unlock()
	records, err := r.followUpgrades(ctx, repo.Name)
	if err != nil {
		return err
	}
	cat, head, err := r.trackedCatalog(ctx, repo)
	if err != nil || cat == nil || !cat.AnyUpgrading() && len(records) == 0 {
		return err
	}
	unseen, err := r.unseenMerges(ctx, repo, head, records)
	if err != nil {
		return err
	}
	pass := &upgradePass{r: r, repo: repo, cat: cat, head: head, known: releases.NewLook(r.releases, r.resolver), asked: asked}
	candidates, err := r.candidates(ctx, cat, pass.known, slices.Collect(maps.Values(records)))
	if err != nil {
		return fmt.Errorf("look for upgrades of %s: %w", repo.Name, err)
	}
	wanted := wantUpgrades(repo.UpgradeGroups, candidates)
	keys := make(map[string]bool)
	for key := range wanted {
		keys[key] = true
	}
	for key := range records {
		keys[key] = true
	}
	var errs []error // of one that does not work all others do
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if unseen[key] {
			continue
		}
		if err := pass.bring(ctx, records[key], wanted[key]); err != nil {
			errs = append(errs, fmt.Errorf("upgrade %s of %s: %w", key, repo.Name, err))
		}
	}
	return errors.Join(errs...)
}

// trackedCatalog returns what the tracked branch says, and its head; nil if there
// is no such branch.
func (r *Reconciler) trackedCatalog(ctx context.Context, repo Repository) (*catalog.Catalog, holdfast.Revision, error) {
	refs, err := r.releases.Refs(ctx, repo.Name)
	if err != nil {
		return nil, "", err
	}
	head := refs["refs/heads/"+repo.Branch]
	if head == "" {
		return nil, "", nil
	}
	cat, err := r.catalogs.Read(ctx, repo.Name, string(head))
	return cat, head, err
}

// followUpgrades returns the records of a repository's upgrades by key, with what
// has become of their pull requests meanwhile.
func (r *Reconciler) followUpgrades(ctx context.Context, repo string) (map[string]holdfast.Upgrade, error) {
	list, err := r.opts.Store.Upgrades(ctx, repo)
	if err != nil {
		return nil, fmt.Errorf("list upgrades of %s: %w", repo, err)
	}
	records := make(map[string]holdfast.Upgrade, len(list))
	for _, rec := range list {
		ref := holdfast.PullRequestRef{Repo: repo, Number: rec.PullRequest}
		if !live(rec) && rec.State != holdfast.UpgradeDeclined || ref.IsZero() {
			records[rec.Key] = rec
			continue
		}
		pr, err := r.opts.Store.PullRequest(ctx, ref)
		switch {
		case errors.Is(err, holdfast.ErrNotFound):
			r.sources.Add(sourceKey{repo: repo, number: rec.PullRequest})
		case err != nil:
			return nil, fmt.Errorf("read pull request %s: %w", ref, err)
		default:
			if rec, err = r.ended(ctx, rec, pr.State); err != nil {
				return nil, err
			}
		}
		records[rec.Key] = rec
	}
	return records, nil
}

// mergeUnseen is for how long a merge that is not on the tracked branch, as it was
// last fetched, is taken for one that is still to come.
const mergeUnseen = 10 * time.Minute

// unseenMerges returns the keys of upgrades whose merges are not on the tracked
// branch yet, as far as we know it: what they have brought would be proposed again.
func (r *Reconciler) unseenMerges(
	ctx context.Context, repo Repository, head holdfast.Revision, records map[string]holdfast.Upgrade,
) (map[string]bool, error) {
	unseen := make(map[string]bool)
	for key, rec := range records {
		if rec.State != holdfast.UpgradeMerged || r.opts.Now().Sub(rec.UpdatedAt) > mergeUnseen {
			continue
		}
		pr, err := r.opts.Store.PullRequest(ctx, holdfast.PullRequestRef{Repo: repo.Name, Number: rec.PullRequest})
		if errors.Is(err, holdfast.ErrNotFound) || err == nil && pr.MergeCommit == "" {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("read pull request %d: %w", rec.PullRequest, err)
		}
		in, err := r.opts.Git.IsAncestor(ctx, repo.Name, pr.MergeCommit, head)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return nil, fmt.Errorf("look for the merge of %s: %w", pr.PullRequestRef, err)
		}
		if !in {
			unseen[key] = true
			r.sources.Add(sourceKey{repo: repo.Name})
			r.upgrades.AddAfter(repo.Name, mergeUnseen)
		}
	}
	return unseen, nil
}

// live reports whether the pull request of an upgrade may be open.
func live(rec holdfast.Upgrade) bool {
	return rec.State == holdfast.UpgradeOpen || rec.State == holdfast.UpgradeEdited
}

// ended records what has become of an upgrade whose pull request is in that
// state.
func (r *Reconciler) ended(ctx context.Context, rec holdfast.Upgrade, state holdfast.PullRequestState) (holdfast.Upgrade, error) {
	switch {
	case state == holdfast.PullRequestMerged:
		rec.State = holdfast.UpgradeMerged
	case rec.State == holdfast.UpgradeDeclined && state == holdfast.PullRequestOpen:
		rec.State, rec.Digest = holdfast.UpgradeOpen, "" // somebody has thought better of it
	case rec.State == holdfast.UpgradeDeclined:
		return rec, nil
	case state != holdfast.PullRequestClosed:
		return rec, nil
	case rec.State == holdfast.UpgradeOpen && len(rec.Clusters) == 0: // see withdraw
		rec.State = holdfast.UpgradeObsolete
	default:
		rec.State = holdfast.UpgradeDeclined
	}
	rec.Trouble = ""
	r.opts.Logger.InfoContext(ctx, "upgrade has moved on", "repo", rec.Repo, "pull_request", rec.PullRequest, "reason", rec.State)
	return r.saveUpgrade(ctx, rec)
}

func (r *Reconciler) saveUpgrade(ctx context.Context, rec holdfast.Upgrade) (holdfast.Upgrade, error) {
	rec.UpdatedAt = r.opts.Now().UTC()
	saved, err := r.opts.Store.SaveUpgrade(ctx, rec)
	if err != nil {
		return rec, fmt.Errorf("record upgrade %q: %w", rec.Key, err)
	}
	return saved, nil
}
