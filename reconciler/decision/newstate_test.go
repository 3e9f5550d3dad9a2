package decision_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// TestNothingBeginsWithAnotherState: nothing is planned or applied with another state than the
// current one, whoever asks for it.
func TestNothingBeginsWithAnotherState(t *testing.T) {
	t.Parallel()
	to := func(is, to string) func(*decision.Input) {
		return func(in *decision.Input) {
			in.Last.StateLocation, in.Cluster.Applied.StateLocation, in.Cluster.Desired.StateLocation = is, is, to
		}
	}
	moves := to("s3:old", "s3:new")
	held := wait(holdfast.ReasonStateWouldMove)
	held.Detail = "its state is s3:old and would be s3:new"
	refused := held
	refused.Action = decision.ActionRefuse
	named := func(detail string) decision.Decision {
		d := held
		d.Detail = detail
		return d
	}
	for name, c := range map[string]situation{
		"merged":                         {onBranch(merged, moves), held},
		"merged, by hand":                {onBranch(merged, manual, moves), held},
		"from Holdfast's own":            {onBranch(merged, to("clusters/prod", "s3:new")), named("its state is clusters/prod and would be s3:new")},
		"to Holdfast's own":              {onBranch(merged, to("s3:old", "clusters/prod")), named("its state is s3:old and would be clusters/prod")},
		"merged, alice says so":          {onBranch(merged, moves, asks(holdfast.VerbApply, "")), refused},
		"pushed":                         {onBranch(moves), held},
		"pushed, planned before":         {onBranch(moves, runs(ran("run-2", plan, holdfast.RunPlanned))), held},
		"the same state":                 {onBranch(merged, to("s3:old", "s3:old")), act(decision.ActionApply, holdfast.ReasonMerged, on(seen))},
		"another name":                   {onBranch(merged, to("clusters/prod", "clusters/live")), act(decision.ActionApply, holdfast.ReasonMerged, on(seen))},
		"nobody knows where it is":       {onBranch(merged, to("", "s3:new")), act(decision.ActionApply, holdfast.ReasonMerged, on(seen))},
		"nobody knows where it is to be": {onBranch(merged, to("s3:old", "")), act(decision.ActionApply, holdfast.ReasonMerged, on(seen))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, decision.Decide(c.in), sameEmpty); diff != "" {
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
		"in a storage":    {rec: holdfast.ClusterRecord{Applied: holdfast.Applied{SourceDigest: newDigest, StateLocation: "s3:a", Stored: &holdfast.StoredState{}}, Desired: holdfast.Desired{SourceDigest: newDigest, StateLocation: "s3:b"}}, want: "s3:a"},
		"to a storage":    {rec: holdfast.ClusterRecord{Applied: holdfast.Applied{SourceDigest: newDigest, StateLocation: "clusters/a"}, Desired: holdfast.Desired{SourceDigest: newDigest, StateLocation: "s3:b", Stored: &holdfast.StoredState{}}}, want: "clusters/a"},
		"migrated":        {rec: holdfast.ClusterRecord{Applied: holdfast.Applied{SourceDigest: newDigest, StateLocation: "pg:b", Migrated: true}, Desired: holdfast.Desired{SourceDigest: newDigest, StateLocation: "pg:a"}}, want: "pg:b"},
		"it is at fault":  {rec: holdfast.ClusterRecord{Applied: holdfast.Applied{SourceDigest: newDigest, StateLocation: "pg:infra/prod"}}, want: "pg:infra/prod"},
	} {
		if got := decision.LastApplied(c.rec, c.runs).StateLocation; got != c.want {
			t.Errorf("%s: the state is %q, not %q", name, got, c.want)
		}
	}
}
