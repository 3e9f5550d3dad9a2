package gate_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/gate"
)

func TestPolicy(t *testing.T) {
	t.Parallel()
	judged := func(change func(*holdfast.Run)) holdfast.Run {
		run := plan
		run.PoliciesGiven, run.Policies = "sha256:set", &holdfast.PolicyReport{Set: "sha256:set", Verdict: "sha256:v", Evaluated: 3}
		change(&run)
		return run
	}
	says := func(results ...holdfast.PolicyResult) holdfast.Run {
		return judged(func(run *holdfast.Run) { run.Policies.Results = results })
	}
	deny := holdfast.PolicyResult{Policy: "network-changed", Severity: holdfast.PolicyDeny, Address: "aws_vpc.this", Message: "x"}
	warn := holdfast.PolicyResult{Policy: "look", Severity: holdfast.PolicyWarn, Message: "x"}
	tests := map[string]struct {
		plan    holdfast.Run
		missing string // empty: it is met
	}{
		"agreed":         {says(), ""},
		"warned":         {says(warn), ""},
		"denied":         {says(deny, deny, warn), "denied by network-changed"},
		"no plan":        {holdfast.Run{}, "there is no plan yet"},
		"none bound":     {plan, "no policies were evaluated over this plan"},
		"an old agent":   {judged(func(run *holdfast.Run) { run.Policies = nil }), "the agent of this plan has evaluated no policies"},
		"other policies": {judged(func(run *holdfast.Run) { run.Policies.Set = "sha256:other" }), "has evaluated other policies"},
		"undecided":      {judged(func(run *holdfast.Run) { run.Policies.Undecided = []string{"a"} }), "undecided: a"},
		"a fault":        {judged(func(run *holdfast.Run) { run.Policies.Faults = []holdfast.PolicyFault{{Policy: "a"}} }), "could not be evaluated: a"},
		"a fault of a file": {judged(func(run *holdfast.Run) {
			run.Policies.Faults = []holdfast.PolicyFault{{Fault: holdfast.Fault{File: "a.rego", Line: 3}}}
		}), "could not be evaluated: a.rego:3"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// An approval does not open it.
			pr := verdicts(holdfast.Verdict{By: "lead", Approves: true, Head: "head", At: noon.Add(1e9)})
			g := gate.Of(pr, gate.Terms{Cluster: "prod", Requires: []string{"policy"}}, tt.plan, nil)[0]
			if g.Name != holdfast.GatePolicy || g.Met != (tt.missing == "") || !strings.Contains(g.Missing, tt.missing) || (g.From != "") == g.Met {
				t.Errorf("got %+v, want it to miss %q", g, tt.missing)
			}
		})
	}
}

// A waiver has one policy not count, for the plan that was shown, of this head; what could not be
// evaluated, or is left out, stays.
func TestWaivedPolicies(t *testing.T) {
	t.Parallel()
	denies := func(ids ...string) *holdfast.PolicyReport {
		r := &holdfast.PolicyReport{Set: "sha256:s"}
		for _, id := range ids {
			r.Results = append(r.Results, holdfast.PolicyResult{Policy: id, Severity: holdfast.PolicyDeny})
		}
		return r
	}
	waiver := func(change func(*holdfast.Approval)) holdfast.Approval {
		a := holdfast.Approval{
			By: "lead", Head: "head", At: noon.Add(time.Minute), Runs: []string{"run-1"}, Clusters: []string{"prod"}, CommentID: "1",
			Waiver: holdfast.Waiver{Waives: "few", Why: "agreed"},
		}
		if change != nil {
			change(&a)
		}
		return a
	}
	faulty, omitting := denies("few"), denies("few")
	faulty.Faults = []holdfast.PolicyFault{{Policy: "broken"}}
	omitting.Omitted = 1
	for name, tt := range map[string]struct {
		waiver  holdfast.Approval
		report  *holdfast.PolicyReport
		missing string // empty: it is met
	}{
		"waived":                {waiver(nil), denies("few"), ""},
		"and another denies":    {waiver(nil), denies("few", "other"), "denied by other"},
		"and another is broken": {waiver(nil), faulty, "could not be evaluated: broken"},
		"and some are left out": {waiver(nil), omitting, "more results than are kept"},
		"another head":          {waiver(func(a *holdfast.Approval) { a.Head = "old" }), denies("few"), "denied by few"},
		"another plan":          {waiver(func(a *holdfast.Approval) { a.Runs = []string{"run-3"} }), denies("few"), "denied by few"},
		"another cluster":       {waiver(func(a *holdfast.Approval) { a.Clusters = []string{"dev"} }), denies("few"), "denied by few"},
		"ended":                 {waiver(func(a *holdfast.Approval) { a.Ended = "its comment was edited" }), denies("few"), "denied by few"},
		"an approval":           {waiver(func(a *holdfast.Approval) { a.Waiver = holdfast.Waiver{} }), denies("few"), "denied by few"},
	} {
		run := plan
		run.PoliciesGiven, run.Policies = "sha256:s", tt.report
		gates := gate.Of(approvals(tt.waiver), gate.Terms{Cluster: "prod", Requires: []string{"policy", "approved"}}, run, nil)
		if g := gates[0]; g.Met != (tt.missing == "") || !strings.Contains(g.Missing, tt.missing) {
			t.Errorf("%s: got %+v, want it to miss %q", name, g, tt.missing)
		}
		if approves := tt.waiver.Waives == ""; gates[1].Met != approves {
			t.Errorf("%s: it approves: %v", name, gates[1].Met)
		}
	}
}

// A document that has expired since the plan was made no longer waives anything, and one that ends
// within a week says so.
func TestWaiversEnd(t *testing.T) {
	t.Parallel()
	run := plan
	run.PoliciesGiven = "sha256:s"
	run.Policies = &holdfast.PolicyReport{Set: "sha256:s", Results: []holdfast.PolicyResult{{Policy: "few", Severity: holdfast.PolicyDeny, Message: "x"}}}
	run.PolicyWaivers = []holdfast.PolicyWaiver{{Waiver: holdfast.Waiver{Waives: "few", Why: "until then"}, By: "ann", Until: "2026-12-31"}}
	for name, tt := range map[string]struct {
		now     time.Time
		met     bool
		says    string
		waivers []string
	}{
		"long before":     {time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), true, "ann waived few: until then", []string{"few"}},
		"its last week":   {time.Date(2026, 12, 25, 0, 0, 0, 0, time.UTC), true, "ann waived few: until then, which is within a week", []string{"few"}},
		"its last second": {time.Date(2026, 12, 31, 23, 59, 59, 0, time.UTC), true, "within a week", []string{"few"}},
		"over":            {time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), false, "denied by few; the waiver of few has expired: until then", nil},
	} {
		g := gate.Of(holdfast.PullRequestRecord{}, gate.Terms{Cluster: "prod", Requires: []string{"policy"}, Now: tt.now}, run, nil)[0]
		if says := g.Missing + strings.Join(g.Given, ""); g.Met != tt.met || !strings.Contains(says, tt.says) || tt.met == (name == "over") {
			t.Errorf("%s: got %+v", name, g)
		}
		if got := gate.WaivedIn(holdfast.PullRequestRecord{}, "prod", run, nil, tt.now); !slices.Equal(got, tt.waivers) {
			t.Errorf("%s: waived are %v, want %v", name, got, tt.waivers)
		}
	}
}

// A cluster whose policies were unbound in holdfast.yaml is not held for ever by what was last
// applied, which had some. One whose document asks for policies is.
func TestPoliciesThatAreGone(t *testing.T) {
	t.Parallel()
	terms := gate.Terms{Cluster: "prod", Requires: []string{"policy"}, Lifted: []string{"policy"}}
	if g := gate.Of(holdfast.PullRequestRecord{}, terms, plan, nil)[0]; !g.Met || !g.Idle {
		t.Errorf("got %+v", g)
	}
	terms.Lifted = nil
	if g := gate.Of(holdfast.PullRequestRecord{}, terms, plan, nil)[0]; g.Met {
		t.Errorf("got %+v", g)
	}
}
