package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/history"
)

func (h *Handler) planFor(ctx context.Context, c holdfast.Command, t target) (string, error) {
	req := holdfast.Request{Cluster: t.cluster}
	if t.pr != nil && t.pr.State != holdfast.PullRequestMerged {
		req.PullRequest = t.pr.PullRequestRef
	}
	return h.decideFor(ctx, req, &decision.Ask{Verb: holdfast.VerbPlan, Actor: c.Author})
}

// errMoved refuses what was said of another head, or of another plan.
var errMoved error = reasoned{
	"the head has moved, or another plan is shown, since this was written: look at it again", holdfast.ReasonPlanMoved,
}

// applyFor applies the plan that our comment showed when the command was
// written. A head or a plan that has moved since is not what was meant.
func (h *Handler) applyFor(ctx context.Context, c holdfast.Command, t target) (string, error) {
	req := holdfast.Request{Cluster: t.cluster}
	if t.pr != nil {
		switch {
		case t.pr.State != holdfast.PullRequestMerged:
			return "", refuseFor(holdfast.ReasonNotMerged, "")
		case c.CommentID != "" && c.ShownHead != t.pr.Head:
			return "", errMoved
		}
	}
	runs, err := history.Branch(ctx, h.opts.Store, t.cluster)
	if err != nil {
		return "", err
	}
	switch run := decision.Newest(runs); {
	case queuedBefore(c, t, run) && run.Shown != "":
		return queuedOf(run.Shown), nil
	case queuedBefore(c, t, run):
		return "apply queued", nil
	}
	ask := decision.Ask{Verb: holdfast.VerbApply, Actor: c.Author, Person: c.Person}
	if t.pr != nil {
		ask.PullRequest, ask.Removes = t.pr.PullRequestRef, slices.ContainsFunc(t.pr.Clusters, decision.Removes(t.cluster))
	}
	last, err := h.Drift.ShownPlan(ctx, t.cluster, runs)
	if err != nil {
		return "", err
	}
	if c.Trusted { // a comment is about what its pull request shows
		ask.Seen = c.Shown
	}
	asked := slices.Contains(c.Shown, last.ID)
	if asked {
		ask.Run = last.ID
	}
	reply, err := h.decideFor(ctx, req, &ask)
	if err == nil && last.Reason == holdfast.ReasonMayExist && reply == queuedOf(last.ID) {
		reply += ": what it creates " + last.Detail
	}
	switch moved := errors.Is(err, refuseFor(holdfast.ReasonPlanMoved, "")); {
	case !moved || asked || last.ID == "":
	case c.Trusted && c.Shown == nil: // what was reviewed before a merge needs no name
		err = refuseFor(holdfast.ReasonUnreviewed, "the request has to name it (`shown`): `"+last.ID+"`")
	default:
		err = refuseFor(holdfast.ReasonPlanMoved, "the newest is `"+last.ID+"`")
	}
	return reply, err
}

// decideFor reconciles with a person's word and says its outcome.
func (h *Handler) decideFor(ctx context.Context, req holdfast.Request, ask *decision.Ask) (string, error) {
	if err := h.watched(ctx, req); err != nil {
		return "", err
	}
	for {
		d, err := h.Decider.Reconcile(ctx, req, ask)
		switch {
		case errors.Is(err, holdfast.ErrConflict):
			continue
		case err != nil:
			return "", err
		case d.Action == decision.ActionRecord || d.Action == decision.ActionDrift || d.Action == decision.ActionCarry || d.Action == decision.ActionNone && d.After > 0:
			continue // the record had to catch up first
		case d.Action == decision.ActionPlan:
			return "plan queued", nil
		case d.Action == decision.ActionApply && d.Shown != "":
			return queuedOf(d.Shown), nil
		case d.Action == decision.ActionApply:
			return "apply queued", nil
		case d.Confirmed != "":
			return "it is destroyed when those that depend on it are gone: " + d.Detail, nil
		}
		if d.Reason == holdfast.ReasonUpToDate && ask.Verb == holdfast.VerbApply {
			return "", errUpToDate
		}
		return "", refuseFor(d.Reason, d.Detail)
	}
}

// queuedOf is the answer to who had a plan applied that a run has made.
func queuedOf(run string) string { return "apply queued, of exactly the plan of `" + run + "`" }

// errIdle refuses to cancel nothing. People who cancel many clusters want just that.
var errIdle error = refusal("nothing is queued or running")

// cancelFor stops what is queued or running for a cluster: the plans of the
// pull request or, merged, the applies that follow from it.
func (h *Handler) cancelFor(ctx context.Context, c holdfast.Command, t target) (string, error) {
	filter := holdfast.RunFilter{Cluster: t.cluster, Statuses: []holdfast.RunStatus{
		holdfast.RunQueued, holdfast.RunRetrying, holdfast.RunRunning,
	}}
	if t.pr != nil && t.pr.State != holdfast.PullRequestMerged {
		filter.PullRequest = &t.pr.PullRequestRef
	} else if t.pr != nil {
		filter.PullRequest = &holdfast.PullRequestRef{}
	}
	runs, err := h.opts.Store.Runs(ctx, filter)
	if err != nil {
		return "", fmt.Errorf("list runs of %q: %w", t.cluster, err)
	}
	if t.pr != nil && t.pr.State == holdfast.PullRequestMerged { // not what follows from others
		runs = slices.DeleteFunc(runs, func(run holdfast.Run) bool {
			return run.Kind != holdfast.RunPlan && !run.StandsFor(t.pr.PullRequestRef)
		})
	}
	if c.Trusted && len(c.Shown) > 0 { // these runs, and no others
		runs = slices.DeleteFunc(runs, func(run holdfast.Run) bool { return !slices.Contains(c.Shown, run.ID) })
	}
	if len(runs) == 0 {
		return "", errIdle
	}
	if !slices.ContainsFunc(runs, func(run holdfast.Run) bool { return run.Cancel != holdfast.ReasonCanceled }) {
		return canceled(len(runs)) + " already, and " + isOrAre(len(runs)) + " about to end", nil
	}
	for _, run := range runs {
		if err := h.Records.CancelBy(ctx, run.ID, c.Author); err != nil {
			return "", err
		}
		h.Records.Audit(ctx, c.Author, "run.cancel", run.ID, t.cluster)
	}
	return canceled(len(runs)), nil
}

func canceled(runs int) string {
	if runs == 1 {
		return "1 run canceled"
	}
	return fmt.Sprintf("%d runs canceled", runs)
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// watched refuses what nothing can come of: the repository that says what a
// cluster should be is no longer in the configuration.
func (h *Handler) watched(ctx context.Context, req holdfast.Request) error {
	rec, err := h.opts.Store.Cluster(ctx, req.Cluster)
	if errors.Is(err, holdfast.ErrNotFound) || err == nil && rec.Owner == "" {
		return nil
	} else if err != nil {
		return fmt.Errorf("read cluster %q: %w", req.Cluster, err)
	}
	if _, ok := h.repos[rec.Owner]; !ok && req.PullRequest.IsZero() {
		return unwatched(rec.Owner)
	}
	return nil
}

// unwatched refuses what is asked of a cluster whose repository is not configured.
func unwatched(repo string) refusal {
	return refusal(fmt.Sprintf("its repository, %s, is no longer watched: configure it again, or `holdfast transfer` the cluster", repo))
}

// unlockFor is Unlock for a command.
func (h *Handler) unlockFor(ctx context.Context, c holdfast.Command, t target) (string, error) {
	err := h.operator.Unlock(ctx, t.cluster, c.Author, c.Force)
	switch locked := (*holdfast.LockedError)(nil); {
	case errors.Is(err, holdfast.ErrNotFound):
		return "", refusal("nobody holds the lock")
	case errors.As(err, &locked):
		return "", reasoned{refusal(fmt.Sprintf("%s has held it since %s UTC and is alive: `/holdfast cancel` it, or add --force",
			locked.Holder.Owner, locked.Holder.Since.UTC().Format(time.DateTime))), holdfast.ReasonLocked}
	case err != nil:
		return "", err
	}
	return "unlocked", nil
}
