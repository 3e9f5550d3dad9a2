package holdfast_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// Only plans and drift checks make a plan and change nothing: nothing that a run of another
// kind has done may be taken for that.
func TestKindsThatOnlyPlan(t *testing.T) {
	t.Parallel()
	for kind, want := range map[holdfast.RunKind]bool{
		holdfast.RunPlan: true, holdfast.RunDrift: true,
		holdfast.RunApply: false, holdfast.RunDestroy: false, holdfast.RunState: false, holdfast.RunUnlock: false,
	} {
		if got := kind.OnlyPlans(); got != want {
			t.Errorf("a %s run only plans: %t", kind, got)
		}
	}
}
