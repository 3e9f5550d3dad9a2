package history

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// LastCheck returns the newest drift check of a cluster that has ended with
// a result; nil if there is none. An apply that was to revert a drift and found
// another plan is one.
func LastCheck(ctx context.Context, from Runs, rec holdfast.ClusterRecord) (*holdfast.Run, error) {
	if rec.Applied.Run == "" {
		return nil, nil
	}
	runs, err := from.Runs(ctx, holdfast.RunFilter{
		Cluster: rec.Name, Kinds: []holdfast.RunKind{holdfast.RunDrift}, Limit: 10,
		Statuses: []holdfast.RunStatus{
			holdfast.RunPlanned, holdfast.RunNoChanges, holdfast.RunErrored, holdfast.RunInterrupted, holdfast.RunCanceled,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("list checks of %q: %w", rec.Name, err)
	}
	var last *holdfast.Run
	for i, run := range runs {
		if !decision.GivenUp(run) { // it stays due
			last = &runs[i]
			break
		}
	}
	reverts, err := from.Runs(ctx, holdfast.RunFilter{
		Cluster: rec.Name, Kinds: []holdfast.RunKind{holdfast.RunApply}, Limit: 10,
		Statuses: []holdfast.RunStatus{holdfast.RunPlanned},
	})
	if err != nil {
		return nil, fmt.Errorf("list applies of %q: %w", rec.Name, err)
	}
	for i, run := range reverts {
		if decision.IsRevert(run) && (last == nil || run.ID > last.ID) {
			return &reverts[i], nil
		}
	}
	return last, nil
}
