package runner_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner"
	"github.com/holdfast-dev/holdfast/runner/redact"
)

// watchingSession is a session that sees the states on their way.
type watchingSession struct {
	*memorySession
	saw func([]byte)
}

func (s *watchingSession) WatchState(saw func([]byte)) { s.saw = saw }

const printedPlan = `plan say Acquiring state lock. This may take a few moments...
plan say data.x.y["a: b"]: Reading...
plan say data.x.y["a: b"]: Read complete after 0s [id=its-id]
plan say a.b: Refreshing state... [id=its-id]
plan say
plan say Terraform used the selected providers
plan say ~ output = "an-old-password" -> (known after apply)
plan say a.b: Refreshing state... [id=nobody knows whose this is]
`

// TestPlanIsHeldBack: progress is shown as it comes, the plan once the engine has
// said what in it is sensitive, or never.
func TestPlanIsHeldBack(t *testing.T) {
	t.Parallel()
	progress := func(id string) string {
		return `Acquiring state lock. This may take a few moments...
data.x.y["a: b"]: Reading...
data.x.y["a: b"]: Read complete after 0s [id=` + id + `]
a.b: Refreshing state... [id=` + id + `]

`
	}
	const rendered = `Terraform used the selected providers
~ output = "an-old-password" -> (known after apply)
a.b: Refreshing state... [id=nobody knows whose this is]
`
	for name, c := range map[string]struct {
		watched      bool
		ends         string // the line of the fake engine that ends the plan
		during, then string
	}{
		"the plan is made": {
			during: progress("..."), then: rendered + "Plan: 1 to add, 0 to change, 0 to destroy.\n",
		},
		"the plan is made and the state known": {
			watched: true, during: progress("its-id"),
			then: strings.Replace(rendered, "an-old-password", redacted, 1) + "Plan: 1 to add, 0 to change, 0 to destroy.\n",
		},
		"the plan fails": {
			ends: "plan fail nothing works\n", during: progress("..."),
			then: "holdfast: what the engine printed of its plan is left out: nothing says which of its values are secret\n" +
				"\nError: nothing works\n\nholdfast: plan: nothing works (EngineFailed)\n",
		},
		"the plan fails and the state is known": {
			watched: true, ends: "plan fail nothing works\n", during: progress("its-id"),
			then: strings.Replace(rendered, "an-old-password", redacted, 1) +
				"\nError: nothing works\n\nholdfast: plan: nothing works (EngineFailed)\n",
		},
		"the engine dies": {
			ends: "plan die\n", during: progress("..."),
			then: "holdfast: what the engine printed of its plan is left out: nothing says which of its values are secret\n" +
				"holdfast: plan: the engine was killed by signal 9 (killed) (EngineKilled)\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, _ := engineExecutor(t, nil)
			dir := t.TempDir()
			ready, on := filepath.Join(dir, "ready"), filepath.Join(dir, "go")
			memory := newMemorySession(map[string]string{
				"main.tf": "", "fake": printedPlan + "plan ready " + ready + "\nplan await " + on + "\n" + c.ends,
			})
			memory.state = "http://127.0.0.1:1/x"
			var s runner.Session = memory
			watching := &watchingSession{memorySession: memory}
			if c.watched {
				s = watching
				memory.onStep = func(step string) {
					if step == "plan" { // when the engine asks for the state
						watching.saw([]byte(`{"version": 4, "outputs": {"x": {"value": ["an-old-password"], "sensitive": true}}}`))
					}
				}
			}
			ended := make(chan protocol.Result, 1)
			go func() { ended <- e.Execute(t.Context(), engineAssignment("run-1", holdfast.RunPlan), s) }()
			untilFile(t, ready)
			before := "holdfast: using terraform 1.9.9\n"
			for deadline := time.Now().Add(2 * time.Minute); memory.logged() != before+c.during; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Errorf("while it plans (-want +got):\n%s", cmp.Diff(before+c.during, memory.logged()))
					break
				}
			}
			writeMark(t, on)
			<-ended
			if diff := cmp.Diff(before+c.during+c.then, memory.logged()); diff != "" {
				t.Errorf("at the end (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOutputsAreHeldBack: what an apply prints is shown as it comes, its outputs
// once it is known which of them are sensitive.
func TestOutputsAreHeldBack(t *testing.T) {
	t.Parallel()
	e, _ := engineExecutor(t, nil)
	const state = `{"version": 4, "outputs": {"made": {"sensitive": true, "value": {"text": "made-by-the-apply"}}}, "resources": []}`
	s := newMemorySession(map[string]string{"main.tf": "", "pulled": state, "prior": state, "fake": `apply say a.b (local-exec): hello
apply say Outputs:
apply say copy = "made-by-the-apply"
state print pulled
`})
	s.state = "http://127.0.0.1:1/x"
	a := engineAssignment("run-1", holdfast.RunApply)
	a.Reviews = review("run-0", e.Execute(t.Context(), engineAssignment("run-0", holdfast.RunPlan), s))
	before := len(s.logged())
	wantStatus(t, e.Execute(t.Context(), a, s), holdfast.RunApplied, "", s)
	want := "Plan: 1 to add, 0 to change, 0 to destroy.\na.b (local-exec): hello\nOutputs:\ncopy = \"" + redacted + "\"\n"
	if diff := cmp.Diff(want, strings.TrimPrefix(s.logged()[before:], "holdfast: using terraform 1.9.9\n")); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

// TestSecretsOfState reads the marks of a state as engines store it.
func TestSecretsOfState(t *testing.T) {
	t.Parallel()
	const state = `{"version": 4, "outputs": {
  "plain": {"value": "plain-output", "type": "string"},
  "list": {"value": ["output-secret-1", {"x": "output-secret-2"}, 12345678, 7, true, null], "sensitive": true}
}, "resources": [{"instances": [
  {"attributes": {"id": "plain-id", "plain": "plain-value"}, "sensitive_attributes": []},
  {"attributes": {
    "password": "schema-secret", "short": "short", "plain": "plain-value",
    "input": {"value": {"a": ["index-plain", "index-secret"], "b": "plain-value"}, "type": ["object", {}]},
    "blocks": [{"name": "plain-name", "key": "block-secret"}], "set": ["in-a-set-1", "in-a-set-2"],
    "tags": {"odd key": "by-key-secret"}
  }, "sensitive_attributes": [
    [{"type": "get_attr", "value": "password"}], [{"type": "get_attr", "value": "short"}],
    [{"type": "get_attr", "value": "input"}, {"type": "get_attr", "value": "a"}, {"type": "index", "value": {"value": 1, "type": "number"}}],
    [{"type": "get_attr", "value": "blocks"}, {"type": "index", "value": {"value": 0, "type": "number"}}, {"type": "get_attr", "value": "key"}],
    [{"type": "get_attr", "value": "set"}, {"type": "index", "value": {"value": "in-a-set-1", "type": "string"}}],
    [{"type": "get_attr", "value": "tags"}, {"type": "index", "value": {"value": "odd key", "type": "string"}}]
  ]}
]}, {}]}`
	want := []string{
		"12345678", "block-secret", "by-key-secret", "in-a-set-1", "in-a-set-2", "index-secret",
		"output-secret-1", "output-secret-2", "schema-secret",
	}
	if diff := cmp.Diff(want, secretsOfState(state)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, broken := range []string{"", "{", "[]", `{"outputs": 3}`, `{"encrypted_data": "x"}`, strings.Repeat(`{"outputs":`, 1000)} {
		if got := secretsOfState(broken); len(got) > 0 {
			t.Errorf("SecretsOfState(%.20s) = %v", broken, got)
		}
	}
}

// TestVariablesAreKnownBeforeThePlan: values of secret variables are known from
// the start, wherever they come from.
func TestVariablesAreKnownBeforeThePlan(t *testing.T) {
	t.Parallel()
	e, _ := engineExecutor(t, nil)
	values := []string{"from-json-1", "12345678901", "from-hcl-22", "from-default", "from-environment", "in-a-list-of-it", "by-its-name-alone"}
	s := newMemorySession(map[string]string{
		"main.tf": `
variable "json" { sensitive = true }
variable "hcl" { sensitive = true }
variable "fallback" {
  sensitive = true
  default   = ["from-default"]
}
variable "text" { sensitive = true }
variable "list" { sensitive = true }
variable "admin_password" {}
variable "plain" {}
`,
		"a.auto.tfvars.json": `{"json": {"x": ["from-json-1", 12345678901]}, "plain": "plain-value"}`,
		"terraform.tfvars":   `hcl = { x = "from-hcl-22" }` + "\nadmin_password = \"by-its-name-alone\"\n",
		"fake":               fmt.Sprintf("init fail %s plain-value\n", strings.Join(values, " ")),
	})
	s.state = "http://127.0.0.1:1/x"
	a := engineAssignment("run-1", holdfast.RunPlan)
	a.Env = map[string]string{"TF_VAR_text": "from-environment", "TF_VAR_list": `["in-a-list-of-it", "short"]`, "TF_VAR_plain": "plain-value"}
	got := e.Execute(context.WithoutCancel(t.Context()), a, s)
	want := "init:" + strings.Repeat(" "+redacted, len(values)) + " plain-value"
	if got.Failure == nil || got.Failure.Summary != want {
		t.Errorf("got %+v, want %q", got.Failure, want)
	}
	if strings.Contains(s.logged(), "from-") {
		t.Errorf("log: %s", s.logged())
	}
}

// redacted stands in place of what is secret.
const redacted = holdfast.SensitiveValue

func secretsOfState(state string) []string {
	secrets, _ := redact.OfState([]byte(state))
	return secrets
}
