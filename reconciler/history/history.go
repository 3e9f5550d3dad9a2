package history

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
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
	runs, err := from.Runs(ctx, holdfast.RunFilter{
		Cluster: cluster, PullRequest: &holdfast.PullRequestRef{}, Limit: decision.HistoryDepth,
		Kinds: []holdfast.RunKind{holdfast.RunPlan, holdfast.RunApply, holdfast.RunDestroy},
	})
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

// PullRequest returns the newest runs of a cluster in a pull request, newest first.
func PullRequest(
	ctx context.Context, from Runs, ref holdfast.PullRequestRef, cluster string,
) ([]holdfast.Run, error) {
	runs, err := from.Runs(ctx, holdfast.RunFilter{
		Cluster: cluster, PullRequest: &ref, Limit: decision.HistoryDepth,
	})
	if err != nil {
		return nil, fmt.Errorf("list runs of %q in %s: %w", cluster, ref, err)
	}
	return runs, nil
}
