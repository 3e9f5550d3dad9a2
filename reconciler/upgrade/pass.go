package upgrade

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/proposals"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/releases"
	"github.com/holdfast-dev/holdfast/report"
	"github.com/holdfast-dev/holdfast/rollout"
)

// upgradePass is one look at the upgrades of a repository.
type upgradePass struct {
	k     *Keeper
	repo  Repository
	cat   *catalog.Catalog
	head  holdfast.Revision
	known *releases.Look
	asked bool
}

// bring updates one pull request to what it should be.
func (p *upgradePass) bring(ctx context.Context, rec rollout.Upgrade, wanted *wantedUpgrade) error {
	var files map[string][]byte
	var from holdfast.Digest
	if wanted != nil {
		// To edit thousands of files again only to find that nothing has changed
		// would take longer than all the rest.
		from = madeFrom(p.cat, wanted)
		if rec.State == rollout.UpgradeOpen && p.k.isSettled(rec, from) {
			if done, err := p.asProposed(ctx, rec, rec.Digest); err != nil || done {
				return err
			}
		}
		var err error
		if files, err = editsFor(p.cat, wanted); err != nil {
			return err
		}
	}
	switch judgeUpgrade(rec, wanted) {
	case upgradePropose:
		return p.propose(ctx, rec, wanted, files, from)
	case upgradeWithdraw:
		if unclear(p.cat, rec) {
			return nil
		}
		return p.withdraw(ctx, rec, wanted)
	default:
		return nil
	}
}

// propose makes or updates a pull request, unless it is on the forge already as
// it is wanted.
func (p *upgradePass) propose(
	ctx context.Context, rec rollout.Upgrade, w *wantedUpgrade, files map[string][]byte, from holdfast.Digest,
) error {
	told, err := p.describe(ctx, w)
	if err != nil {
		return err
	}
	if rec.State != rollout.UpgradeOpen {
		rec = nextUpgrade(p.repo, w, rec)
	}
	proposal := proposals.PullRequest{
		Branch: rec.Branch, Base: p.head, BaseBranch: p.repo.Branch, Files: files, Head: rec.Head,
		Title: report.UpgradeTitle(told), Message: report.UpgradeMessage(told), Body: report.UpgradeBody(told),
		Labels: []string{upgradeLabel},
	}
	digest := proposalDigest(proposal)
	if done, err := p.asProposed(ctx, rec, digest); err != nil || done {
		if done {
			p.k.settle(rec, from, digest)
		}
		return err
	}
	if wait := p.forbidden(rec, digest); wait > 0 {
		p.k.asked.AddAfter(p.repo.Name, wait)
		return nil
	}
	if p.sameFiles(ctx, rec, files) {
		proposal.Base = rec.Base // only the description is new: no new commit for that
	}
	// From here on a commit of ours may be on the branch without our knowing.
	intent := rec
	intent.Clusters, intent.By, intent.Head, intent.Digest = w.clusters, w.by, "", ""
	if !sameUpgrade(intent, rec) || rec.Version == 0 {
		if intent, err = p.k.saveUpgrade(ctx, intent); err != nil {
			return err
		}
	}
	pr, err := p.repo.Forge.Propose(ctx, p.repo.Name, proposal)
	if err != nil {
		return p.notProposed(ctx, intent, digest, err)
	}
	if pr.State == holdfast.PullRequestOpen {
		p.k.settle(intent, from, digest)
	}
	return p.proposed(ctx, intent, pr, proposal.Base, digest)
}

// answerOverlap is how far a look at a forge's pull requests reaches back before
// what was recorded: clocks differ, and lists lag.
const answerOverlap = 2 * time.Minute

// upgradeLabel is on every upgrade's pull request.
const upgradeLabel = "holdfast-upgrade"

// describe is what a pull request says.
func (p *upgradePass) describe(ctx context.Context, w *wantedUpgrade) (report.Upgrade, error) {
	u := report.Upgrade{
		Template: w.template, Group: w.group, By: w.by, Clusters: w.clusters, Left: w.left, Held: w.held,
		Steps: versionPairs(w.clusters),
	}
	const most = 10 // of more nobody reads
	u.Steps = u.Steps[:min(len(u.Steps), most)]
	for i := range u.Steps {
		if err := compare(ctx, p.known, w.template, &u.Steps[i]); err != nil {
			return u, fmt.Errorf("compare %s with %s: %w", u.Steps[i].From, u.Steps[i].To, err)
		}
	}
	return u, nil
}

// proposalDigest is of what a proposal is, whatever its base.
func proposalDigest(p proposals.PullRequest) holdfast.Digest {
	d := holdfast.NewDigester("proposal")
	d.Add(p.Branch, p.BaseBranch, p.Message, p.Title, p.Body, strings.Join(p.Labels, "\n"))
	for _, path := range slices.Sorted(maps.Keys(p.Files)) {
		d.Add(path, string(p.Files[path]))
	}
	return d.Digest()
}

// asProposed reports whether a pull request is on the forge as it is wanted, and
// nobody else has pushed to it as far as is known.
func (p *upgradePass) asProposed(ctx context.Context, rec rollout.Upgrade, digest holdfast.Digest) (bool, error) {
	if rec.PullRequest == 0 || !rec.Digest.Equal(digest) || rec.Trouble != "" {
		return false, nil
	}
	pr, err := p.k.opts.Store.PullRequest(ctx, holdfast.PullRequestRef{Repo: rec.Repo, Number: rec.PullRequest})
	if errors.Is(err, holdfast.ErrNotFound) {
		return true, nil
	} else if err != nil {
		return false, fmt.Errorf("read pull request %d: %w", rec.PullRequest, err)
	}
	return pr.Head == rec.Head, nil
}

// forbidden is how long not to ask a forge that did not let us push, or refused the
// same proposal.
func (p *upgradePass) forbidden(rec rollout.Upgrade, digest holdfast.Digest) time.Duration {
	at := p.k.refusedAt(rec, digest)
	if rec.Trouble == forbiddenTrouble {
		at = rec.UpdatedAt
	}
	if p.asked || at.IsZero() {
		return 0
	}
	return forbiddenRetry - p.k.opts.Now().Sub(at)
}

// sameFiles reports whether the files that an upgrade edits are on the tracked branch
// as they were at the base of its last commit, and that commit edits them in the same
// way.
func (p *upgradePass) sameFiles(ctx context.Context, rec rollout.Upgrade, files map[string][]byte) bool {
	if rec.PullRequest == 0 || rec.Base == "" {
		return false
	}
	base, err := p.k.opts.Git.Tree(ctx, p.repo.Name, string(rec.Base))
	if err != nil {
		return false
	}
	for path := range files {
		then, errThen := base.Hash(path)
		now, errNow := p.cat.Tree.Hash(path)
		if errThen != nil || errNow != nil || then != now {
			return false
		}
	}
	return true
}

// sameUpgrade reports whether there is nothing to record.
func sameUpgrade(a, b rollout.Upgrade) bool {
	return slices.Equal(a.Clusters, b.Clusters) && a.By == b.By && a.Head == b.Head && a.Digest == b.Digest &&
		a.Branch == b.Branch && a.State == b.State
}

// proposed records the pull request that the forge has made or brought up to
// date.
func (p *upgradePass) proposed(
	ctx context.Context, rec rollout.Upgrade, pr holdfast.PullRequest, base holdfast.Revision, digest holdfast.Digest,
) error {
	rec.PullRequest, rec.URL, rec.Trouble = pr.Number, pr.URL, ""
	if pr.State == holdfast.PullRequestOpen {
		rec.Base, rec.Head, rec.Digest = base, pr.Head, digest
		if _, err := p.k.saveUpgrade(ctx, rec); err != nil {
			return err
		}
		p.k.opts.Logger.InfoContext(ctx, "upgrade was proposed", "repo", rec.Repo, "pull_request", pr.Number, "action", rec.Key)
	} else if _, err := p.k.ended(ctx, rec, pr.State); err != nil {
		return err
	}
	p.k.opts.Fleet.Enqueue(holdfast.SourceRequest{Repo: rec.Repo, PullRequest: pr.Number})
	if pr.State == holdfast.PullRequestMerged {
		p.k.opts.Fleet.Enqueue(holdfast.SourceRequest{Repo: rec.Repo}) // what it brought is not seen yet
	}
	return nil
}

// notProposed records why a pull request is not as it is wanted. The digest is of what
// the forge refused.
func (p *upgradePass) notProposed(ctx context.Context, rec rollout.Upgrade, digest holdfast.Digest, cause error) error {
	refused := errors.Is(cause, holdfast.ErrForbidden) || errors.Is(cause, holdfast.ErrRejected)
	switch {
	case errors.Is(cause, holdfast.ErrConflict):
		rec.State, rec.Trouble = rollout.UpgradeEdited, "somebody else has pushed to branch "+rec.Branch+": it is left alone"
		if rec.PullRequest == 0 {
			return p.occupied(ctx, rec)
		}
	case errors.Is(cause, holdfast.ErrForbidden):
		rec.Trouble = forbiddenTrouble
	default:
		rec.Trouble = cause.Error()
		p.k.opts.Fleet.Enqueue(holdfast.SourceRequest{Repo: p.repo.Name}) // what is proposed may be there by now
	}
	p.k.opts.Logger.WarnContext(ctx, "upgrade was not proposed", "repo", rec.Repo, "action", rec.Key, "err", cause)
	if _, err := p.k.saveUpgrade(ctx, rec); err != nil {
		return errors.Join(cause, err)
	}
	switch {
	case rec.State == rollout.UpgradeEdited:
	case !refused:
		return fmt.Errorf("propose: %w", cause)
	default:
		// To ask for the same again and again would use up what all others need.
		p.k.refuse(rec, digest, p.k.opts.Now())
		p.k.asked.AddAfter(p.repo.Name, forbiddenRetry)
	}
	return nil
}

// occupied records that somebody has a branch of the name that ours would have. One
// without a pull request is not an answer to ours: the next look uses another name.
func (p *upgradePass) occupied(ctx context.Context, rec rollout.Upgrade) error {
	pr, err := p.present(ctx, p.repo.Forge, rec)
	switch {
	case err == nil && pr.State == holdfast.PullRequestOpen:
		rec.PullRequest, rec.URL = pr.Number, pr.URL
	case err == nil || errors.Is(err, holdfast.ErrNotFound):
		p.k.asked.AddAfter(p.repo.Name, p.k.pace())
	default:
		return err
	}
	p.k.opts.Logger.WarnContext(ctx, "upgrade was not proposed", "repo", rec.Repo, "action", rec.Key, "reason", rec.Trouble)
	_, err = p.k.saveUpgrade(ctx, rec)
	return err
}

// withdraw closes a pull request in which nothing is left to propose.
func (p *upgradePass) withdraw(ctx context.Context, rec rollout.Upgrade, w *wantedUpgrade) error {
	if wait := p.forbidden(rec, ""); wait > 0 {
		p.k.asked.AddAfter(p.repo.Name, wait)
		return nil
	}
	forge := p.repo.Forge
	pr, err := p.present(ctx, forge, rec)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		rec.State, rec.Trouble = rollout.UpgradeObsolete, ""
		_, err = p.k.saveUpgrade(ctx, rec)
		return err
	case err != nil:
		return err
	}
	rec.PullRequest, rec.URL = pr.Number, pr.URL
	if pr.State != holdfast.PullRequestOpen {
		_, err = p.k.ended(ctx, rec, pr.State)
		return err
	}
	if rec.Head != "" && pr.Head != rec.Head {
		return p.notProposed(ctx, rec, "", holdfast.ErrConflict)
	}
	why := withdrawal(p.cat, rec, w)
	// Without clusters we close it, even if a crash follows.
	rec.Clusters = nil
	if rec, err = p.k.saveUpgrade(ctx, rec); err != nil {
		return err
	}
	err = forge.Withdraw(ctx, pr.PullRequestRef, rec.Branch, rec.Head, why)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return p.notProposed(ctx, rec, "", fmt.Errorf("withdraw pull request %d: %w", pr.Number, err))
	}
	rec.State, rec.Trouble = rollout.UpgradeObsolete, ""
	if _, err = p.k.saveUpgrade(ctx, rec); err != nil {
		return err
	}
	p.k.opts.Logger.InfoContext(ctx, "upgrade was withdrawn", "repo", rec.Repo, "pull_request", pr.Number, "action", rec.Key)
	p.k.opts.Fleet.Enqueue(holdfast.SourceRequest{Repo: rec.Repo, PullRequest: pr.Number})
	return nil
}

// present asks the forge for the pull request of an upgrade as it is now; also
// for one that was made and whose answer was lost. ErrNotFound if there is none.
func (p *upgradePass) present(ctx context.Context, forge Forge, rec rollout.Upgrade) (holdfast.PullRequest, error) {
	if rec.PullRequest != 0 {
		pr, err := forge.PullRequest(ctx, holdfast.PullRequestRef{Repo: rec.Repo, Number: rec.PullRequest})
		if err != nil {
			return pr, fmt.Errorf("ask for pull request %d: %w", rec.PullRequest, err)
		}
		return pr, nil
	}
	list, err := forge.PullRequests(ctx, rec.Repo, rec.UpdatedAt.Add(-answerOverlap))
	if err != nil {
		return holdfast.PullRequest{}, fmt.Errorf("list pull requests: %w", err)
	}
	for _, pr := range list {
		if pr.Branch == rec.Branch && !pr.Fork {
			return pr, nil
		}
	}
	return holdfast.PullRequest{}, holdfast.ErrNotFound
}

// withdrawal says why nothing is left to propose.
func withdrawal(cat *catalog.Catalog, rec rollout.Upgrade, w *wantedUpgrade) string {
	if w != nil && len(w.left) > 0 {
		return report.UpgradeWithdrawn(w.left, "")
	}
	for _, c := range rec.Clusters {
		if doc, ok := upgradable(cat, c.Name); ok && doc.Cluster.Template.Name == rec.Template && doc.Cluster.Template.Version == c.From {
			return report.UpgradeWithdrawn(nil, c.To)
		}
	}
	return report.UpgradeWithdrawn(nil, "")
}
