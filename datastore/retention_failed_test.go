package datastore_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
)

// What an apply has left half done is destroyed from what that apply began with:
// it is kept until something was applied, or the cluster is gone.
func TestAnApplyThatFailedIsKept(t *testing.T) {
	t.Parallel()
	p := openPast(t, memory.Dir(t), datastore.Retention{Runs: 1})
	rec := must[holdfast.ClusterRecord](t)(p.SaveCluster(t.Context(), holdfast.ClusterRecord{Name: "c", Phase: holdfast.PhaseFailed}))
	failed := p.run(holdfast.RunApply, func(run *holdfast.Run) { run.Status = holdfast.RunErrored }).ID
	for range 60 {
		p.run(holdfast.RunPlan, nil)
	}
	p.sweep()
	if left := p.left(); left[0] != failed || len(left) != 51 {
		t.Errorf("%d runs are left, the oldest is %s, want 51 from %s on", len(left), left[0], failed)
	}
	rec.Phase = holdfast.PhaseDeleted
	must[holdfast.ClusterRecord](t)(p.SaveCluster(t.Context(), rec))
	p.sweep()
	if left := p.left(); left[0] == failed {
		t.Errorf("it is kept after the cluster is gone")
	}
}
