package runner_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner"
)

// slowRoot is a root module whose apply writes the engine's process id and its
// own into marks, then waits for a file "go" there.
func slowRoot(marks string) []byte {
	command := fmt.Sprintf("cd %[1]s && echo $PPID $$ > pids.tmp && mv pids.tmp pids; cd - > /dev/null; while ! test -e %[1]s/go; do sleep 0.02; done", marks)
	return tarball(map[string]string{"main.tf": `
terraform {
  backend "http" {}
}
resource "terraform_data" "first" { input = "x" }
resource "terraform_data" "slow" {
  input = terraform_data.first.output
  provisioner "local-exec" { command = ` + strconv.Quote(command) + ` }
}
`})
}

// realExecutor executes with a real engine in dir.
func realExecutor(t *testing.T, dir string) *runner.Executor {
	t.Helper()
	config := filepath.Join(dir, "engine.rc")
	err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(config, []byte("disable_checkpoint = true\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	e, err := runner.NewExecutor(runner.ExecutorOptions{
		WorkDir: dir, Engines: runner.Engines{CLIConfigFile: config, Env: map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// reviewedApply plans a slow root with an agent in dir and returns the apply of
// that plan, ready to be assigned.
func reviewedApply(t *testing.T, server *fakeServer, dir, marks string) protocol.Assignment {
	t.Helper()
	realEngine(t)
	bundle := engineAssignment("run-1", holdfast.RunPlan)
	server.set(func() { server.objects[string(bundle.Bundle)] = slowRoot(marks) })
	_, stop := startAgent(t, runner.AgentOptions{Server: runner.Server{URL: server.url}, Dir: dir, Executor: realExecutor(t, dir)})
	assigned := func(run string, kind holdfast.RunKind) protocol.Assignment {
		a, settings := engineAssignment(run, kind), assignment(run, kind)
		a.Token, a.Lease, a.Deadline, a.StateLocation = settings.Token, settings.Lease, settings.Deadline, settings.StateLocation
		return a
	}
	server.assign(assigned("run-1", holdfast.RunPlan))
	planned := server.result(t, "run-1")
	if planned.Status != holdfast.RunPlanned {
		t.Fatalf("result = %+v, failure %+v", planned, planned.Failure)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	// Its claim may still wait when the next run is assigned, and would take that with it.
	server.until(t, "the agent's claim is over", func() bool { return server.waiting == 0 })
	apply := assigned("run-2", holdfast.RunApply)
	apply.Reviews = review("run-1", planned)
	return apply
}

func TestRealApplyEndsWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	server, dir, marks := newFakeServer(t), t.TempDir(), t.TempDir()
	apply := reviewedApply(t, server, dir, marks)
	_, _ = startAgent(t, runner.AgentOptions{Server: runner.Server{URL: server.url}, Dir: dir, Executor: realExecutor(t, dir)})
	server.assign(apply)
	untilFile(t, filepath.Join(marks, "pids"))
	server.set(func() { server.down = true })
	if err := os.WriteFile(filepath.Join(marks, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	untilFile(t, filepath.Join(dir, "attempts", "run-2-1", "result.json"))
	server.set(func() { server.down = false })

	result := server.result(t, "run-2")
	if result.Status != holdfast.RunApplied || !result.Applying || result.Matched != "run-1" {
		t.Errorf("result = %+v, failure %+v", result, result.Failure)
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	if n := len(server.states); n == 0 || !strings.Contains(server.states[n-1], `"slow"`) {
		t.Errorf("%d states, or the last one lacks what was made", n)
	}
	if server.lock != nil {
		t.Errorf("the state is still locked: %s", server.lock)
	}
	if log := string(server.logs["run-2"]); !strings.Contains(log, "Apply complete!") {
		t.Errorf("log = %q", log)
	}
}

func TestRealApplyOfAKilledAgent(t *testing.T) {
	t.Parallel()
	server, dir, marks := newFakeServer(t), t.TempDir(), t.TempDir()
	apply := reviewedApply(t, server, dir, marks)
	agent := agentProcess(t, server, dir, "HOLDFAST_TEST_AGENT_REAL=1")
	server.assign(apply)
	var engine, provisioner int
	if _, err := fmt.Sscan(untilFile(t, filepath.Join(marks, "pids")), &engine, &provisioner); err != nil {
		t.Fatal(err)
	}
	server.until(t, "the log says what is under way", func() bool {
		return strings.Contains(string(server.logs["run-2"]), "terraform_data.slow: Creating...")
	})
	_ = agent.Process.Kill()
	_ = agent.Wait()
	untilDead(t, engine)

	_, _ = startAgent(t, runner.AgentOptions{Server: runner.Server{URL: server.url}, Dir: dir, Executor: realExecutor(t, dir)})
	result := server.result(t, "run-2")
	if result.Status != holdfast.RunInterrupted || result.Reason != holdfast.ReasonAgentKilled || !result.Applying {
		t.Errorf("result = %+v", result)
	}
	if diff := cmp.Diff([]string{"terraform_data.slow"}, result.Failure.Unrecorded); diff != "" {
		t.Error(diff)
	}
	untilDead(t, provisioner)
	if _, err := os.Stat(realExecutor(t, dir).WorkspaceDir(apply.AttemptRef)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the dead workspace is still there: %v", err)
	}
}
