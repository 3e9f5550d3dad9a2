package reconciler_test

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// A merge during an apply that dies waits for what that may have created, by its
// addresses: its plan was made before, and so it is planned again.
func TestAMergeDuringAnApplyThatDies(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.open(2, map[string]string{"infra/prod/other.tf": module("other")})
	f.executeAll(good)
	f.merge(1, byMerge)
	a := f.claim()
	f.merge(2, byMerge)
	result := transient(a)
	result.Status, result.Reason = holdfast.RunInterrupted, holdfast.ReasonAgentKilled
	result.Failure.Unrecorded = []string{"a.work"}
	f.finish(a, result)
	f.wantMayExist("prod", holdfast.RunPlan, "a.work")
	if left := f.cluster("prod").Left; !slices.Equal(left.Addresses, []string{"a.work"}) || left.Run != a.Run {
		t.Errorf("on record is %+v: it is forgotten with the run", left)
	}
	f.heldFor("prod", "a.work")
	if left := f.cluster("prod").Left; len(left.Addresses) > 0 {
		t.Errorf("on record is %+v, which someone was told of", left)
	}
}

// A push to a cluster that is held for what may exist is held for the same, also where
// a merge since then was compared and found it.
func TestAPushWhileSomethingMayExist(t *testing.T) {
	t.Parallel()
	for name, merged := range map[string]bool{"after the apply died": false, "after a merge was held, too": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := reviewed(t)
			f.merge(1, byMerge)
			f.dies([]string{"a.work"})
			f.clock.Advance(time.Minute)
			f.ask("prod")
			f.wantMayExist("prod", holdfast.RunApply, "a.work")
			kind := holdfast.RunPlan
			if merged {
				f.open(2, map[string]string{"infra/prod/other.tf": module("other")})
				f.executeAll(good)
				f.merge(2, byMerge)
				f.wantMayExist("prod", holdfast.RunApply, "a.work")
				kind = holdfast.RunApply // the merge is compared with what the branch says now
			}
			f.repo.Commit(master, "push", map[string]string{"infra/prod/more.tf": module("more")})
			f.look()
			f.wantMayExist("prod", kind, "a.work")
			f.heldFor("prod", "a.work")
		})
	}
}

// An apply that was canceled, and whose engine had to be killed, is planned again with
// what that may have created.
func TestACanceledApplyThatHadToBeKilled(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.merge(1, byMerge)
	f.execute(func(a protocol.Assignment) protocol.Result {
		return protocol.Result{Status: holdfast.RunCanceled, Reason: holdfast.ReasonCanceled, Applying: true, Failure: &holdfast.Failure{
			Step: "apply", Summary: "killed by signal 9", Cause: holdfast.ReasonCanceled, Unrecorded: []string{"a.work"},
		}}
	})
	f.wantMayExist("prod", holdfast.RunPlan, "a.work")
	f.heldFor("prod", "a.work")
}
