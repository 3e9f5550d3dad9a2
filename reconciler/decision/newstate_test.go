package decision_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// TestApplyWithAnotherState: nothing begins with another state without a person's word.
func TestApplyWithAnotherState(t *testing.T) {
	t.Parallel()
	to := func(is, to string) func(*decision.Input) {
		return func(in *decision.Input) {
			in.Last.StateLocation, in.Cluster.Applied.StateLocation, in.Cluster.Desired.StateLocation = is, is, to
		}
	}
	moves := to("s3:old", "s3:new")
	unchanged := func(in *decision.Input) { in.Merges[0].Unchanged = true }
	held := wait(holdfast.ReasonNewState)
	held.Detail = "its state is s3:old and would be s3:new"
	planned := ran("run-2", plan, holdfast.RunPlanned)
	for name, c := range map[string]situation{
		"merged":          {onBranch(merged, moves), held},
		"merged, by hand": {onBranch(merged, manual, moves), held},
		"from Holdfast's own": {onBranch(merged, to("clusters/prod", "s3:new")), func() decision.Decision {
			d := held
			d.Detail = "its state is clusters/prod and would be s3:new"
			return d
		}()},
		"merged without changes":         {onBranch(merged, moves, unchanged), act(decision.ActionApply, holdfast.ReasonMerged, on(seen))},
		"merged, alice says so":          {onBranch(merged, moves, asks(holdfast.VerbApply, "")), act(decision.ActionApply, holdfast.ReasonApproved, on(seen), alice)},
		"pushed":                         {onBranch(moves, runs(planned)), held},
		"the same state":                 {onBranch(merged, to("s3:old", "s3:old")), act(decision.ActionApply, holdfast.ReasonMerged, on(seen))},
		"another name":                   {onBranch(merged, to("clusters/prod", "clusters/live")), act(decision.ActionApply, holdfast.ReasonMerged, on(seen))},
		"nobody knows where it is":       {onBranch(merged, to("", "s3:new")), act(decision.ActionApply, holdfast.ReasonMerged, on(seen))},
		"nobody knows where it is to be": {onBranch(merged, to("s3:old", "")), act(decision.ActionApply, holdfast.ReasonMerged, on(seen))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, decision.Decide(c.in)); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}
