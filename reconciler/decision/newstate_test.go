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
	copied := func(in *decision.Input) { in.Merges[0].Copied = true }
	elsewhere := func(status holdfast.RunStatus, copied bool) func(*decision.Input) {
		run := ran("run-2", plan, status)
		run.StateLocation, run.Copied = "s3:new", copied
		return runs(run)
	}
	held := wait(holdfast.ReasonNewState)
	held.Detail = "its state is s3:old and would be s3:new"
	planned := ran("run-2", plan, holdfast.RunPlanned)
	afterFailure := func(status holdfast.RunStatus, copied bool) func(*decision.Input) {
		return func(in *decision.Input) {
			elsewhere(status, copied)(in)
			in.Runs[0].Actor = "alice" // who has asked for the plan
			in.Runs = append(in.Runs, ran("run-1", apply, holdfast.RunErrored))
		}
	}
	for name, c := range map[string]situation{
		"merged":          {onBranch(merged, moves), held},
		"merged, by hand": {onBranch(merged, manual, moves), held},
		"from Holdfast's own": {onBranch(merged, to("clusters/prod", "s3:new")), func() decision.Decision {
			d := held
			d.Detail = "its state is clusters/prod and would be s3:new"
			return d
		}()},
		"merged, copied":                 {onBranch(merged, moves, copied), act(decision.ActionApply, holdfast.ReasonMerged, on(seen))},
		"merged, alice says so":          {onBranch(merged, moves, asks(holdfast.VerbApply, "")), act(decision.ActionApply, holdfast.ReasonApproved, on(seen), alice)},
		"pushed":                         {onBranch(moves, runs(planned)), held},
		"pushed, no changes":             {onBranch(moves, elsewhere(holdfast.RunNoChanges, false)), held},
		"merged, planned, no changes":    {onBranch(merged, moves, elsewhere(holdfast.RunNoChanges, false)), held},
		"pushed, copied":                 {onBranch(moves, elsewhere(holdfast.RunNoChanges, true)), decision.Decision{Action: decision.ActionRecord, Reason: holdfast.ReasonAdopted, Run: "run-2"}},
		"pushed, no changes, confirmed":  {onBranch(moves, elsewhere(holdfast.RunNoChanges, false), asks(holdfast.VerbApply, "run-2")), act(decision.ActionApply, holdfast.ReasonApproved, alice, stored("run-2"), func(d *decision.Decision) { d.Reviews = []holdfast.Review{} })},
		"the same state":                 {onBranch(merged, to("s3:old", "s3:old")), act(decision.ActionApply, holdfast.ReasonMerged, on(seen))},
		"another name":                   {onBranch(merged, to("clusters/prod", "clusters/live")), act(decision.ActionApply, holdfast.ReasonMerged, on(seen))},
		"nobody knows where it is":       {onBranch(merged, to("", "s3:new")), act(decision.ActionApply, holdfast.ReasonMerged, on(seen))},
		"nobody knows where it is to be": {onBranch(merged, to("s3:old", "")), act(decision.ActionApply, holdfast.ReasonMerged, on(seen))},

		"its plan failed, planned again":             {onBranch(merged, moves, afterFailure(holdfast.RunPlanned, false)), held},
		"its plan failed, planned again, no changes": {onBranch(merged, moves, afterFailure(holdfast.RunNoChanges, false)), held},
		"its plan failed, planned again, no changes, confirmed": {
			onBranch(merged, moves, afterFailure(holdfast.RunNoChanges, false), asks(holdfast.VerbApply, "run-2")),
			act(decision.ActionApply, holdfast.ReasonApproved, on(seen), alice, stored("run-2")),
		},
		"its plan failed, planned again, copied": {
			onBranch(merged, moves, afterFailure(holdfast.RunNoChanges, true)),
			decision.Decision{Action: decision.ActionRecord, Reason: holdfast.ReasonAdopted, Run: "run-2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, decision.Decide(c.in)); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAStateThatIsCalledOtherwise: an earlier version has recorded another name of the
// state of the same source.
func TestAStateThatIsCalledOtherwise(t *testing.T) {
	t.Parallel()
	record := func(last holdfast.Applied) holdfast.ClusterRecord {
		return holdfast.ClusterRecord{Applied: last, Desired: holdfast.Desired{SourceDigest: newDigest, StateLocation: "pg:schema_name=s"}}
	}
	failed := ran("run-2", apply, holdfast.RunErrored, hasBegun)
	failed.StateLocation = "pg:infra/prod"
	for name, c := range map[string]struct {
		rec  holdfast.ClusterRecord
		runs []holdfast.Run
		want string
	}{
		"the same source": {rec: record(holdfast.Applied{Run: "run-1", SourceDigest: newDigest, StateLocation: "pg:infra/prod"}), want: "pg:schema_name=s"},
		"another source":  {rec: record(holdfast.Applied{Run: "run-1", SourceDigest: oldDigest, StateLocation: "pg:infra/prod"}), want: "pg:infra/prod"},
		"a failed apply":  {rec: record(holdfast.Applied{Run: "run-1", SourceDigest: oldDigest, StateLocation: "pg:old"}), runs: []holdfast.Run{failed}, want: "pg:schema_name=s"},
		"nothing applied": {rec: record(holdfast.Applied{})},
		"Holdfast's own":  {rec: holdfast.ClusterRecord{Applied: holdfast.Applied{SourceDigest: newDigest, StateLocation: "clusters/a"}, Desired: holdfast.Desired{SourceDigest: newDigest, StateLocation: "clusters/b"}}, want: "clusters/a"},
		"it is at fault":  {rec: holdfast.ClusterRecord{Applied: holdfast.Applied{SourceDigest: newDigest, StateLocation: "pg:infra/prod"}}, want: "pg:infra/prod"},
	} {
		if got := decision.LastApplied(c.rec, c.runs).StateLocation; got != c.want {
			t.Errorf("%s: the state is %q, not %q", name, got, c.want)
		}
	}
}
