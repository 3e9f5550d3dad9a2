package runner_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner"
)

// TestAgentSaysThatItIsThere: with all slots taken it claims nothing, and is heard of
// all the same. Claims and heartbeats name its process; the next one in its folder is
// another one.
func TestAgentSaysThatItIsThere(t *testing.T) {
	t.Parallel()
	server, dir, gate := newFakeServer(t), t.TempDir(), make(chan struct{})
	opts := runner.AgentOptions{
		Server: runner.Server{URL: server.url}, Dir: dir, Claims: runner.Claims{Slots: 1}, About: runner.About{Isolation: "slots", Version: "1.2.3"}, Executor: fakeExecutor{
			run: func(context.Context, protocol.Assignment, runner.Session) protocol.Result {
				<-gate
				return protocol.Result{Status: holdfast.RunNoChanges}
			},
		},
	}
	_, stop := startAgent(t, opts)
	server.assign(assignment("run-1", holdfast.RunPlan))
	server.until(t, "the busy agent says that it is there", func() bool { return len(server.present) > 1 && len(server.beating) > 0 })
	server.mu.Lock()
	claim, there, beat := server.claims[0], server.present[1], server.beating[0]
	server.mu.Unlock()
	if len(there.Executing) != 1 || there.Executing[0].Run != "run-1" {
		t.Errorf("it executes %+v", there.Executing)
	}
	if claim.Process == "" || claim.Folder == "" || claim.Ref() != there.Ref() || beat.Process != claim.Process {
		t.Errorf("claim of %+v, presence of %+v, heartbeat of %q", claim.Ref(), there.Ref(), beat.Process)
	}
	if claim.Slots != 1 || claim.Version != "1.2.3" || claim.Isolation != "slots" || claim.Host == "" {
		t.Errorf("claim = %+v", claim)
	}
	close(gate)
	server.result(t, "run-1")
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	startAgent(t, opts)
	// The last claim of the first process may come as late as this.
	var next protocol.ClaimRequest
	server.until(t, "the next process claims", func() bool {
		next = server.claims[len(server.claims)-1]
		return next.Process != claim.Process
	})
	if next.Process == "" || next.Folder != claim.Folder {
		t.Errorf("after %+v came %+v", claim.Ref(), next.Ref())
	}
}

// TestAgentThatIsRefusedEnds: it cannot help itself, and says what to look at. What it
// has to deliver comes first.
func TestAgentThatIsRefusedEnds(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits until an agent gives up")
	}
	for status, words := range map[int]string{http.StatusUnauthorized: "agent token missing or unknown", http.StatusForbidden: "may claim plan"} {
		lookAt := map[int]string{http.StatusUnauthorized: "--token-file", http.StatusForbidden: "--id, --kinds and --isolation"}[status]
		server, gate := newFakeServer(t), make(chan struct{})
		agent, err := runner.NewAgent(runner.AgentOptions{
			About: runner.About{ID: "agent-1"}, Server: runner.Server{URL: server.url, Token: "agent-token"}, Dir: t.TempDir(), Claims: runner.Claims{Slots: 3}, Executor: fakeExecutor{
				run: func(context.Context, protocol.Assignment, runner.Session) protocol.Result {
					<-gate
					return protocol.Result{Status: holdfast.RunNoChanges}
				},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- agent.Run(t.Context()) }()
		server.assign(assignment("run-1", holdfast.RunPlan))
		server.until(t, "the run is executed", func() bool { return server.beats["run-1"] > 0 })
		refused := make(chan struct{}, 1000)
		server.set(func() {
			server.answer = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "/claims") {
					return false
				}
				refuse(w, status, words)
				refused <- struct{}{}
				return true
			}
		})
		server.assign(assignment("run-2", holdfast.RunPlan)) // ends the claim that waits, if one does already
		<-refused
		select {
		case err := <-ended:
			t.Fatalf("it ended with a run in hand: %v", err)
		default:
		}
		close(gate)
		server.result(t, "run-1")
		err = <-ended
		var refusal *runner.RefusedError
		if !errors.As(err, &refusal) || !strings.Contains(err.Error(), words) || !strings.Contains(err.Error(), lookAt) {
			t.Errorf("after %d it ended with %v", status, err)
		}
	}
}

// TestAgentDoesNotTrustAnotherAuthority: it ends with words, since nothing but another
// setting helps.
func TestAgentDoesNotTrustAnotherAuthority(t *testing.T) {
	t.Parallel()
	strange := httptest.NewTLSServer(http.NotFoundHandler())
	defer strange.Close()
	agent, err := runner.NewAgent(runner.AgentOptions{
		About: runner.About{ID: "agent-1"}, Server: runner.Server{URL: strange.URL, Token: "t"}, Dir: t.TempDir(), Executor: fakeExecutor{},
	})
	if err != nil {
		t.Fatal(err)
	}
	err = agent.Run(t.Context())
	var refusal *runner.RefusedError
	if !errors.As(err, &refusal) || !strings.Contains(err.Error(), "--ca-file") || !strings.Contains(err.Error(), strange.URL) {
		t.Errorf("it ended with %v", err)
	}
}
