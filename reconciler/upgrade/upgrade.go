package upgrade

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/proposals"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
	"github.com/holdfast-dev/holdfast/reconciler/releases"
	"github.com/holdfast-dev/holdfast/rollout"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/document"
)

const (
	// upgradesEvery is how often the upgrades of a repository are looked at, at
	// most, however much is pushed there.
	upgradesEvery = 10 * time.Second
	// forbiddenRetry is how long it takes until a forge that did not let us push
	// is asked again: people have to do something first.
	forbiddenRetry = time.Hour

	forbiddenTrouble = "the code host does not let Holdfast push: give the App Contents: write"
)

// Store are the records that a keeper needs; *datastore.Store is one.
type Store interface {
	PullRequest(ctx context.Context, ref holdfast.PullRequestRef) (holdfast.PullRequestRecord, error)
	Upgrades(ctx context.Context, repo string) ([]rollout.Upgrade, error)
	SaveUpgrade(ctx context.Context, u rollout.Upgrade) (rollout.Upgrade, error)
}

// Git reads repositories; *gitsource.Source is one.
type Git interface {
	Tree(ctx context.Context, repo, revision string) (holdfast.Tree, error)
	IsAncestor(ctx context.Context, repo string, a, b holdfast.Revision) (bool, error)
}

// Forge is a code host that takes pull requests of ours.
type Forge interface {
	PullRequest(ctx context.Context, ref holdfast.PullRequestRef) (holdfast.PullRequest, error)
	PullRequests(ctx context.Context, repo string, since time.Time) ([]holdfast.PullRequest, error)
	Propose(ctx context.Context, repo string, p proposals.PullRequest) (holdfast.PullRequest, error)
	Withdraw(ctx context.Context, ref holdfast.PullRequestRef, branch string, head holdfast.Revision, why string) error
}

// Fleet is what a keeper asks of the reconciler.
type Fleet interface {
	// Tracked returns what the tracked branch of a repository says, and its head;
	// nil if there is no such branch.
	Tracked(ctx context.Context, repo string) (*catalog.Catalog, holdfast.Revision, error)
	// Resolve says what a document resolves to in a tree.
	Resolve(ctx context.Context, tree holdfast.Tree, doc document.Document) (*templates.Root, holdfast.Faults, error)
	// Enqueue asks for a look at a repository or a pull request.
	Enqueue(req holdfast.SourceRequest)
	Audit(ctx context.Context, actor, action, object, detail string)
}

// Repository is a repository whose clusters are upgraded.
type Repository struct {
	Name    string
	Branch  string   // the tracked one
	Groups  []string // keys of labels: the clusters that one pull request upgrades have the same values
	Further bool     // another entry of the same repository comes before
	Forge   Forge
}

// Options are what a Keeper needs. All are required.
type Options struct {
	Store        Store
	Git          Git
	Fleet        Fleet
	Repositories []Repository
	Look         func() *releases.Look  // a new one
	Leads        func(repo string) bool // this replica sees to the upgrades of a repository
	Logger       *slog.Logger
	Now          func() time.Time
}

// Keeper keeps the upgrade pull requests of all repositories what they should
// be. It is safe for concurrent use.
type Keeper struct {
	opts   Options
	repos  map[string]Repository
	asked  *queue.Lanes[string] // repositories that are to be looked at, each in its lane
	one    queue.Locks          // looks at one repository, too
	checks *upgradeChecks

	mu       sync.Mutex
	every    time.Duration
	lastLook map[string]time.Time       // by repository
	settled  map[string]settled         // what the open pull requests were last made from, by branch
	refused  map[string]refusedProposal // what forges did not take at all, by branch
}

// refusedProposal is what a forge did not take, for a reason that does not pass.
type refusedProposal struct {
	digest holdfast.Digest // empty: it was not to be closed
	at     time.Time
}

// NewKeeper returns a Keeper that has looked at nothing.
func NewKeeper(opts Options) *Keeper {
	k := &Keeper{
		opts: opts, repos: make(map[string]Repository, len(opts.Repositories)),
		asked: queue.NewLanes(func(repo string) string { return repo }), every: upgradesEvery,
		checks:   &upgradeChecks{last: make(map[string]map[upgradeCheck]holdfast.Faults)},
		lastLook: make(map[string]time.Time), settled: make(map[string]settled),
		refused: make(map[string]refusedProposal),
	}
	for _, repo := range opts.Repositories {
		k.repos[repo.Name] = repo
	}
	return k
}

// Run looks at the upgrades that are asked for until ctx is done.
func (k *Keeper) Run(ctx context.Context) error {
	defer k.asked.Close()
	return k.asked.Work(ctx, k.opts.Logger, 1, k.Look)
}

// Step works off one look that is asked for, for those who do not Run.
func (k *Keeper) Step(ctx context.Context) error {
	_, err := k.asked.Step(ctx, k.Look)
	return err
}

// Depth is how many looks are asked for.
func (k *Keeper) Depth() int { return k.asked.Depth() }

// Pace sets how often a repository is looked at, at most; ten seconds unless set.
func (k *Keeper) Pace(every time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.every = every
}

// pace is how often a repository is looked at, at most.
func (k *Keeper) pace() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.every
}

// settled is what a pull request was made from, and its outcome: another replica may have
// made something else of it since.
type settled struct{ from, proposal holdfast.Digest }

// settle remembers what the pull request of a branch was made from.
func (k *Keeper) settle(rec rollout.Upgrade, from, proposal holdfast.Digest) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.settled[rec.Repo+" "+rec.Branch] = settled{from, proposal}
}

// isSettled reports whether the pull request of a branch was made from that, and is so still.
func (k *Keeper) isSettled(rec rollout.Upgrade, from holdfast.Digest) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	last := k.settled[rec.Repo+" "+rec.Branch]
	return last.from.Equal(from) && last.proposal.Equal(rec.Digest)
}

// refuse remembers that a forge does not take a proposal.
func (k *Keeper) refuse(rec rollout.Upgrade, digest holdfast.Digest, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refused[rec.Repo+" "+rec.Branch] = refusedProposal{digest, now}
}

// refusedAt is when a forge last did not take a proposal; zero: never.
func (k *Keeper) refusedAt(rec rollout.Upgrade, digest holdfast.Digest) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	if was, ok := k.refused[rec.Repo+" "+rec.Branch]; ok && was.digest == digest {
		return was.at
	}
	return time.Time{}
}

// Ask asks for a look at the upgrades of a repository, soon.
func (k *Keeper) Ask(repo string) {
	k.mu.Lock()
	wait := k.every - time.Since(k.lastLook[repo])
	k.mu.Unlock()
	k.asked.AddAfter(repo, wait)
}

// Look makes the upgrade pull requests of a repository what they should be, if no
// other replica does.
func (k *Keeper) Look(ctx context.Context, name string) error {
	if _, ok := k.repos[name]; !ok {
		return nil
	}
	k.mu.Lock()
	k.lastLook[name] = time.Now()
	k.mu.Unlock()
	if !k.opts.Leads(name) { // who does looks when it has taken in what is new
		return nil
	}
	return k.LookAnyway(ctx, name)
}

// Forget forgets what is remembered of a repository: another replica has led it.
func (k *Keeper) Forget(repo string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.settled, func(branch string, _ settled) bool { return strings.HasPrefix(branch, repo+" ") })
	maps.DeleteFunc(k.refused, func(branch string, _ refusedProposal) bool { return strings.HasPrefix(branch, repo+" ") })
}

// LookAnyway is Look of a replica that no longer leads, as it notices only when it is done:
// records are optimistic.
func (k *Keeper) LookAnyway(ctx context.Context, name string) error {
	return k.upgrade(ctx, k.repos[name], false)
}

// upgrade brings all upgrades of a repository up to date. Somebody who has asked
// for it does not wait until trouble is looked at again.
func (k *Keeper) upgrade(ctx context.Context, repo Repository, asked bool) error {
	unlock := k.one.Lock(holdfast.Request{Cluster: repo.Name})
	defer unlock()
	records, err := k.followUpgrades(ctx, repo.Name)
	if err != nil {
		return err
	}
	cat, head, err := k.opts.Fleet.Tracked(ctx, repo.Name)
	if err != nil || cat == nil || !cat.AnyUpgrading() && len(records) == 0 {
		return err
	}
	unseen, err := k.unseenMerges(ctx, repo, head, records)
	if err != nil {
		return err
	}
	pass := &upgradePass{k: k, repo: repo, cat: cat, head: head, known: k.opts.Look(), asked: asked}
	candidates, err := k.candidates(ctx, cat, pass.known, slices.Collect(maps.Values(records)))
	if err != nil {
		return fmt.Errorf("look for upgrades of %s: %w", repo.Name, err)
	}
	wanted := wantUpgrades(repo.Groups, candidates)
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

// followUpgrades returns the records of a repository's upgrades by key, with what
// has become of their pull requests meanwhile.
func (k *Keeper) followUpgrades(ctx context.Context, repo string) (map[string]rollout.Upgrade, error) {
	list, err := k.opts.Store.Upgrades(ctx, repo)
	if err != nil {
		return nil, fmt.Errorf("list upgrades of %s: %w", repo, err)
	}
	records := make(map[string]rollout.Upgrade, len(list))
	for _, rec := range list {
		ref := holdfast.PullRequestRef{Repo: repo, Number: rec.PullRequest}
		if !Live(rec) && rec.State != rollout.UpgradeDeclined || ref.IsZero() {
			records[rec.Key] = rec
			continue
		}
		pr, err := k.opts.Store.PullRequest(ctx, ref)
		switch {
		case errors.Is(err, holdfast.ErrNotFound):
			k.opts.Fleet.Enqueue(holdfast.SourceRequest{Repo: repo, PullRequest: rec.PullRequest})
		case err != nil:
			return nil, fmt.Errorf("read pull request %s: %w", ref, err)
		default:
			if rec, err = k.ended(ctx, rec, pr.State); err != nil {
				return nil, err
			}
		}
		records[rec.Key] = rec
	}
	return records, nil
}

// mergeUnseen is how long a merge that is not on the tracked branch, as it was last
// fetched, is taken for one that is still to come.
const mergeUnseen = 10 * time.Minute

// unseenMerges returns the keys of upgrades whose merges are not on the tracked
// branch yet, as far as we know it: what they have brought would be proposed again.
func (k *Keeper) unseenMerges(
	ctx context.Context, repo Repository, head holdfast.Revision, records map[string]rollout.Upgrade,
) (map[string]bool, error) {
	unseen := make(map[string]bool)
	for key, rec := range records {
		if rec.State != rollout.UpgradeMerged || k.opts.Now().Sub(rec.UpdatedAt) > mergeUnseen {
			continue
		}
		pr, err := k.opts.Store.PullRequest(ctx, holdfast.PullRequestRef{Repo: repo.Name, Number: rec.PullRequest})
		if errors.Is(err, holdfast.ErrNotFound) || err == nil && pr.MergeCommit == "" {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("read pull request %d: %w", rec.PullRequest, err)
		}
		in, err := k.opts.Git.IsAncestor(ctx, repo.Name, pr.MergeCommit, head)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return nil, fmt.Errorf("look for the merge of %s: %w", pr.PullRequestRef, err)
		}
		if !in {
			unseen[key] = true
			k.opts.Fleet.Enqueue(holdfast.SourceRequest{Repo: repo.Name})
			k.asked.AddAfter(repo.Name, mergeUnseen)
		}
	}
	return unseen, nil
}

// Live reports whether the pull request of an upgrade may be open.
func Live(rec rollout.Upgrade) bool {
	return rec.State == rollout.UpgradeOpen || rec.State == rollout.UpgradeEdited
}

// ended records what has become of an upgrade whose pull request is in that
// state.
func (k *Keeper) ended(ctx context.Context, rec rollout.Upgrade, state holdfast.PullRequestState) (rollout.Upgrade, error) {
	switch {
	case state == holdfast.PullRequestMerged:
		rec.State = rollout.UpgradeMerged
	case rec.State == rollout.UpgradeDeclined && state == holdfast.PullRequestOpen:
		rec.State, rec.Digest = rollout.UpgradeOpen, "" // somebody has thought better of it
	case rec.State == rollout.UpgradeDeclined:
		return rec, nil
	case state != holdfast.PullRequestClosed:
		return rec, nil
	case rec.State == rollout.UpgradeOpen && len(rec.Clusters) == 0: // see withdraw
		rec.State = rollout.UpgradeObsolete
	default:
		rec.State = rollout.UpgradeDeclined
	}
	rec.Trouble = ""
	k.opts.Logger.InfoContext(ctx, "upgrade has moved on", "repo", rec.Repo, "pull_request", rec.PullRequest, "reason", rec.State)
	return k.saveUpgrade(ctx, rec)
}

func (k *Keeper) saveUpgrade(ctx context.Context, rec rollout.Upgrade) (rollout.Upgrade, error) {
	rec.UpdatedAt = k.opts.Now().UTC()
	saved, err := k.opts.Store.SaveUpgrade(ctx, rec)
	if err != nil {
		return rec, fmt.Errorf("record upgrade %q: %w", rec.Key, err)
	}
	return saved, nil
}
