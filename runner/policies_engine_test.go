package runner_test

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/policy"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner"
)

// inProcess evaluates policies without their own process.
type inProcess struct{}

func (inProcess) Evaluate(ctx context.Context, p protocol.AssignedPolicies, plan io.Reader) (holdfast.PolicyReport, error) {
	in, err := policy.ReadInput(plan, p.Context)
	if err != nil {
		return holdfast.PolicyReport{}, err
	}
	return policy.Compile(p.Sources, p.Settings).Evaluate(ctx, in, policy.Limits{}, nil), nil
}

// newPolicyLab is a lab whose agent evaluates policies.
func newPolicyLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{t: t, server: newFakeServer(t), calls: filepath.Join(t.TempDir(), "calls"), world: t.TempDir(), ours: true, disk: &syncs{}}
	bin, name := scriptEngine(t, fmt.Sprintf("echo \"$*\" >>%q\n", l.calls), `exec "$engine" "$@"`)
	l.engine = name
	e, _ := newExecutor(t, func(o *runner.ExecutorOptions) {
		useEngine(o, bin)
		o.Isolation.Policies = inProcess{}
	})
	l.server.answer = l.stored
	_, _ = startAgentOn(t, l.disk, runner.AgentOptions{Server: runner.Server{URL: l.server.url}, Dir: t.TempDir(), Executor: e})
	return l
}

// input is that of a plan without changes.
func input(t *testing.T) policy.Input {
	t.Helper()
	in, err := policy.ReadInput(strings.NewReader("{}"), protocol.PolicyContext{})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func assigned(text string) *protocol.AssignedPolicies {
	sources := []protocol.PolicySource{{From: "set", Path: "p.rego", Text: text}}
	return &protocol.AssignedPolicies{Set: policy.Digest(sources, nil), Sources: sources}
}

// Policies see the complete plan of the engine, secrets included, and what they say of these
// does not leave the agent. An apply evaluates them again: if they say of its plan what they
// said of the reviewed one, it is applied, otherwise it waits.
func TestPoliciesOfARealPlan(t *testing.T) {
	t.Parallel()
	l := newPolicyLab(t)
	files := map[string]string{"main.tf": `
variable "password" {
  type      = string
  sensitive = true
  default   = "very-secret-text"
}

resource "terraform_data" "a" {
  input = var.password
}
`}
	policies := assigned(`package p
deny contains {"msg": sprintf("%s has %s with %s", [rc.address, rc.change.after.input, input.holdfast.engine.name]), "address": rc.address} if {
	some rc in input.holdfast.by_type.terraform_data
	rc.change.after.input == "very-secret-text"
}`)
	planned, _ := l.run("run-1", holdfast.RunPlan, files, func(a *protocol.Assignment) { a.Policies = policies })
	r := planned.Policies
	if planned.Status != holdfast.RunPlanned || r == nil || r.Set != policies.Set || r.Count(holdfast.PolicyDeny) != 1 {
		t.Fatalf("got %s, %+v", planned.Status, r)
	}
	message := r.Results[0].Message
	if strings.Contains(message, "very-secret-text") || !strings.HasPrefix(message, "terraform_data.a has ") || !strings.HasSuffix(message, " with "+l.engine) {
		t.Errorf("got %q", message)
	}

	reviewed := func(verdict holdfast.Digest, given *protocol.AssignedPolicies) func(a *protocol.Assignment) {
		return func(a *protocol.Assignment) {
			a.Reviews, a.Policies = review("run-1", planned), given
			a.Reviews[0].Policies = verdict
		}
	}
	other := assigned("package p\nwarn contains \"look\" if true")
	held, starts := l.run("run-2", holdfast.RunApply, files, reviewed("", other))
	if held.Reason != holdfast.ReasonPolicyChanged || starts["apply"] != 0 || !strings.Contains(held.Detail, "no policies were evaluated over the reviewed plan") {
		t.Errorf("a plan that was not judged: %s %s %q", held.Status, held.Reason, held.Detail)
	}
	held, starts = l.run("run-3", holdfast.RunApply, files, reviewed(r.Verdict, other))
	if held.Reason != holdfast.ReasonPolicyChanged || starts["apply"] != 0 || !strings.Contains(held.Detail, "now warn p.warn") {
		t.Errorf("another verdict: %s %s %q", held.Status, held.Reason, held.Detail)
	}
	held, starts = l.run("run-4", holdfast.RunApply, files, reviewed(r.Verdict, policies))
	if held.Reason != holdfast.ReasonPolicyDenied || starts["apply"] != 0 || !strings.Contains(held.Detail, "deny p.deny of terraform_data.a") {
		t.Errorf("denied as reviewed: %s %s %q", held.Status, held.Reason, held.Detail)
	}
	warned := policy.Compile(other.Sources, nil).Evaluate(t.Context(), input(t), policy.Limits{}, nil).Verdict
	applied, starts := l.run("run-5", holdfast.RunApply, files, reviewed(warned, other))
	if applied.Status != holdfast.RunApplied || starts["apply"] != 1 {
		t.Errorf("the same verdict: %s %s %q", applied.Status, applied.Reason, applied.Detail)
	}
}

// An agent that evaluates no policies applies nothing that has any.
func TestPoliciesOfAnAgentWithout(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	files := map[string]string{"main.tf": "resource \"terraform_data\" \"a\" {}\n"}
	policies := assigned("package p\nwarn contains \"look\" if false")
	planned, _ := l.run("run-1", holdfast.RunPlan, files, func(a *protocol.Assignment) { a.Policies = policies })
	if planned.Status != holdfast.RunPlanned || planned.Policies != nil {
		t.Fatalf("got %s, %+v", planned.Status, planned.Policies)
	}
	held, starts := l.run("run-2", holdfast.RunApply, files, func(a *protocol.Assignment) { a.Reviews, a.Policies = review("run-1", planned), policies })
	if held.Reason != holdfast.ReasonPolicyChanged || starts["apply"] != 0 {
		t.Errorf("got %s %s", held.Status, held.Reason)
	}
}
