package claims_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/server/issuer/claims"
)

func TestSubjectsDiffer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ project, environment, phase, want string }{
		"usual":      {"payments", "production", claims.PhasePlan, "holdfast:payments:production:plan"},
		"apply":      {"payments", "production", claims.PhaseApply, "holdfast:payments:production:apply"},
		"separators": {"a:b", "c", claims.PhasePlan, "holdfast:a%3Ab:c:plan"},
		"wildcards":  {"*", "?", claims.PhasePlan, "holdfast:%2A:%3F:plan"},
		"escapes":    {"a%3Ab", "ä", claims.PhasePlan, "holdfast:a%253Ab:%C3%A4:plan"},
	} {
		if got := claims.Subject(test.project, test.environment, test.phase); got != test.want {
			t.Errorf("%s: Subject() = %q, want %q", name, got, test.want)
		}
	}
	longest := claims.Subject(strings.Repeat("p", 63), strings.Repeat("e", 63), claims.PhaseApply)
	if len(longest) <= claims.MaxGoogleSubject {
		t.Errorf("the longest subject has %d bytes: Google takes all of them", len(longest))
	}
}

// No name of a runner, project or environment makes the subject of a runner that of a run.
func TestSubjectsOfRunners(t *testing.T) {
	t.Parallel()
	names := []string{"east", "runner", "a:b", "east:plan", "*", "holdfast:runner:east", "x:y:plan"}
	runs := map[string]bool{}
	for _, project := range append(names, "") {
		for _, environment := range append(names, "") {
			for _, phase := range []string{claims.PhasePlan, claims.PhaseApply} {
				runs[claims.Subject(project, environment, phase)] = true
			}
		}
	}
	seen := map[string]bool{}
	for _, name := range names {
		got := claims.RunnerSubject(name)
		if runs[got] || seen[got] || strings.Count(got, ":") != 2 {
			t.Errorf("runner %q has subject %s, which another one has", name, got)
		}
		seen[got] = true
	}
	if got := claims.RunnerSubject("eu-apps"); got != "holdfast:runner:eu-apps" {
		t.Errorf("subject is %s", got)
	}
}

func TestPhaseOfKinds(t *testing.T) {
	t.Parallel()
	want := map[holdfast.RunKind]string{
		holdfast.RunPlan: "plan", holdfast.RunDrift: "plan", holdfast.RunUnlock: "plan",
		holdfast.RunApply: "apply", holdfast.RunDestroy: "apply", holdfast.RunState: "apply",
	}
	for kind, phase := range want {
		if got := claims.PhaseOf(kind); got != phase {
			t.Errorf("PhaseOf(%s) = %s, want %s", kind, got, phase)
		}
	}
}

func TestClaimsAsClaimed(t *testing.T) {
	t.Parallel()
	run := holdfast.Run{ID: "run-1", Cluster: "prod-eu", Kind: holdfast.RunDrift}
	run.Document.Project, run.Document.Environment, run.Revision, run.Attempt = "payments", "production", "abc", 2
	c := claims.Of(run, claims.Origin{Repository: "acme/clusters", Ref: "refs/heads/main", Runner: "local"}).
		For("https://holdfast.example.com", "sts.amazonaws.com", "id", time.Unix(1000, 0), time.Minute).Tagged()
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "iss": "https://holdfast.example.com",
  "sub": "holdfast:payments:production:plan",
  "aud": "sts.amazonaws.com",
  "iat": 1000,
  "nbf": 970,
  "exp": 1060,
  "jti": "id",
  "project": "payments",
  "environment": "production",
  "cluster": "prod-eu",
  "phase": "plan",
  "kind": "drift",
  "repository": "acme/clusters",
  "ref": "refs/heads/main",
  "revision": "abc",
  "runner": "local",
  "run": "run-1",
  "attempt": 2,
  "https://aws.amazon.com/tags": {
    "principal_tags": {
      "holdfast:cluster": [
        "prod-eu"
      ],
      "holdfast:environment": [
        "production"
      ],
      "holdfast:phase": [
        "plan"
      ],
      "holdfast:project": [
        "payments"
      ]
    }
  }
}`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}
