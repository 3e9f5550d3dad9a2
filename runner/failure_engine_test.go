//go:build !race

package runner_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// TestFailureOfARealEngine: a failed apply says at which resource it failed,
// where that is written, and what it had done before.
func TestFailureOfARealEngine(t *testing.T) {
	t.Parallel()
	l := newLab(t, "cloud")
	files := map[string]string{"main.tf": "module \"m\" {\n  source = \"./m\"\n}\noutput \"size\" {\n  value = 3\n}\n", "m/main.tf": cloudRoot + `
resource "terraform_data" "noise" {
  provisioner "local-exec" { command = "echo 'fake.thing: Creation complete after 1s'; echo 'x.y: Creating...'" }
}
`}
	l.put("fail.create.main", "creating the cluster: operation error EKS: CreateCluster, api error ResourceLimitExceeded\nCluster limit exceeded for account.\n")
	planned, _ := l.run("plan-1", holdfast.RunPlan, files, nil)
	l.want(planned, "plan-1", holdfast.RunPlanned, "")
	failed, _ := l.run("apply-1", holdfast.RunApply, files, func(a *protocol.Assignment) { a.Reviews = review("plan-1", planned) })
	l.want(failed, "apply-1", holdfast.RunErrored, "Quota")
	f := failed.Failure
	sorted(f.Completed)
	want := &holdfast.Failure{
		Step: "apply", Cause: "Quota", Hint: f.Hint, Address: "module.m.cloud_cluster.main",
		Summary: "apply: creating the cluster: operation error EKS: CreateCluster, api error ResourceLimitExceeded",
		Detail:  "Cluster limit exceeded for account.",
		Diagnostics: []holdfast.Diagnostic{{
			Severity: "error", Summary: "creating the cluster: operation error EKS: CreateCluster, api error ResourceLimitExceeded",
			Detail: "Cluster limit exceeded for account.", Address: "module.m.cloud_cluster.main", File: "m/main.tf", Line: 9,
			Snippet: f.Diagnostics[0].Snippet, // of the lab's code
		}},
		Completed: []string{"module.m.cloud_network.net: created", "module.m.terraform_data.noise: created"},
	}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("failure (-want +got):\n%s", diff)
	}
	if got := l.resources("apply-1"); len(got) != 2 {
		t.Errorf("resources: %v", got)
	}
	var outputs []holdfast.Output // the state has those that the apply came to
	if !l.artefact("apply-1", protocol.ArtefactOutputs, &outputs) || len(outputs) != 1 || string(outputs[0].Value) != "3" {
		t.Errorf("outputs: %v", outputs)
	}

	// A provider that dies says nothing: what it was at is known all the same, and may
	// exist.
	l.remove("fail.create.main")
	l.put("die.create.main", "")
	died, _ := l.run("apply-2", holdfast.RunApply, files, func(a *protocol.Assignment) {
		reviewed := review("plan-1", planned)
		a.Reviews, a.Resume = reviewed, true
	})
	l.want(died, "apply-2", holdfast.RunErrored, "ProviderCrashed")
	if f := died.Failure; f.Address != "module.m.cloud_cluster.main" || len(f.Completed) > 0 {
		t.Errorf("failure %+v", f)
	}
	if diff := cmp.Diff([]string{"module.m.cloud_cluster.main"}, died.Failure.Unrecorded); diff != "" {
		t.Errorf("what may exist after it (-want +got):\n%s", diff)
	}
}

// TestInterruptedApply: what was done, and what was begun, before an apply was
// told to stop is known, wherever the state is.
func TestInterruptedApply(t *testing.T) {
	t.Parallel()
	for name, own := range map[string]bool{"own state": true, "another backend": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "cloud")
			backend := ""
			if l.ours = own; !own {
				backend = "terraform {\n  backend \"local\" { path = \"" + filepath.Join(t.TempDir(), "s.tfstate") + "\" }\n}\n"
			}
			files := map[string]string{"main.tf": backend + cloudRoot}
			planned, _ := l.run("plan-1", holdfast.RunPlan, files, nil)
			l.want(planned, "plan-1", holdfast.RunPlanned, "")
			l.put("hold.create.main", "")
			l.assign("apply-1", holdfast.RunApply, files, func(a *protocol.Assignment) {
				a.Reviews, a.Lease = review("plan-1", planned), 6*time.Second
			})
			l.server.until(t, "the cluster is being created", func() bool {
				return strings.Contains(string(l.server.logs["apply-1"]), "cloud_cluster.main: Creating...")
			})
			l.server.set(func() { l.server.cancel = "by ann" })
			stopped := l.server.result(t, "apply-1")
			l.want(stopped, "apply-1", holdfast.RunCanceled, holdfast.ReasonCanceled)
			f := stopped.Failure
			if diff := cmp.Diff([]string{"cloud_network.net: created"}, f.Completed); diff != "" {
				t.Errorf("completed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"cloud_cluster.main"}, f.Unrecorded); diff != "" {
				t.Errorf("unrecorded (-want +got):\n%s", diff)
			}
			if got := l.resources("apply-1"); len(got) != 1 || !strings.HasPrefix(got[0], "cloud_network.net ") {
				t.Errorf("resources: %v\n%s", got, l.log("apply-1"))
			}
		})
	}
}

// TestInterruptedProvisioner: an engine that ends when it is asked to, and has saved what
// it was at, leaves nothing that may exist besides the state.
func TestInterruptedProvisioner(t *testing.T) {
	t.Parallel()
	l := newLab(t, "cloud")
	files := map[string]string{"main.tf": `
resource "terraform_data" "slow" {
  provisioner "local-exec" { command = "exec sleep 600" }
}
`}
	planned, _ := l.run("plan-1", holdfast.RunPlan, files, nil)
	l.want(planned, "plan-1", holdfast.RunPlanned, "")
	l.assign("apply-1", holdfast.RunApply, files, func(a *protocol.Assignment) { a.Reviews = review("plan-1", planned) })
	l.server.until(t, "the provisioner runs", func() bool {
		return strings.Contains(string(l.server.logs["apply-1"]), "terraform_data.slow (local-exec)")
	})
	l.server.set(func() { l.server.cancel = "by ann" })
	stopped := l.server.result(t, "apply-1")
	l.want(stopped, "apply-1", holdfast.RunCanceled, holdfast.ReasonCanceled)
	if f := stopped.Failure; len(f.Unrecorded) > 0 {
		t.Errorf("unrecorded: %v", f.Unrecorded)
	}
	if got := l.resources("apply-1"); len(got) != 1 {
		t.Errorf("resources: %v\n%s", got, l.log("apply-1"))
	}
}

// TestCompletedIsBounded: of what a long apply had done its first 200 are told.
func TestCompletedIsBounded(t *testing.T) {
	t.Parallel()
	e, _ := engineExecutor(t, nil)
	var said strings.Builder
	for i := range 300 {
		said.WriteString("apply say a.b[" + strings.Repeat("1", 1+i%3) + "]: Destruction complete after 0s\n")
	}
	said.WriteString("apply say c.d: Modifying... [id=1]\napply say c.d: Modifications complete after 0s\napply fail no such thing\n")
	s := newMemorySession(map[string]string{"main.tf": "", "fake": said.String()})
	s.state = "http://127.0.0.1:1/x"
	a := engineAssignment("run-1", holdfast.RunPlan)
	planned := e.Execute(t.Context(), a, s)
	a.Run, a.Kind, a.Reviews = "run-2", holdfast.RunApply, review("run-1", planned)
	got := e.Execute(t.Context(), a, s)
	wantStatus(t, got, holdfast.RunErrored, "EngineFailed", s)
	if c := got.Failure.Completed; len(c) != 200 || c[0] != "a.b[1]: destroyed" || got.Failure.Address != "" {
		t.Errorf("%d completed at %q: %.100v", len(c), got.Failure.Address, c)
	}
}

// TestColoursAreTakenOut: engines colour some of what they say in spite of -no-color.
func TestColoursAreTakenOut(t *testing.T) {
	t.Parallel()
	e, _ := engineExecutor(t, nil)
	const text = "\n\x1b[31mError: \x1b[0m\x1b[1mFailed to save state\x1b[0m\n\nError saving state: \x1b[31mFailed to persist\x1b[0m state\nto backend.\n"
	s := newMemorySession(map[string]string{"main.tf": "", "said": text, "fake": "plan fail-with said\n"})
	s.state = "http://127.0.0.1:1/x"
	got := e.Execute(t.Context(), engineAssignment("run-colours", holdfast.RunPlan), s)
	f := got.Failure
	if f == nil || len(f.Diagnostics) != 1 || f.Diagnostics[0].Summary != "Failed to save state" {
		t.Fatalf("got %+v", f)
	}
	if f.Detail != "Error saving state: Failed to persist state\nto backend." || strings.Contains(f.Summary, "\x1b") {
		t.Errorf("got %q: %q", f.Summary, f.Detail)
	}
}
