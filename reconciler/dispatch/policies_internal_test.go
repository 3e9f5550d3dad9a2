package dispatch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// What an agent says of policies is bounded, and never so that a denial is lost.
func TestPoliciesOfAResult(t *testing.T) {
	t.Parallel()
	run := holdfast.Run{Kind: holdfast.RunPlan, RunProgress: holdfast.RunProgress{PoliciesGiven: "sha256:set"}}
	report := func(results ...holdfast.PolicyResult) *holdfast.PolicyReport {
		return &holdfast.PolicyReport{Set: "sha256:set", Verdict: "sha256:v", Evaluated: 2, Results: results}
	}
	many := make([]holdfast.PolicyResult, 500)
	for i := range many {
		many[i] = holdfast.PolicyResult{Policy: strings.Repeat("p", 9999), Severity: holdfast.PolicyWarn, Message: fmt.Sprint(i, strings.Repeat("m", 99999))}
	}
	last := many[len(many)-1]
	last.Severity = holdfast.PolicyDeny
	tests := map[string]struct {
		run    holdfast.Run
		report *holdfast.PolicyReport
		denied bool
		bad    bool
	}{
		"none":              {run, nil, false, false},
		"agreed":            {run, report(), false, false},
		"denied":            {run, report(holdfast.PolicyResult{Policy: "p", Severity: holdfast.PolicyDeny}), true, false},
		"an unknown word":   {run, report(holdfast.PolicyResult{Policy: "p", Severity: "forbid"}), true, false},
		"too many":          {run, report(many...), false, false},
		"the last denies":   {run, report(append(many[:499:499], last)...), true, false},
		"a fault":           {run, &holdfast.PolicyReport{Set: "sha256:set", Verdict: "sha256:v", Faults: make([]holdfast.PolicyFault, 900)}, true, false},
		"undecided":         {run, &holdfast.PolicyReport{Set: "sha256:set", Verdict: "sha256:v", Undecided: make([]string, 9000)}, true, false},
		"nobody asked":      {holdfast.Run{Kind: holdfast.RunPlan}, report(), false, true},
		"no verdict":        {run, &holdfast.PolicyReport{Set: "sha256:set"}, false, true},
		"no digest":         {run, &holdfast.PolicyReport{Set: "<script>", Verdict: "sha256:v"}, false, true},
		"negative":          {run, &holdfast.PolicyReport{Set: "sha256:set", Verdict: "sha256:v", Evaluated: -1, Omitted: -7}, false, false},
		"lists of policies": {run, &holdfast.PolicyReport{Set: "sha256:set", Verdict: "sha256:v", Policies: make([]holdfast.Policy, 900)}, false, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, why := checked(tt.run, protocol.Result{Status: holdfast.RunPlanned, Policies: tt.report})
			if (why != "") != tt.bad {
				t.Fatalf("refused: %q", why)
			}
			if tt.bad || tt.report == nil {
				if got.Policies != nil {
					t.Errorf("got %+v", got.Policies)
				}
				return
			}
			r := got.Policies
			if r.Denies() != tt.denied || len(r.Results) > maxPolicyEntries || len(r.Faults) > maxPolicyEntries || len(r.Undecided) > maxAddresses || r.Policies != nil || r.Evaluated < 0 || r.Omitted < 0 {
				t.Errorf("got %d results, %d faults, %d omitted, denies %t", len(r.Results), len(r.Faults), r.Omitted, r.Denies())
			}
			for _, result := range r.Results {
				if len(result.Message) > maxLine+8 || len(result.Policy) > maxPolicyName+8 {
					t.Errorf("got %d bytes of %d", len(result.Message), len(result.Policy))
				}
			}
		})
	}
}
