package history

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/statelock"
)

// Runs are the records of runs; *datastore.Store has them.
type Runs interface {
	// Runs returns the runs that match, newest first.
	Runs(ctx context.Context, filter holdfast.RunFilter) ([]holdfast.Run, error)
}

// Branch returns the newest runs of a cluster's tracked branch, without
// drift. However many plans were made since, those that wrote are among them:
// one may have left something half done.
func Branch(ctx context.Context, from Runs, cluster string) ([]holdfast.Run, error) {
	runs, err := from.Runs(ctx, ofBranch(cluster, decision.HistoryDepth))
	if err != nil {
		return nil, fmt.Errorf("list runs of %q: %w", cluster, err)
	}
	if len(runs) < decision.HistoryDepth {
		return runs, nil
	}
	writes, err := from.Runs(ctx, holdfast.RunFilter{
		Cluster: cluster, PullRequest: &holdfast.PullRequestRef{}, Limit: decision.HistoryDepth,
		Kinds: []holdfast.RunKind{holdfast.RunApply, holdfast.RunDestroy},
	})
	if err != nil {
		return nil, fmt.Errorf("list applies of %q: %w", cluster, err)
	}
	oldest := runs[len(runs)-1].ID
	return append(runs, slices.DeleteFunc(writes, func(run holdfast.Run) bool { return run.ID >= oldest })...), nil
}

// ofBranch selects the newest runs of a cluster's tracked branch, without drift.
func ofBranch(cluster string, limit int) holdfast.RunFilter {
	return holdfast.RunFilter{
		Cluster: cluster, PullRequest: &holdfast.PullRequestRef{}, Limit: limit,
		Kinds: []holdfast.RunKind{holdfast.RunPlan, holdfast.RunApply, holdfast.RunDestroy},
	}
}

// mergePage is how many of a cluster's older runs are read at a time, and clocksApart how
// long before its merge, by the code host's clock, a run of a pull request may be dated.
const mergePage, clocksApart = 200, 24 * time.Hour

// Merge returns the runs of a cluster's tracked branch that represent the merge of a
// pull request, newest first: of recent, which is what Branch has returned, or of older
// ones if more runs than these were made since. Runs from before the merge are not read.
func Merge(
	ctx context.Context, from Runs, cluster string, recent []holdfast.Run, pr holdfast.PullRequestRecord,
) ([]holdfast.Run, error) {
	other := func(run holdfast.Run) bool { return !run.StandsFor(pr.PullRequestRef) }
	mine := slices.DeleteFunc(slices.Clone(recent), other)
	filter := ofBranch(cluster, mergePage)
	for more := len(mine) == 0 && len(recent) >= decision.HistoryDepth; more; {
		runs, err := from.Runs(ctx, filter)
		if err != nil {
			return nil, fmt.Errorf("list runs of %q for %s: %w", cluster, pr.PullRequestRef, err)
		}
		if more = len(runs) == mergePage; more {
			last := runs[len(runs)-1]
			filter.After = holdfast.RunMark{CreatedAt: last.CreatedAt, ID: last.ID}
			more = !last.CreatedAt.Before(pr.MergedAt.Add(-clocksApart))
		}
		found := slices.DeleteFunc(runs, other)
		more = more && (len(found) > 0 || len(mine) == 0)
		mine = append(mine, found...)
	}
	return mine, nil
}

// PullRequest returns the newest plans of a cluster in a pull request, newest first.
func PullRequest(
	ctx context.Context, from Runs, ref holdfast.PullRequestRef, cluster string,
) ([]holdfast.Run, error) {
	runs, err := from.Runs(ctx, holdfast.RunFilter{
		Cluster: cluster, PullRequest: &ref, Limit: decision.HistoryDepth, Kinds: []holdfast.RunKind{holdfast.RunPlan},
	})
	if err != nil {
		return nil, fmt.Errorf("list runs of %q in %s: %w", cluster, ref, err)
	}
	return runs, nil
}

// releasesLooked is how many releases of locks of a cluster are looked through.
const releasesLooked = 20

// Released reports whether the lock that a plan did not get, and no longer waits for, was
// released since: by a run that has ended well, after the plan had failed.
func Released(ctx context.Context, from Runs, plan holdfast.Run) (bool, error) {
	lock, known := statelock.Of(plan)
	if !known || plan.Kind != holdfast.RunPlan || plan.Status != holdfast.RunErrored {
		return false, nil
	}
	runs, err := from.Runs(ctx, holdfast.RunFilter{
		Cluster: plan.Cluster, Kinds: []holdfast.RunKind{holdfast.RunState, holdfast.RunUnlock},
		Statuses: []holdfast.RunStatus{holdfast.RunApplied}, Limit: releasesLooked,
	})
	if err != nil {
		return false, fmt.Errorf("list releases of locks of %q: %w", plan.Cluster, err)
	}
	return slices.ContainsFunc(runs, func(run holdfast.Run) bool {
		return run.State.Unlocks() && run.State.LockID == lock.ID &&
			run.StateKey() == plan.StateKey() && run.FinishedAt.After(plan.FinishedAt)
	}), nil
}
