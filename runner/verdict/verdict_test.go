package verdict_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/verdict"
)

func TestClean(t *testing.T) {
	t.Parallel()
	r := holdfast.PolicyReport{Verdict: "v", Policies: []holdfast.Policy{{ID: "a"}}}
	for i := range 150 {
		r.Results = append(r.Results, holdfast.PolicyResult{Policy: "a", Message: fmt.Sprintf("%d secret %s", i, strings.Repeat("é", 400)), Address: "a[\"secret\"]", Link: "secret"})
		r.Faults = append(r.Faults, holdfast.PolicyFault{Fault: holdfast.Fault{Message: "secret", Hint: "secret"}})
	}
	got := verdict.Clean(r, func(text string) string { return strings.ReplaceAll(text, "secret", "(redacted)") })
	if len(got.Results) != 100 || got.Omitted != 50 || len(got.Faults) != 100 || got.Policies != nil || got.Verdict != "v" {
		t.Errorf("got %d results, %d omitted, %d faults", len(got.Results), got.Omitted, len(got.Faults))
	}
	for _, text := range []string{got.Results[3].Message, got.Results[3].Address, got.Results[3].Link, got.Faults[3].Message, got.Faults[3].Hint} {
		if strings.Contains(text, "secret") || len(text) > 510 {
			t.Errorf("got %q", text)
		}
	}
}

// Of more results than are kept it is known which policies deny: a waiver of them counts.
func TestWaivedPoliciesWithManyResults(t *testing.T) {
	t.Parallel()
	r := holdfast.PolicyReport{Verdict: "v"}
	for i := range 150 {
		r.Results = append(r.Results, holdfast.PolicyResult{Policy: "few", Severity: holdfast.PolicyDeny, Message: "x", Address: fmt.Sprint("a.", i)})
	}
	r.Results = append(r.Results, holdfast.PolicyResult{Policy: "network", Severity: holdfast.PolicyDeny, Message: "x"})
	got := verdict.Clean(r, strings.ToLower)
	if got.DeniesBut([]string{"few", "network"}) || !got.DeniesBut([]string{"few"}) || !got.DeniesBut(nil) || !got.Denies() {
		t.Errorf("it denies by %v", got.Denying)
	}
	got.Denying = nil // an older agent
	if !got.DeniesBut([]string{"few", "network"}) {
		t.Error("what is omitted may be anybody's")
	}
	if got.Shorten(10); !got.DeniesBut([]string{"few"}) {
		t.Error("what was omitted before may be anybody's")
	}
}

func TestChanged(t *testing.T) {
	t.Parallel()
	review := holdfast.Review{Run: "run-1", Policies: "v"}
	deny := []holdfast.PolicyResult{{Policy: "p", Severity: holdfast.PolicyDeny, Address: "a.b"}}
	tests := map[string]struct {
		found  *holdfast.PolicyReport
		review holdfast.Review
		part   bool
		want   string
	}{
		"the same":          {&holdfast.PolicyReport{Verdict: "v"}, review, false, ""},
		"the same, denied":  {&holdfast.PolicyReport{Verdict: "v", Results: deny}, review, false, ""},
		"another":           {&holdfast.PolicyReport{Verdict: "w", Results: deny}, review, false, "now deny p of a.b"},
		"less":              {&holdfast.PolicyReport{Verdict: "w"}, review, false, "now nothing"},
		"less of a part":    {&holdfast.PolicyReport{Verdict: "w"}, review, true, ""},
		"a part, denied":    {&holdfast.PolicyReport{Verdict: "w", Results: deny}, review, true, "now deny p of a.b"},
		"a fault":           {&holdfast.PolicyReport{Verdict: "w", Faults: []holdfast.PolicyFault{{Policy: "p"}}}, review, false, "now a fault of p"},
		"none now":          {nil, review, false, "this agent evaluates no policies"},
		"none then":         {&holdfast.PolicyReport{Verdict: "w"}, holdfast.Review{Run: "run-1"}, false, "no policies were evaluated over the reviewed plan of run run-1"},
		"none then, a part": {&holdfast.PolicyReport{Verdict: "w"}, holdfast.Review{Run: "run-1"}, true, "no policies were evaluated over the reviewed plan"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := verdict.Changed(tt.found, tt.review, tt.part)
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
