package runner_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner"
	"github.com/holdfast-dev/holdfast/runner/journal"
	"github.com/holdfast-dev/holdfast/runner/logbook"
)

// TestAgentProcess is not a test: other tests start it as an agent that can be
// killed.
func TestAgentProcess(t *testing.T) {
	dir := os.Getenv("HOLDFAST_TEST_AGENT_DIR")
	if dir == "" {
		return
	}
	var executor runner.AttemptExecutor = fakeExecutor{dir: dir, run: func(ctx context.Context, a protocol.Assignment, s runner.Session) protocol.Result {
		return untilKilled(t, ctx, filepath.Join(dir, "workspaces", a.Run), a, s)
	}}
	if os.Getenv("HOLDFAST_TEST_AGENT_REAL") != "" {
		executor = realExecutor(t, dir)
	}
	agent, err := runner.NewAgent(runner.AgentOptions{
		About: runner.About{ID: "agent-1"}, Server: runner.Server{URL: os.Getenv("HOLDFAST_TEST_AGENT_SERVER"), Token: "agent-token"}, Dir: dir, Executor: executor,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// untilKilled starts an engine that never ends, and as an apply would leaves
// traces of having begun.
func untilKilled(t *testing.T, ctx context.Context, workspace string, a protocol.Assignment, s runner.Session) protocol.Result {
	runtime.LockOSThread() // the engine dies with its parent's thread
	engine := exec.CommandContext(ctx, "sleep", "1000")
	engine.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := engine.Start(); err != nil {
		t.Error(err)
	}
	if a.Kind == holdfast.RunApply {
		for !s.MayApply() {
			time.Sleep(time.Millisecond)
		}
		if status, _ := stateRequest(t, s, http.MethodPost, "?ID=a", `{"serial":1}`); status != http.StatusOK {
			t.Errorf("POST = %d", status)
		}
		progress := journal.NewProgress(s.(logbook.ProgressKeeper).NoteProgress)
		engine := io.MultiWriter(s.Log(), progress)
		_, _ = fmt.Fprintln(engine, "terraform_data.a: Creating...\nterraform_data.b: Creating...\nterraform_data.a: Creation complete after 0s")
		for range 6 { // more than is kept of the log
			_, _ = s.Log().Write(bytes.Repeat([]byte("a line as provisioners print many of them\n"), 1<<20/40))
		}
		_ = os.MkdirAll(filepath.Join(workspace, "root"), 0o700)
		_ = os.WriteFile(filepath.Join(workspace, "root", "errored.tfstate"), []byte(`{"serial":2}`), 0o600)
	}
	_, _ = fmt.Fprintf(s.Log(), "engine %d\n", engine.Process.Pid)
	select {}
}

// killAgent starts an agent as a process, waits until its engine runs, kills
// it, and returns when the engine is dead.
func killAgent(t *testing.T, server *fakeServer, dir, run string, before func()) {
	t.Helper()
	agent := agentProcess(t, server, dir)
	engine := 0
	server.until(t, "the engine runs", func() bool {
		_, after, ok := strings.Cut(string(server.logs[run]), "engine ")
		pid, rest, done := strings.Cut(after, "\n")
		engine, _ = strconv.Atoi(pid)
		return ok && done && rest == ""
	})
	if before != nil {
		before()
	}
	_ = agent.Process.Kill()
	_ = agent.Wait()
	untilDead(t, engine)
}

// agentProcess starts an agent as a separate process.
func agentProcess(t *testing.T, server *fakeServer, dir string, env ...string) *exec.Cmd {
	t.Helper()
	agent := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAgentProcess$")
	agent.Env = append(os.Environ(), "HOLDFAST_TEST_AGENT_DIR="+dir, "HOLDFAST_TEST_AGENT_SERVER="+server.url)
	agent.Env = append(agent.Env, env...)
	agent.Stderr = os.Stderr
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	return agent
}

func untilDead(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); alive(pid); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("process %d outlived its agent", pid)
		}
	}
}

// alive reports whether a process runs; a zombie does not.
func alive(pid int) bool {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if state, ok := strings.CutPrefix(lines.Text(), "State:"); ok {
			return !strings.HasPrefix(strings.TrimSpace(state), "Z")
		}
	}
	return false
}

func TestKilledAgentsApplyIsReportedByItsSuccessor(t *testing.T) {
	t.Parallel()
	server, dir := newFakeServer(t), t.TempDir()
	server.assign(assignment("run-1", holdfast.RunApply))
	killAgent(t, server, dir, "run-1", nil)

	_, stop := startAgent(t, runner.AgentOptions{Server: runner.Server{URL: server.url}, Dir: dir, Executor: fakeExecutor{dir: dir}})
	result := server.result(t, "run-1")
	if result.Status != holdfast.RunInterrupted || result.Reason != holdfast.ReasonAgentKilled || !result.Applying || result.Fence != 7 {
		t.Errorf("result = %+v", result)
	}
	if result.Failure == nil {
		t.Fatal("the result has no failure")
	}
	if diff := cmp.Diff([]string{"terraform_data.b"}, result.Failure.Unrecorded); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"terraform_data.a: created"}, result.Failure.Completed); diff != "" || !result.Failure.ProgressLost {
		t.Error(diff, result.Failure.ProgressLost) // what it had not read yet is not known
	}
	server.until(t, "the agent claims", func() bool { return len(server.claims) > 1 })
	if err := stop(); err != nil {
		t.Error(err)
	}
	if got := string(server.objects["run-1/errored.tfstate"]); got != `{"serial":2}` {
		t.Errorf("errored.tfstate = %q", got)
	}
	if log := string(server.logs["run-1"]); strings.Count(log, "Creation complete") != 1 || !strings.Contains(log, "the agent was killed") {
		t.Errorf("log = %q", log)
	}
	if diff := cmp.Diff([]string{`{"serial":1}`, `{"serial":2}`}, server.states); diff != "" {
		t.Error(diff)
	}
	for _, left := range []string{"attempts", "workspaces", "quarantine"} {
		if !isEmpty(t, filepath.Join(dir, left)) {
			t.Errorf("something was left in %s", left)
		}
	}
}

func TestKilledAgentsPlanChangedNothing(t *testing.T) {
	t.Parallel()
	server, dir := newFakeServer(t), t.TempDir()
	server.assign(assignment("run-1", holdfast.RunPlan))
	killAgent(t, server, dir, "run-1", nil)
	_, _ = startAgent(t, runner.AgentOptions{Server: runner.Server{URL: server.url}, Dir: dir, Executor: fakeExecutor{dir: dir}})
	if result := server.result(t, "run-1"); result.Reason != holdfast.ReasonAgentKilled || result.Applying || len(result.Failure.Unrecorded) > 0 {
		t.Errorf("result = %+v", result)
	}
}

func TestSuccessorIsListedUntilAllIsDelivered(t *testing.T) {
	t.Parallel()
	server, dir := newFakeServer(t), t.TempDir()
	server.assign(assignment("run-1", holdfast.RunApply))
	hold := make(chan struct{})
	killAgent(t, server, dir, "run-1", func() {
		server.set(func() {
			server.answer = func(_ http.ResponseWriter, r *http.Request) bool {
				if strings.HasSuffix(r.URL.Path, "/result") {
					<-hold
				}
				return false
			}
		})
	})
	server.mu.Lock()
	claims, beats := len(server.claims), server.beats["run-1"]
	server.mu.Unlock()
	_, _ = startAgent(t, runner.AgentOptions{Server: runner.Server{URL: server.url}, Dir: dir, Executor: fakeExecutor{dir: dir}})
	server.until(t, "the successor claims and beats", func() bool {
		return len(server.claims) > claims && server.beats["run-1"] > beats
	})
	server.mu.Lock()
	got := server.claims[claims].Executing
	server.mu.Unlock()
	if diff := cmp.Diff([]holdfast.AttemptRef{{Run: "run-1", Attempt: 1, Fence: 7}}, got); diff != "" {
		t.Error(diff)
	}
	close(hold)
	server.result(t, "run-1")
}
