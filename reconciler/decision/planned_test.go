package decision_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// TestPlannedRunIsWhatIsApplied holds the plan that is named to a person to the decision
// about their word: what is applied is that plan, it is never refused for another one, and
// nothing is applied where none was named.
func TestPlannedRunIsWhatIsApplied(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(5, 6))
	applied, named := 0, map[string]int{}
	for range 30_000 {
		in := draw(rnd)
		if in.PullRequest != nil {
			in = drawDrift(rnd)
		}
		p := decision.PlannedRun(in)
		in.Ask = &decision.Ask{Verb: holdfast.VerbApply, Actor: "alice", Seen: []string{p}}
		switch {
		case p == "":
			in.Ask.Seen = []string{"run-none"}
			named["none"]++
		case in.Drift != nil && p == in.Drift.ID:
			in.Ask.Run = p
			named["drift"]++
		case p == newestID(in.Runs):
			in.Ask.Run = p
			named["newest"]++
		default:
			named["merge"]++
		}
		d := decision.Decide(in)
		wrong := ""
		switch moved := slices.Contains([]holdfast.Reason{holdfast.ReasonPlanMoved, holdfast.ReasonNothingPlanned, holdfast.ReasonUpToDate}, d.Reason); {
		case d.Action == decision.ActionApply && p == "":
			wrong = "applies what was not named"
		case d.Action == decision.ActionApply && !of(d, p):
			wrong = "applies another plan than the one that was named"
		case d.Action == decision.ActionRefuse && p != "" && moved:
			wrong = "refuses the plan that was named for another one"
		case d.Action == decision.ActionApply:
			applied++
		}
		if wrong != "" {
			t.Fatalf("%s: %q\ndecision %+v\ncluster %+v\nmerges %+v\ndrift %+v\nruns %s", wrong, p, d, in.Cluster, in.Merges, in.Drift, list(in.Runs))
		}
	}
	for _, what := range []string{"none", "drift", "newest", "merge"} {
		if named[what] < 100 {
			t.Errorf("%s was named %d times only: the draws prove little", what, named[what])
		}
	}
	if applied < 1000 {
		t.Errorf("%d plans were applied: the draws prove little", applied)
	}
}

// of reports whether an apply can come to the plan of one run alone.
func of(d decision.Decision, run string) bool {
	if d.Shown != "" {
		return d.Shown == run
	}
	other := func(v holdfast.Review) bool { return v.Run != "" && v.Run != run }
	return slices.ContainsFunc(d.Reviews, func(v holdfast.Review) bool { return v.Run == run }) && !slices.ContainsFunc(d.Reviews, other)
}

// TestPlannedRun says which plan is named, where there are several.
func TestPlannedRun(t *testing.T) {
	t.Parallel()
	waits := ran("run-2", plan, holdfast.RunPlanned)
	asked := ran("run-3", plan, holdfast.RunPlanned, byAlice)
	second := func(in *decision.Input) {
		later := seen
		later.PullRequest.Number, later.Run = 2, "run-1a"
		in.Merges = append([]decision.Merge{{Review: later}}, in.Merges...)
	}
	for name, tt := range map[string]struct {
		in   decision.Input
		want string
	}{
		"nothing":                            {onBranch(), ""},
		"up to date":                         {onBranch(upToDate, merged), ""},
		"a merge":                            {onBranch(merged, manual), "run-1"},
		"the later of two merges":            {onBranch(merged, second, manual), "run-1a"},
		"a merge that nobody has seen":       {onBranch(mergedUnseen), ""},
		"a push":                             {onBranch(runs(waits)), "run-2"},
		"a push that is planned":             {onBranch(runs(ran("run-2", plan, holdfast.RunQueued))), ""},
		"a push that turned out to be merge": {onBranch(merged, manual, runs(waits)), "run-1"},
		"a merge, and a later plan of it":    {onBranch(merged, manual, runs(asked)), "run-3"},
		"an apply that came to another plan": {onBranch(merged, runs(ran("run-4", apply, holdfast.RunPlanned))), "run-4"},
		"a failed apply":                     {onBranch(merged, runs(ran("run-4", apply, holdfast.RunErrored, hasBegun))), ""},
		"a failed apply, planned again":      {onBranch(merged, runs(ran("run-5", plan, holdfast.RunPlanned), ran("run-4", apply, holdfast.RunErrored, hasBegun))), "run-5"},
		"a merge since a failed apply":       {onBranch(mergedAfterFailure, runs(ran("run-4", apply, holdfast.RunErrored, hasBegun))), "run-7"},
		"an old plan":                        {onBranch(runs(ran("run-2", plan, holdfast.RunPlanned, ofOld))), ""},
		"conditions that are not met":        {onBranch(merged, requires(holdfast.GateApproved)), "run-1"},
		"suspended":                          {onBranch(merged, suspended), "run-1"},
		"not valid":                          {onBranch(merged, invalid), ""},
		"a state that was not saved": {onBranch(merged, func(in *decision.Input) {
			in.Unsaved = &decision.Unsaved{State: holdfast.UnsavedState{Cluster: "prod", Run: "run-1"}}
		}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := decision.PlannedRun(tt.in); got != tt.want {
				t.Errorf("PlannedRun() = %q, want %q", got, tt.want)
			}
		})
	}
}
