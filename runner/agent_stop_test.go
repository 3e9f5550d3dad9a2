package runner_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner"
)

func TestShutdown(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		grace     time.Duration
		interrupt bool
		finish    bool // the attempt ends on its own in the grace
		want      holdfast.Reason
	}{
		"within the grace":    {grace: time.Hour, finish: true, want: "Done"},
		"after the grace":     {grace: time.Millisecond, want: holdfast.ReasonAgentKilled},
		"without a grace":     {grace: -1, want: holdfast.ReasonAgentKilled},
		"by a second request": {grace: time.Hour, interrupt: true, want: holdfast.ReasonAgentKilled},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newFakeServer(t)
			began, finish := make(chan struct{}), make(chan struct{})
			agent, stop := startAgent(t, runner.AgentOptions{Server: runner.Server{URL: server.url}, Dir: t.TempDir(), Stop: runner.Stop{Grace: tt.grace}, Executor: fakeExecutor{
				run: func(ctx context.Context, a protocol.Assignment, s runner.Session) protocol.Result {
					close(began)
					select {
					case <-finish:
						return protocol.Result{Status: holdfast.RunApplied, Reason: "Done"}
					case <-ctx.Done():
						return untilStopped(ctx, a, s)
					}
				},
			}})
			server.assign(assignment("run-1", holdfast.RunApply))
			<-began
			ended := make(chan error, 1)
			go func() { ended <- stop() }()
			if tt.interrupt {
				agent.Interrupt()
			}
			if tt.finish {
				close(finish)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if result := server.result(t, "run-1"); result.Reason != tt.want {
				t.Errorf("result = %+v, want reason %s", result, tt.want)
			}
		})
	}
}

func TestPanicIsAResult(t *testing.T) {
	t.Parallel()
	server := newFakeServer(t)
	_, _ = startAgent(t, runner.AgentOptions{Server: runner.Server{URL: server.url}, Dir: t.TempDir(), Executor: fakeExecutor{
		run: func(context.Context, protocol.Assignment, runner.Session) protocol.Result { panic("boom") },
	}})
	server.assign(assignment("run-1", holdfast.RunPlan))
	if result := server.result(t, "run-1"); result.Status != holdfast.RunErrored || result.Failure == nil {
		t.Errorf("result = %+v", result)
	}
}

func TestAttemptThatCannotBeginIsReported(t *testing.T) {
	t.Parallel()
	server, dir := newFakeServer(t), t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "attempts"), 0o700); err != nil {
		t.Fatal(err)
	}
	executed := false
	_, stop := startAgent(t, runner.AgentOptions{Server: runner.Server{URL: server.url}, Dir: dir, Executor: fakeExecutor{
		run: func(context.Context, protocol.Assignment, runner.Session) protocol.Result {
			executed = true
			return protocol.Result{Status: holdfast.RunPlanned}
		},
	}})
	server.until(t, "the agent claims", func() bool { return len(server.claims) > 0 })
	if err := os.WriteFile(filepath.Join(dir, "attempts", "run-1-1"), nil, 0o600); err != nil { // in the way
		t.Fatal(err)
	}
	server.assign(assignment("../run", holdfast.RunPlan), assignment("run-1", holdfast.RunPlan))
	result := server.result(t, "run-1")
	want := &holdfast.Failure{Step: "prepare", Cause: "Workspace", Transient: true}
	got := &holdfast.Failure{Step: result.Failure.Step, Cause: result.Failure.Cause, Transient: result.Failure.Transient}
	if diff := cmp.Diff(want, got); diff != "" || result.Status != holdfast.RunErrored {
		t.Errorf("result = %+v: %s", result, diff)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if executed {
		t.Error("an attempt without a folder was executed")
	}
}

func TestAgentOutlivesWhateverAnswersItsClaims(t *testing.T) {
	t.Parallel()
	server := newFakeServer(t)
	var asked atomic.Int32
	server.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/claims") {
			return false
		}
		switch asked.Add(1) {
		case 1:
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, "<html>")
		case 2:
			_, _ = io.WriteString(w, "<html>not JSON</html>")
		default:
			return false
		}
		return true
	}
	_, _ = startAgent(t, runner.AgentOptions{Server: runner.Server{URL: server.url}, Dir: t.TempDir(), Executor: fakeExecutor{
		run: func(context.Context, protocol.Assignment, runner.Session) protocol.Result {
			return protocol.Result{Status: holdfast.RunPlanned}
		},
	}})
	server.assign(assignment("run-1", holdfast.RunPlan))
	server.result(t, "run-1")
}

// A disk that takes nothing is played by a folder that is gone.
func TestOutcomeSurvivesADiskThatTakesNothing(t *testing.T) {
	t.Parallel()
	server, dir := newFakeServer(t), t.TempDir()
	withSession(t, server, dir, assignment("run-1", holdfast.RunApply), func(ctx context.Context, s runner.Session) {
		if err := os.RemoveAll(filepath.Join(dir, "attempts", "run-1-1")); err != nil {
			t.Error(err)
		}
		if s.MayApply() {
			t.Error("an apply may begin that cannot be written down")
		}
		if err := s.PutArtefact(ctx, "outputs", strings.NewReader("[]")); err == nil {
			t.Error("PutArtefact = nil although nothing was kept")
		}
		if status, _ := stateRequest(t, s, "LOCK", "", `{"ID":"a"}`); status != http.StatusOK {
			t.Errorf("LOCK = %d", status)
		}
		if status, answer := stateRequest(t, s, "POST", "?ID=a", `{"serial":1}`); status != http.StatusOK {
			t.Errorf("POST = %d %s", status, answer)
		}
		if status, _ := stateRequest(t, s, "UNLOCK", "", `{"ID":"a"}`); status != http.StatusOK {
			t.Errorf("UNLOCK = %d", status)
		}
		server.set(func() { server.down = true })
		if status, _ := stateRequest(t, s, "GET", "", ""); status != http.StatusOK {
			t.Errorf("GET of what the server has taken = %d", status)
		}
		server.set(func() { server.down = false })
	})
	if len(server.states) != 1 || len(server.locks) != 2 {
		t.Errorf("states %v, locks %v", server.states, server.locks)
	}
}
