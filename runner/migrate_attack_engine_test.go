//go:build !race

package runner_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// TestMigrateBesideAWriter: somebody else applies at the current place, by hand, while the state is
// copied: what was copied is outdated, and does not count. Repeated, the newer state is moved.
func TestMigrateBesideAWriter(t *testing.T) {
	t.Parallel()
	realEngine(t)
	states := newStateServer(t)
	var once sync.Once
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		states.ServeHTTP(w, r)
		if r.Method == http.MethodPost && r.URL.Path == "/to" {
			once.Do(func() { states.count(t, "/from") })
		}
	}))
	t.Cleanup(front.Close)
	m := newMoving(t, httpPlace(states.URL, "from"), httpPlace(front.URL, "to"))
	m.apply()
	before := identityOf(t, states.state("/from"))
	got := m.migrate("migrate", nil)
	wantStatus(t, got, holdfast.RunErrored, holdfast.CauseMigrationUnproven, m.last)
	if !strings.Contains(got.Failure.Summary, "has changed while it was copied") {
		t.Errorf("it says %q", got.Failure.Summary)
	}
	newer := identityOf(t, states.state("/from"))
	if newer == before {
		t.Fatal("nobody has written")
	}
	wantStatus(t, m.migrate("again", nil), holdfast.RunApplied, "", m.last)
	if is := identityOf(t, states.state("/to")); is != newer {
		t.Errorf("the state was %s and is %s", newer, is)
	}
}

// count has the serial of a state count up, as an engine does that writes it.
func (s *stateServer) count(t *testing.T, name string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var state map[string]any
	if err := json.Unmarshal(s.states[name], &state); err != nil {
		t.Error(err)
		return
	}
	serial, _ := state["serial"].(float64)
	state["serial"] = serial + 1
	data, err := json.Marshal(state)
	if err != nil {
		t.Error(err)
		return
	}
	s.states[name] = data
}
