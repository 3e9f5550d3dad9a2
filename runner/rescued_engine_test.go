//go:build !race

package runner_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner"
)

// leaving is a backend of somebody else's that goes away after so many requests.
type leaving struct {
	store *stateServer

	mu   sync.Mutex
	left int // requests until then; negative: it stays
	seen int
}

func (l *leaving) stay(left int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left, l.seen = left, 0
}

func (l *leaving) requests() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen
}

func (l *leaving) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	away := l.left == 0
	if l.left > 0 {
		l.left--
	}
	l.seen++
	l.mu.Unlock()
	if away {
		panic(http.ErrAbortHandler)
	}
	l.store.ServeHTTP(w, r)
}

// TestBackendGoesAway has a foreign backend go away at each request of an apply:
// what was made is in the backend, or in the state that was rescued, which a run
// of kind state pushes when the backend is back. Nothing is made twice.
func TestBackendGoesAway(t *testing.T) {
	t.Parallel()
	realEngine(t)
	e, _ := newExecutor(t, nil)
	backend := &leaving{store: newStateServer(t)}
	server := httptest.NewServer(backend)
	t.Cleanup(server.Close)

	unsaved := 0
	apply := func(left int) (requests int) {
		name := fmt.Sprintf("at-%d", left+1)
		s := newMemorySession(map[string]string{"main.tf": fmt.Sprintf(`terraform {
  backend "http" {
    address        = "%[1]s/%[2]s"
    lock_address   = "%[1]s/%[2]s"
    unlock_address = "%[1]s/%[2]s"
    retry_max      = 0
  }
}
resource "terraform_data" "x" { input = "made" }
`, server.URL, name)})
		foreign := func(run string, kind holdfast.RunKind) holdfast.Assignment {
			a := engineAssignment(run, kind)
			a.OwnState = false
			return a
		}
		backend.stay(-1)
		planned := e.Execute(t.Context(), foreign(name+"-plan", holdfast.RunPlan), s)
		wantStatus(t, planned, holdfast.RunPlanned, "", s)

		backend.stay(left)
		a := foreign(name+"-apply", holdfast.RunApply)
		a.Reviews = review(name+"-plan", planned)
		got := e.Execute(t.Context(), a, s)
		requests = backend.requests()
		backend.stay(-1)

		made := len(got.Steps) > 0 && strings.Contains(s.logged(), "Creation complete")
		saved := strings.Contains(backend.store.state("/"+name), `"made"`)
		rescued := s.artefacts[holdfast.ArtefactErrored]
		switch {
		case !made, saved:
			if got.Reason == holdfast.CauseStateUnsaved && saved && rescued == nil {
				t.Errorf("%s: a state that was saved is said to be unsaved", name)
			}
			return requests
		case got.Status != holdfast.RunErrored, got.Reason != holdfast.CauseStateUnsaved, got.Failure.Transient, !strings.Contains(string(rescued), `"made"`):
			t.Fatalf("%s: something was made and is not in the state: %s %s %+v, rescued %q\n%s", name, got.Status, got.Reason, got.Failure, rescued, s.logged())
		}
		unsaved++
		push(t, e, s, foreign(name+"-push", holdfast.RunState), rescued)
		if !strings.Contains(backend.store.state("/"+name), `"made"`) {
			t.Errorf("%s: the state was not pushed", name)
		}
		wantStatus(t, e.Execute(t.Context(), foreign(name+"-again", holdfast.RunPlan), s), holdfast.RunNoChanges, "", s)
		return requests
	}
	all := apply(-1)
	if all < 6 {
		t.Fatalf("an apply makes %d requests only", all)
	}
	for left := range all {
		apply(left)
	}
	if unsaved == 0 {
		t.Error("it was never away when the state was to be saved")
	}
}

// TestS3GoesAway: an object store that goes away when an apply saves its state leaves the
// state to the agent, and its lock in the store. Once it is back and the lock is
// released, the state is pushed, and nothing is made twice.
func TestS3GoesAway(t *testing.T) {
	t.Parallel()
	realEngine(t)
	var leaves, away atomic.Bool
	b := newBucket(t, func(store http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if leaves.Load() && r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, stateKey) {
				away.Store(true)
			}
			if away.Load() {
				panic(http.ErrAbortHandler)
			}
			store.ServeHTTP(w, r)
		})
	})
	e, _ := newExecutor(t, nil)
	s := newMemorySession(b.code(`resource "terraform_data" "x" { input = "made" }`))
	foreign := func(run string, kind holdfast.RunKind) holdfast.Assignment {
		a := engineAssignment(run, kind)
		a.OwnState, a.LockTimeout = false, new(time.Duration) // what is locked is not waited for
		return a
	}
	planned := e.Execute(t.Context(), foreign("run-1", holdfast.RunPlan), s)
	wantStatus(t, planned, holdfast.RunPlanned, "", s)

	leaves.Store(true)
	a := foreign("run-2", holdfast.RunApply)
	a.Reviews = review("run-1", planned)
	got := e.Execute(t.Context(), a, s)
	wantStatus(t, got, holdfast.RunErrored, holdfast.CauseStateUnsaved, s)
	rescued := s.artefacts[holdfast.ArtefactErrored]
	if !away.Load() || got.Failure.Transient || !strings.Contains(string(rescued), `"made"`) {
		t.Fatalf("away %v, transient %v, rescued %q", away.Load(), got.Failure.Transient, rescued)
	}

	leaves.Store(false)
	away.Store(false)
	if b.has(stateKey) || !b.has(stateKey+".tflock") {
		t.Error("the store has the state, or no lock")
	}
	found := e.Execute(t.Context(), foreign("run-3", holdfast.RunPlan), s)
	wantStatus(t, found, holdfast.RunErrored, holdfast.CauseStateLocked, s)
	lock, ok := holdfast.LockOf(holdfast.Run{RunOutcome: holdfast.RunOutcome{Failure: found.Failure}})
	if !ok {
		t.Fatalf("the failure names no lock: %+v", found.Failure)
	}
	unlock := foreign("run-4", holdfast.RunState)
	unlock.State = &holdfast.StateJob{Action: holdfast.StateUnlock, LockID: lock.ID}
	wantStatus(t, e.Execute(t.Context(), unlock, s), holdfast.RunApplied, "", s)
	push(t, e, s, foreign("run-5", holdfast.RunState), rescued)
	wantStatus(t, e.Execute(t.Context(), foreign("run-6", holdfast.RunPlan), s), holdfast.RunNoChanges, "", s)
}

func push(t *testing.T, e *runner.Executor, s *memorySession, a holdfast.Assignment, state []byte) holdfast.Result {
	t.Helper()
	a.State = &holdfast.StateJob{Action: holdfast.StatePush}
	s.stored = map[string]map[string][]byte{a.Run: {holdfast.ArtefactErrored: state}}
	got := e.Execute(t.Context(), a, s)
	wantStatus(t, got, holdfast.RunApplied, "", s)
	return got
}

// TestPushIsChecked: the engine refuses a state that does not follow the one that
// the backend has, and what it refuses is not tried again.
func TestPushIsChecked(t *testing.T) {
	t.Parallel()
	realEngine(t)
	e, _ := newExecutor(t, nil)
	states := newStateServer(t)
	s := newMemorySession(map[string]string{"main.tf": `resource "terraform_data" "x" {}`})
	s.state = states.URL + "/x"
	state := func(serial int, lineage string) []byte {
		return fmt.Appendf(nil, `{"version": 4, "terraform_version": "1.5.0", "serial": %d, "lineage": %q, "outputs": {"made": {"value": "x", "type": "string"}}, "resources": []}`, serial, lineage)
	}
	push(t, e, s, engineAssignment("run-1", holdfast.RunState), state(5, "one"))
	before := states.state("/x")
	for name, refused := range map[string][]byte{"older": state(4, "one"), "another": state(9, "two")} {
		a := engineAssignment("run-"+name, holdfast.RunState)
		a.State = &holdfast.StateJob{Action: holdfast.StatePush}
		s.stored = map[string]map[string][]byte{a.Run: {holdfast.ArtefactErrored: refused}}
		got := e.Execute(t.Context(), a, s)
		wantStatus(t, got, holdfast.RunErrored, "Conflict", s)
		if got.Failure.Transient || !strings.Contains(got.Failure.Hint, "holdfast state") {
			t.Errorf("%s: failure %+v", name, got.Failure)
		}
		if states.state("/x") != before {
			t.Errorf("%s: the backend's state was replaced", name)
		}
	}
	a := engineAssignment("run-none", holdfast.RunState)
	a.State = &holdfast.StateJob{Action: holdfast.StatePush}
	got := e.Execute(t.Context(), a, s)
	wantStatus(t, got, holdfast.RunErrored, "ArtefactUnavailable", s)
}
