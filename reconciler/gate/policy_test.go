package gate_test

import (
	"strings"
	"testing"

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
