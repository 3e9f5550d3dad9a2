//go:build !race

package runner_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner"
	"github.com/holdfast-dev/holdfast/statelock"
)

// leaving is a backend of somebody else's that goes away after so many requests.
type leaving struct {
	store http.Handler

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
	e, _ := newRealExecutor(t)
	states := newStateServer(t)
	backend := &leaving{store: states}
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
		foreign := func(run string, kind holdfast.RunKind) protocol.Assignment {
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
		saved := strings.Contains(states.state("/"+name), `"made"`)
		rescued := s.artefacts[protocol.ArtefactErrored]
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
		if !strings.Contains(states.state("/"+name), `"made"`) {
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

// TestS3GoesAway has an object store go away at each request of an apply: what was made is in
// the store, or in the state that was rescued. Once the store is back and the lock that was
// left in it is released, that state is pushed, and nothing is made twice.
func TestS3GoesAway(t *testing.T) {
	t.Parallel()
	realEngine(t)
	store := &leaving{left: -1}
	b := newBucket(t, func(s http.Handler) http.Handler {
		store.store = s
		return store
	})
	e, _ := newRealExecutor(t)
	files := b.code(`resource "terraform_data" "x" { input = "made" }`)
	foreign := func(run string, kind holdfast.RunKind) protocol.Assignment {
		a := engineAssignment(run, kind)
		a.OwnState, a.LockTimeout = false, new(time.Duration) // what is locked is not waited for
		return a
	}
	s := newMemorySession(files)
	planned := e.Execute(t.Context(), foreign("plan", holdfast.RunPlan), s)
	wantStatus(t, planned, holdfast.RunPlanned, "", s)

	unsaved := 0
	apply := func(left int) (requests int) {
		name, s := fmt.Sprintf("at-%d", left+1), newMemorySession(files)
		a := foreign(name, holdfast.RunApply)
		a.Reviews = review("plan", planned)
		store.stay(left)
		got := e.Execute(t.Context(), a, s)
		requests = store.requests()
		store.stay(-1)

		made, saved, rescued := strings.Contains(s.logged(), "Creation complete"), b.has(stateKey), s.artefacts[protocol.ArtefactErrored]
		switch {
		case !made && saved:
			t.Errorf("%s: there is a state of nothing", name)
		case !made, saved:
			if got.Reason == holdfast.CauseStateUnsaved || rescued != nil {
				t.Errorf("%s: made %t, saved %t, but %s, rescued %q", name, made, saved, got.Reason, rescued)
			}
		case got.Status != holdfast.RunErrored, got.Reason != holdfast.CauseStateUnsaved, got.Failure.Transient, !strings.Contains(string(rescued), `"made"`):
			t.Fatalf("%s: something was made and is not in the state: %s %s %+v, rescued %q\n%s", name, got.Status, got.Reason, got.Failure, rescued, s.logged())
		default:
			unsaved++
			b.unlock(e, foreign(name+"-locked", holdfast.RunPlan), foreign(name+"-unlock", holdfast.RunState), s)
			push(t, e, s, foreign(name+"-push", holdfast.RunState), rescued)
			wantStatus(t, e.Execute(t.Context(), foreign(name+"-again", holdfast.RunPlan), s), holdfast.RunNoChanges, "", s)
		}
		b.remove(stateKey)
		b.remove(stateKey + ".tflock")
		return requests
	}
	all := apply(-1)
	if all < 5 {
		t.Fatalf("an apply makes %d requests only", all)
	}
	for left := range all {
		apply(left)
	}
	if unsaved == 0 {
		t.Error("it was never away when the state was to be saved")
	}
}

// unlock releases the lock that keeps a run from its state, whose failure names it.
func (b bucket) unlock(e *runner.Executor, locked, unlock protocol.Assignment, s *memorySession) {
	b.t.Helper()
	found := e.Execute(b.t.Context(), locked, s)
	wantStatus(b.t, found, holdfast.RunErrored, holdfast.CauseStateLocked, s)
	lock, ok := statelock.Of(holdfast.Run{RunOutcome: holdfast.RunOutcome{Failure: found.Failure}})
	if !ok {
		b.t.Fatalf("the failure names no lock: %+v", found.Failure)
	}
	unlock.State = &holdfast.StateJob{Action: holdfast.StateUnlock, LockID: lock.ID}
	wantStatus(b.t, e.Execute(b.t.Context(), unlock, s), holdfast.RunApplied, "", s)
}

func push(t *testing.T, e *runner.Executor, s *memorySession, a protocol.Assignment, state []byte) protocol.Result {
	t.Helper()
	a.State = &holdfast.StateJob{Action: holdfast.StatePush}
	s.stored = map[string]map[string][]byte{a.Run: {protocol.ArtefactErrored: state}}
	got := e.Execute(t.Context(), a, s)
	wantStatus(t, got, holdfast.RunApplied, "", s)
	return got
}

// TestPushIsChecked: the engine refuses a state that does not follow the one that
// the backend has, and what it refuses is not tried again.
func TestPushIsChecked(t *testing.T) {
	t.Parallel()
	e, _ := newRealExecutor(t)
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
		s.stored = map[string]map[string][]byte{a.Run: {protocol.ArtefactErrored: refused}}
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
