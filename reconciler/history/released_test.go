package history_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/history"
)

// ended are the runs of a cluster, of which a filter selects some.
type ended []holdfast.Run

func (e ended) Runs(_ context.Context, filter holdfast.RunFilter) ([]holdfast.Run, error) {
	if filter.Cluster != "fresh" {
		return nil, errors.New("that was not meant")
	}
	return slices.DeleteFunc(slices.Clone(e), func(run holdfast.Run) bool {
		return !slices.Contains(filter.Kinds, run.Kind) || !slices.Contains(filter.Statuses, run.Status)
	}), nil
}

// TestReleased: a plan that gave up waiting for a lock is to be made again if that very lock
// was released since, of the state that it has.
func TestReleased(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	release := holdfast.Run{
		ID: "run-2", Kind: holdfast.RunUnlock, Status: holdfast.RunApplied, FinishedAt: noon.Add(time.Hour),
		RunSpec: holdfast.RunSpec{StateLocation: "s3:b/k", State: &holdfast.StateJob{Action: holdfast.StateUnlock, LockID: "left-1"}},
	}
	plan := holdfast.Run{
		ID: "run-1", Cluster: "fresh", Kind: holdfast.RunPlan, Status: holdfast.RunErrored, FinishedAt: noon,
		RunSpec: holdfast.RunSpec{StateLocation: "s3:b/k"},
		RunOutcome: holdfast.RunOutcome{Failure: &holdfast.Failure{
			Step: "plan", Cause: holdfast.CauseStateLocked, Detail: "Lock Info:\n  ID:        left-1\n",
		}},
	}
	for name, c := range map[string]struct {
		change func(plan, release *holdfast.Run)
		want   bool
	}{
		"its lock":                     {func(_, _ *holdfast.Run) {}, true},
		"its lock, as of the branch":   {func(_, r *holdfast.Run) { r.Kind = holdfast.RunState }, true},
		"its lock, of an environment":  {func(_, r *holdfast.Run) { r.StateLocation += holdfast.StoreOfEnvironment }, true},
		"another lock":                 {func(_, r *holdfast.Run) { r.State = &holdfast.StateJob{Action: holdfast.StateUnlock, LockID: "left-2"} }, false},
		"a push of its state":          {func(_, r *holdfast.Run) { r.State = &holdfast.StateJob{Action: holdfast.StatePush, LockID: "left-1"} }, false},
		"that ID in another state":     {func(_, r *holdfast.Run) { r.StateLocation = "s3:b/other" }, false},
		"a release that failed":        {func(_, r *holdfast.Run) { r.Status = holdfast.RunErrored }, false},
		"a release before it failed":   {func(_, r *holdfast.Run) { r.FinishedAt = noon.Add(-time.Hour) }, false},
		"it still waits":               {func(p, _ *holdfast.Run) { p.Status = holdfast.RunRetrying }, false},
		"it failed for something else": {func(p, _ *holdfast.Run) { p.Failure = &holdfast.Failure{Cause: holdfast.CauseNetwork} }, false},
		"it is an apply":               {func(p, _ *holdfast.Run) { p.Kind = holdfast.RunApply }, false},
		"there is no plan":             {func(p, _ *holdfast.Run) { *p = holdfast.Run{} }, false},
	} {
		plan, release := plan, release
		c.change(&plan, &release)
		if got, err := history.Released(t.Context(), ended{release}, plan); got != c.want || err != nil {
			t.Errorf("%s: Released() = %t, %v, want %t", name, got, err, c.want)
		}
	}
}
