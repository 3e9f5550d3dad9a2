package reconciler_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// To ask for a plan after the merge, and then to apply it, is no way around the
// conditions of the merge.
func TestDecideHoldsStoredPlansToTheConditions(t *testing.T) {
	t.Parallel()
	planned := runs(ran("run-2", plan, holdfast.RunPlanned, byAlice))
	approved := func(in *reconciler.Input) { in.Merges[0].Approved = true }
	applied := reconciler.Decision{Action: reconciler.ActionApply, Reason: reconciler.ReasonApproved, Actor: "alice", StoredPlan: "run-2"}
	refuse := func(reason string) reconciler.Decision {
		return reconciler.Decision{Action: reconciler.ActionRefuse, Reason: reason}
	}
	for name, test := range map[string]situation{
		"planned by a person, not approved": {
			onBranch(merged, requires("approved"), planned, asks(holdfast.VerbApply, "run-2")), refuse(reconciler.ReasonNotApproved),
		},
		"merged before it was planned, not approved": {
			onBranch(mergedUnseen, requires("approved"), planned, asks(holdfast.VerbApply, "run-2")), refuse(reconciler.ReasonNotApproved),
		},
		"merged against the checks": {
			onBranch(mergedUnseen, requires("mergeable"), planned, asks(holdfast.VerbApply, "run-2")), refuse(reconciler.ReasonNotMergeable),
		},
		"approved": {onBranch(merged, approved, requires("approved"), planned, asks(holdfast.VerbApply, "run-2")), applied},
		"pushed without a pull request": {
			onBranch(requires("approved"), planned, asks(holdfast.VerbApply, "run-2")), applied,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := reconciler.Decide(test.in)
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(reconciler.Decision{}, "Reviews")); diff != "" {
				t.Errorf("Decide() (-want +got):\n%s", diff)
			}
		})
	}
}
