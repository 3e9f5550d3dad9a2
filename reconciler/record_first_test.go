package reconciler_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// TestOutcomesAreOnRecordBeforeTheyAreShown: whenever a forge is looked at, a
// final status of an apply says no more than the cluster's record does.
func TestOutcomesAreOnRecordBeforeTheyAreShown(t *testing.T) {
	t.Parallel()
	outcomes := map[string]struct {
		result func(protocol.Assignment) protocol.Result
		status holdfast.StatusState
		phase  holdfast.Phase
	}{
		"applied": {good, holdfast.StatusSuccess, holdfast.PhaseActive},
		"failed":  {failing, holdfast.StatusFailure, holdfast.PhaseFailed},
	}
	for name, outcome := range outcomes {
		t.Run("merged and "+name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			a := f.applyOf(1, "two")
			f.settle()
			result := outcome.result(a)
			result.Fence = a.Fence
			f.must(f.r.Dispatcher().Finish(t.Context(), a.AttemptRef, f.left(a, result)))
			f.must(f.r.Show(t.Context(), onePR))
			f.post()
			commit := f.forge.get(1).MergeCommit
			if got := f.forge.status(commit, holdfast.ContextApply); got != holdfast.StatusPending {
				t.Errorf("the status is %q, and the record says %+v", got, f.cluster("prod").Applied)
			}
			f.settle()
			f.executeAll(good) // what a failed one has left is planned
			if got := f.forge.status(commit, holdfast.ContextApply); got != outcome.status || f.cluster("prod").Phase != outcome.phase {
				t.Errorf("in the end the status is %q and the cluster %s", got, f.cluster("prod").Phase)
			}
		})
		t.Run("pushed and "+name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, twoClusters())
			f.adopt()
			commit := holdfast.Revision(f.repo.Commit("main", "push", map[string]string{"infra/prod/main.tf": module("two")}))
			f.look()
			f.executeAll(good) // the plan, which is shown
			f.asks(holdfast.VerbApply, "prod")
			a := f.claim()
			f.settle()
			result := outcome.result(a)
			result.Fence = a.Fence
			f.must(f.r.Dispatcher().Finish(t.Context(), a.AttemptRef, f.left(a, result)))
			f.must(f.r.ShowPush(t.Context(), f.cluster("prod").Owner, commit))
			f.post()
			if got := f.forge.status(commit, holdfast.ContextApply); got != holdfast.StatusPending {
				t.Errorf("the status is %q, and the record says %+v", got, f.cluster("prod").Applied)
			}
			f.settle()
			f.executeAll(good) // what a failed one has left is planned
			if got := f.forge.status(commit, holdfast.ContextApply); got != outcome.status || f.cluster("prod").Phase != outcome.phase {
				t.Errorf("in the end the status is %q and the cluster %s", got, f.cluster("prod").Phase)
			}
		})
	}
}
