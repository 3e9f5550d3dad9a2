package reconciler

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/gate"
	"github.com/holdfast-dev/holdfast/reconciler/history"
)

// refusals say in words why a command is not done.
var refusals = map[string]string{
	decision.ReasonNotMerged:      "it is not merged yet: an apply follows the merge",
	decision.ReasonUpToDate:       upToDate,
	decision.ReasonSuspended:      "it is suspended: `holdfast resume` first",
	decision.ReasonStateUnsaved:   "an apply could not save its state, which is to be pushed first: see `holdfast state`",
	decision.ReasonInProgress:     "a run is queued or running already",
	decision.ReasonStateMoved:     "the state was written since the check for drift: `holdfast drift check` first",
	decision.ReasonPlanMoved:      "there is a newer plan than the one that was shown: look at it, then ask again",
	decision.ReasonNothingPlanned: "there is nothing to approve yet: `/holdfast plan` first",
	decision.ReasonAgentSilent:    "an apply is running whose agent is not heard of: `/holdfast unlock` ends it",
	decision.ReasonWindowClosed:   "its apply windows allow no apply now",
	decision.ReasonSuperseded:     "a run of an older revision is ending: ask again in a moment",
	decision.ReasonNotApproved:    "it needs an approval first, by an approving review or `/holdfast approve`",
	decision.ReasonInvalid:        "its document has faults",
	decision.ReasonDestroyed:      "it is gone: there is nothing to do",
	decision.ReasonProtected:      "it is protected",
	decision.ReasonMissing:        "its document is not there, and nothing proves that it was removed",
	decision.ReasonHasDependents:  "clusters that depend on it are still there",

	decision.ReasonDependencyPending: "a cluster that it depends on is to be applied first",
	decision.ReasonDependencyFailed:  "the apply of a cluster that it depends on has failed",
	decision.ReasonDependencyMissing: "it depends on a cluster that is not there",
	decision.ReasonFork:              "plans of pull requests from forks are switched off",
	decision.ReasonDraft:             "plans of drafts are switched off",
	decision.ReasonNotMergeable:      "the code host did not say that it could be merged; `/holdfast approve` stands for it",
	decision.ReasonClosed:            "the pull request is closed",
	decision.ReasonNotAffected:       "the pull request does not change it",
}

// approve records that a head may be applied, and lets what waited for that go
// on. Without a pull request it is the word to apply what waits.
func (r *Reconciler) approve(ctx context.Context, c holdfast.Command, targets []target) (string, error) {
	pr := targets[0].pr
	if pr == nil {
		return r.each(ctx, &c, targets, r.approveCluster)
	}
	switch {
	case !c.Trusted && strings.EqualFold(c.Author, pr.Author):
		return "", refusal("you cannot approve your own pull request; ask someone else with write permission")
	case c.CommentID != "" && c.ShownHead != pr.Head:
		return "", refusal("the head has moved, or another plan is shown, since this was written: look at it again")
	case c.CommentID != "" && len(c.Shown) == 0:
		return "", refusal("no plan was shown yet when this was written: wait for it, and look at it")
	}
	now, err := r.gates.Fresh(ctx, *pr)
	if err != nil {
		return "", err
	}
	if by := gate.Objectors(now); len(by) > 0 {
		return "", refusal(strings.Join(by, " and ") + " requested changes in a review: only their next review, or its dismissal, ends that")
	}
	if err := r.addApproval(ctx, pr.PullRequestRef, pr.Head, c, c.Shown); err != nil {
		return "", err
	}
	r.publish.Show(pr.PullRequestRef)
	for _, t := range targets {
		r.requests.Add(holdfast.Request{Cluster: t.cluster})
	}
	return "", nil
}

func (r *Reconciler) approveCluster(ctx context.Context, c holdfast.Command, t target) (string, error) {
	rec, err := r.opts.Store.Cluster(ctx, t.cluster)
	if err != nil {
		return "", fmt.Errorf("read cluster %q: %w", t.cluster, err)
	}
	runs, err := history.Branch(ctx, r.opts.Store, t.cluster)
	if err != nil {
		return "", err
	}
	merges, err := r.merges(ctx, rec, runs)
	if err != nil {
		return "", err
	}
	for _, merge := range merges {
		if merge.Approved && merge.Mergeable {
			continue
		}
		pr, err := r.opts.Store.PullRequest(ctx, merge.Review.PullRequest)
		if err != nil {
			return "", fmt.Errorf("read pull request %s: %w", merge.Review.PullRequest, err)
		}
		var seen []string // what waits is what is approved
		for _, run := range []string{merge.Review.Run, decision.Newest(runs).ID} {
			if run != "" {
				seen = append(seen, run)
			}
		}
		if err := r.addApproval(ctx, pr.PullRequestRef, pr.Head, c, seen); err != nil {
			return "", err
		}
	}
	if rec.Waiting != decision.ReasonNotApproved && rec.Waiting != decision.ReasonNotMergeable {
		return r.applyFor(ctx, c, t)
	}
	r.requests.Add(holdfast.Request{Cluster: t.cluster})
	return "approved", nil
}

// addApproval records a command's approval of what runs have planned.
func (r *Reconciler) addApproval(
	ctx context.Context, ref holdfast.PullRequestRef, head holdfast.Revision, c holdfast.Command, runs []string,
) error {
	approval := holdfast.Approval{By: c.Author, Head: head, At: c.CreatedAt.UTC(), Runs: runs, CommentID: c.CommentID, Said: c.Said}
	for {
		pr, err := r.opts.Store.PullRequest(ctx, ref)
		if err != nil {
			return fmt.Errorf("read pull request %s: %w", ref, err)
		}
		pr.Approvals = append(pr.Approvals, approval)
		_, err = r.opts.Store.SavePullRequest(ctx, pr)
		if !errors.Is(err, holdfast.ErrConflict) {
			return err
		}
	}
}
