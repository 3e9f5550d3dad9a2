package runner_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner"
	"github.com/holdfast-dev/holdfast/runner/attempt"
)

// withSession runs test as the execution of one attempt, and waits for its
// result.
func withSession(t *testing.T, server *fakeServer, dir string, a protocol.Assignment, test func(ctx context.Context, s runner.Session)) {
	t.Helper()
	_, _ = startAgent(t, runner.AgentOptions{Server: runner.Server{URL: server.url}, Dir: dir, Executor: fakeExecutor{
		run: func(ctx context.Context, _ protocol.Assignment, s runner.Session) protocol.Result {
			test(ctx, s)
			return protocol.Result{Status: holdfast.RunApplied}
		},
	}})
	server.assign(a)
	server.result(t, a.Run)
}

func TestStateEndpointForwards(t *testing.T) {
	t.Parallel()
	server := newFakeServer(t)
	withSession(t, server, t.TempDir(), assignment("run-1", holdfast.RunApply), func(_ context.Context, s runner.Session) {
		steps := []struct {
			method, query, body string
			status              int
			answer              string
		}{
			{"GET", "", "", http.StatusNoContent, ""},
			{"LOCK", "", `{"ID":"a","Who":"me"}`, http.StatusOK, ""},
			// The id releases the lock, and is for whoever has taken it.
			{"LOCK", "", `{"ID":"b"}`, http.StatusLocked, `{"ID":"held-by-this-run","Who":"me"}`},
			{"UNLOCK", "", `{"ID":"held-by-this-run"}`, http.StatusConflict, "that is not the lock of this phase\n"},
			// Asked for again because the answer was lost: granted.
			{"LOCK", "", `{"ID":"a","Who":"me"}`, http.StatusOK, ""},
			{"POST", "?ID=a", `{"serial":1}`, http.StatusOK, ""},
			{"GET", "", "", http.StatusOK, `{"serial":1}`},
			{"UNLOCK", "", `{"ID":"a"}`, http.StatusOK, ""},
			{"UNLOCK", "", "", http.StatusConflict, "that is not the lock of this phase\n"},
			{"DELETE", "", "", http.StatusMethodNotAllowed, "method not allowed\n"},
		}
		for _, step := range steps {
			status, answer := stateRequest(t, s, step.method, step.query, step.body)
			if status != step.status || answer != step.answer {
				t.Errorf("%s %s = %d %q, want %d %q", step.method, step.body, status, answer, step.status, step.answer)
			}
		}
	})
	if diff := cmp.Diff([]string{"state a", "unlock", "result run-1"}, server.events); diff != "" {
		t.Error(diff)
	}
}

// TestLockOfAnotherIsNamed: a person needs the id of a lock that a run waits for.
func TestLockOfAnotherIsNamed(t *testing.T) {
	t.Parallel()
	server := newFakeServer(t)
	server.lock = []byte(`{"ID":"theirs","Who":"a person"}`)
	withSession(t, server, t.TempDir(), assignment("run-1", holdfast.RunPlan), func(_ context.Context, s runner.Session) {
		for range 2 {
			status, answer := stateRequest(t, s, "LOCK", "", `{"ID":"ours"}`)
			if want := string(server.lock); status != http.StatusLocked || answer != want {
				t.Errorf("LOCK = %d %q, want %d %q", status, answer, http.StatusLocked, want)
			}
		}
	})
}

func TestStateEndpointKnowsItsOwn(t *testing.T) {
	t.Parallel()
	server := newFakeServer(t)
	withSession(t, server, t.TempDir(), assignment("run-1", holdfast.RunPlan), func(_ context.Context, s runner.Session) {
		addr, user, password := s.StateAddress()
		if !strings.HasPrefix(addr, "http://127.0.0.1:") || len(password) < 20 {
			t.Errorf("StateAddress = %s, password of %d characters", addr, len(password))
		}
		for _, method := range []string{"LOCK", "UNLOCK"} {
			if got, _ := requestAs(t, method, addr, user, password, `{"ID":"a"}`); got != http.StatusOK {
				t.Errorf("a plan may %s: %d, want 200", method, got)
			}
		}
		for name, tt := range map[string]struct {
			method, url, user, password string
			want                        int
		}{
			"a plan may read":         {"GET", addr, user, password, http.StatusNoContent},
			"a plan must not write":   {"POST", addr, user, password, http.StatusForbidden},
			"a wrong password":        {"GET", addr, user, password + "x", http.StatusUnauthorized},
			"no password":             {"GET", addr, user, "", http.StatusUnauthorized},
			"another user":            {"GET", addr, "run-2-1", password, http.StatusUnauthorized},
			"another path":            {"GET", addr + "/other", user, password, http.StatusNotFound},
			"another state's address": {"GET", strings.TrimSuffix(addr, "state") + "agent/v1/state/x", user, password, http.StatusNotFound},
		} {
			if got, _ := requestAs(t, tt.method, tt.url, tt.user, tt.password, `{"ID":"a"}`); got != tt.want {
				t.Errorf("%s: %d, want %d", name, got, tt.want)
			}
		}
	})
	if len(server.states) > 0 {
		t.Error("a plan wrote state")
	}
}

// TestStateCredentialOfAPhase: what the engine is given to plan with does not
// write, not even in an apply, and nothing releases a lock but whoever holds it.
func TestStateCredentialOfAPhase(t *testing.T) {
	t.Parallel()
	server := newFakeServer(t)
	withSession(t, server, t.TempDir(), assignment("run-1", holdfast.RunApply), func(_ context.Context, s runner.Session) {
		addr, user, password := s.StateAddress()
		_, _, writing := s.(attempt.StateWriter).WriteAddress()
		if writing == "" || writing == password {
			t.Fatal("planning and applying have the same credential")
		}
		for _, step := range []struct {
			method, query, password, body string
			want                          int
		}{
			{"LOCK", "", password, `{"ID":"a"}`, http.StatusOK},
			{"UNLOCK", "", password, "", http.StatusConflict},
			{"UNLOCK", "", password, `{"ID":"b"}`, http.StatusConflict},
			{"UNLOCK", "", writing, `{"ID":"a"}`, http.StatusConflict},
			{"UNLOCK", "", password, `{"ID":"a"}`, http.StatusOK},
			{"UNLOCK", "", password, `{"ID":"a"}`, http.StatusOK}, // again: the answer was lost
			{"LOCK", "", writing, `{"ID":"a"}`, http.StatusOK},
			{"UNLOCK", "", password, `{"ID":"a"}`, http.StatusConflict},
			{"POST", "?ID=a", password, `{"serial":1}`, http.StatusForbidden},
			{"POST", "?ID=a", writing, `{"serial":2}`, http.StatusOK},
			{"UNLOCK", "", writing, `{"ID":"a"}`, http.StatusOK},
		} {
			if got, answer := requestAs(t, step.method, addr+step.query, user, step.password, step.body); got != step.want {
				t.Errorf("%s %q: %d (%s), want %d", step.method, step.body, got, answer, step.want)
			}
		}
	})
	withSession(t, newFakeServer(t), t.TempDir(), assignment("run-2", holdfast.RunPlan), func(_ context.Context, s runner.Session) {
		addr, user, _ := s.StateAddress()
		if _, _, writing := s.(attempt.StateWriter).WriteAddress(); writing != "" {
			t.Error("a plan has a credential to write with")
		}
		if got, _ := requestAs(t, "GET", addr, user, "", ""); got != http.StatusUnauthorized {
			t.Errorf("an empty password is answered with %d", got)
		}
	})
}

func TestServerAwayDuringAnApply(t *testing.T) {
	t.Parallel()
	server, dir := newFakeServer(t), t.TempDir()
	written := make(chan struct{})
	_, stop := startAgent(t, runner.AgentOptions{Server: runner.Server{URL: server.url}, Dir: dir, Executor: fakeExecutor{
		run: func(ctx context.Context, _ protocol.Assignment, s runner.Session) protocol.Result {
			defer close(written)
			_, _ = stateRequest(t, s, "LOCK", "", `{"ID":"a"}`)
			_, _ = stateRequest(t, s, "GET", "", "")
			_, _ = fmt.Fprintln(s.Log(), "before")
			server.set(func() { server.down = true })
			// Engines read once more before they write the first state.
			if status, answer := stateRequest(t, s, "GET", "", ""); status != http.StatusNoContent {
				t.Errorf("GET of what was read before = %d %s", status, answer)
			}
			for serial := 1; serial <= 3; serial++ {
				body := fmt.Sprintf(`{"serial":%d}`, serial)
				if status, answer := stateRequest(t, s, "POST", "?ID=a", body); status != http.StatusOK {
					t.Errorf("POST while the server is away = %d %s", status, answer)
				}
				if status, answer := stateRequest(t, s, "GET", "", ""); status != http.StatusOK || answer != body {
					t.Errorf("GET while the server is away = %d %s, want what was written", status, answer)
				}
			}
			if status, _ := stateRequest(t, s, "UNLOCK", "", `{"ID":"a"}`); status != http.StatusOK {
				t.Errorf("UNLOCK while the server is away = %d", status)
			}
			_, _ = fmt.Fprintln(s.Log(), "while")
			if err := s.PutArtefact(ctx, "outputs", strings.NewReader("[]")); err != nil {
				t.Error(err)
			}
			return protocol.Result{Status: holdfast.RunApplied}
		},
	}})
	server.assign(assignment("run-1", holdfast.RunApply))
	<-written
	server.set(func() { server.down = false })
	server.result(t, "run-1")
	if err := stop(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{`{"serial":1}`, `{"serial":2}`, `{"serial":3}`}, server.states); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"LOCK a", "UNLOCK a"}, server.locks); diff != "" {
		t.Error(diff)
	}
	if got := server.events[len(server.events)-1]; got != "result run-1" {
		t.Errorf("the last thing delivered was %q", got)
	}
	if got := string(server.logs["run-1"]); got != "before\nwhile\n" {
		t.Errorf("log = %q", got)
	}
	if string(server.objects["run-1/outputs"]) != "[]" {
		t.Error("an artefact is missing")
	}
	if !isEmpty(t, filepath.Join(dir, "attempts")) {
		t.Error("the delivered attempt left something behind")
	}
}

func TestRefusedStateReachesTheEngineAndStaysOnDisk(t *testing.T) {
	t.Parallel()
	server, dir := newFakeServer(t), t.TempDir()
	server.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || !strings.Contains(r.URL.Path, "/state/") {
			return false
		}
		refuse(w, http.StatusConflict, "fenced off")
		return true
	}
	withSession(t, server, dir, assignment("run-1", holdfast.RunApply), func(_ context.Context, s runner.Session) {
		if status, answer := stateRequest(t, s, "POST", "?ID=a", `{"serial":9}`); status != http.StatusConflict || answer != "fenced off" {
			t.Errorf("refused POST = %d %s", status, answer)
		}
	})
	server.until(t, "the attempt is in quarantine", func() bool {
		found, _ := filepath.Glob(filepath.Join(dir, "quarantine", "run-1-1", "states", "refused-*-state"))
		if len(found) != 1 {
			go server.set(func() {}) // look again
			return false
		}
		data, err := os.ReadFile(found[0])
		if err != nil || !strings.HasSuffix(string(data), `{"serial":9}`) {
			t.Errorf("quarantine has %q, %v", data, err)
		}
		return true
	})
}

// TestRefusedStatesOnDiskAreBounded: of what an engine has uploaded and the server has
// refused the newest 20 stay.
func TestRefusedStatesOnDiskAreBounded(t *testing.T) {
	t.Parallel()
	server, dir := newFakeServer(t), t.TempDir()
	server.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || !strings.Contains(r.URL.Path, "/state/") {
			return false
		}
		refuse(w, http.StatusConflict, "fenced off")
		return true
	}
	withSession(t, server, dir, assignment("run-1", holdfast.RunApply), func(_ context.Context, s runner.Session) {
		for i := range 25 {
			if status, answer := stateRequest(t, s, "POST", "?ID=a", fmt.Sprintf(`{"serial":%d}`, i)); status != http.StatusConflict {
				t.Errorf("refused POST = %d %s", status, answer)
			}
		}
		found, _ := filepath.Glob(filepath.Join(dir, "attempts", "run-1-1", "states", "refused-*-state"))
		if len(found) != 20 {
			t.Errorf("%d refused states are on disk, want 20", len(found))
			return
		}
		for i, path := range found {
			if data, err := os.ReadFile(path); err != nil || !strings.HasSuffix(string(data), fmt.Sprintf(`{"serial":%d}`, i+5)) {
				t.Errorf("%s has %q, %v", filepath.Base(path), data, err)
			}
		}
	})
}

func TestStateEndpointNeverDeniesAStateByMistake(t *testing.T) {
	t.Parallel()
	server := newFakeServer(t)
	server.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet {
			return false
		}
		refuse(w, http.StatusNotFound, "no such thing")
		return true
	}
	withSession(t, server, t.TempDir(), assignment("run-1", holdfast.RunPlan), func(_ context.Context, s runner.Session) {
		if status, _ := stateRequest(t, s, "GET", "", ""); status != http.StatusBadGateway {
			t.Errorf("GET of a state that the server does not know = %d", status)
		}
	})
}

func TestStateThatWasGarbledOnItsWayIsSentAgain(t *testing.T) {
	t.Parallel()
	server := newFakeServer(t)
	var posts atomic.Int32
	server.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || !strings.Contains(r.URL.Path, "/state/") || posts.Add(1) > 2 {
			return false
		}
		refuse(w, http.StatusBadRequest, "Content-MD5 is not that of the state")
		return true
	}
	withSession(t, server, t.TempDir(), assignment("run-1", holdfast.RunApply), func(_ context.Context, s runner.Session) {
		if status, _ := stateRequest(t, s, "POST", "?ID=a", `{"serial":1}`); status != http.StatusOK {
			t.Errorf("POST = %d", status)
		}
	})
	if len(server.states) != 1 {
		t.Errorf("states = %v", server.states)
	}
}

func TestResultWhoseAnswerWasLostIsNotQuarantined(t *testing.T) {
	t.Parallel()
	server, dir := newFakeServer(t), t.TempDir()
	server.answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/result") && !server.isFenced("run-1") {
			server.set(func() { server.fenced["run-1"] = true }) // taken: the attempt is over
			panic(http.ErrAbortHandler)
		}
		return false
	}
	_, stop := startAgent(t, runner.AgentOptions{Server: runner.Server{URL: server.url}, Dir: dir, Executor: fakeExecutor{
		run: func(context.Context, protocol.Assignment, runner.Session) protocol.Result {
			return protocol.Result{Status: holdfast.RunApplied}
		},
	}})
	server.assign(assignment("run-1", holdfast.RunApply))
	server.until(t, "the result was taken", func() bool { return server.fenced["run-1"] })
	if err := stop(); err != nil {
		t.Error(err)
	}
	if !isEmpty(t, filepath.Join(dir, "attempts")) || !isEmpty(t, filepath.Join(dir, "quarantine")) {
		t.Error("a result that was taken was kept")
	}
}

func TestStateIsHeldOverARestartOfTheAgent(t *testing.T) {
	t.Parallel()
	server, dir := newFakeServer(t), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	agent, err := runner.NewAgent(runner.AgentOptions{
		About: runner.About{ID: "agent-1"}, Server: runner.Server{URL: server.url, Token: "agent-token"}, Dir: dir, Stop: runner.Stop{DeliverWait: -1},
		Executor: fakeExecutor{run: func(_ context.Context, _ protocol.Assignment, s runner.Session) protocol.Result {
			server.set(func() { server.down = true })
			for serial := 1; serial <= 12; serial++ {
				_, _ = stateRequest(t, s, "POST", "?ID=a", fmt.Sprintf(`{"serial":%d}`, serial))
			}
			return protocol.Result{Status: holdfast.RunApplied, Applying: true}
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx) }()
	server.assign(assignment("run-1", holdfast.RunApply))
	server.until(t, "the server is away", func() bool { return server.down })
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	server.set(func() { server.down = false })
	_, _ = startAgent(t, runner.AgentOptions{Server: runner.Server{URL: server.url}, Dir: dir, Executor: fakeExecutor{dir: dir}})
	if result := server.result(t, "run-1"); result.Status != holdfast.RunApplied || !result.Applying {
		t.Errorf("result = %+v", result)
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	if len(server.states) != 12 || server.states[0] != `{"serial":1}` || server.states[11] != `{"serial":12}` {
		t.Errorf("states = %v", server.states)
	}
	last := server.claims[len(server.claims)-1]
	if len(last.Executing) > 1 {
		t.Errorf("claim = %+v", last)
	}
}
