//go:build !race

package runner_test

import (
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/freeusers"
	"github.com/holdfast-dev/holdfast/runner"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// TestFilesOfARunAreItsOwn: where engines see the machine's files, and are separate users,
// one that runs reaches nothing of another run: not its plan file, not the state that it
// pushes, not the engines' configuration, not what a dead attempt has left.
func TestFilesOfARunAreItsOwn(t *testing.T) {
	t.Parallel()
	realEngine(t)
	if os.Geteuid() != 0 {
		t.Log("not root: there are no other users")
		return
	}
	first := freeusers.Of(t, 2) // the second one is that of another run
	starter, err := sandbox.Probe(t.Context(), sandbox.Options{
		Mode: sandbox.ModeUsers, Slot: sandbox.Slot{UID: first, GID: first}, Program: reachableProgram(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	e, work := newExecutor(t, func(o *runner.ExecutorOptions) {
		o.Isolation = runner.Isolation{Starter: starter, FirstUser: first, Slots: 1}
	})
	left := filepath.Join(work, "workspaces", "run-0-1")
	if err := os.MkdirAll(left, 0o711); err != nil {
		t.Fatal(err)
	}

	// The state is asked for while the engine runs.
	var mu sync.Mutex
	open, seen := map[string]bool{}, map[string]bool{}
	states := newStateServer(t)
	watched := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		lookFor(t, work, uint32(first+1), open, seen)
		mu.Unlock()
		states.ServeHTTP(w, r)
	}))
	t.Cleanup(watched.Close)
	s := newMemorySession(map[string]string{"main.tf": `resource "terraform_data" "x" {}`})
	s.state = watched.URL + "/x"
	planned := e.Execute(t.Context(), engineAssignment("run-1", holdfast.RunPlan), s)
	wantStatus(t, planned, holdfast.RunPlanned, "", s)
	a := engineAssignment("run-2", holdfast.RunApply)
	a.Reviews = review("run-1", planned)
	wantStatus(t, e.Execute(t.Context(), a, s), holdfast.RunApplied, "", s)
	state := strings.Replace(states.state("/x"), `"serial": 1`, `"serial": 7`, 1)
	push(t, e, s, engineAssignment("run-3", holdfast.RunState), []byte(state))

	if names := slices.Sorted(maps.Keys(open)); len(names) > 0 {
		t.Errorf("another run reaches %q", names)
	}
	want := []string{"attempt", "engine.rc", "plan.bin", "run-0-1", "work"}
	for _, name := range want {
		if !seen[name] {
			t.Errorf("not looked at: %s", cmp.Diff(want, slices.Sorted(maps.Keys(seen))))
			break
		}
	}
}

// reachableProgram is this program, where every user can start it, as in all temporary
// folders of the test.
func reachableProgram(t *testing.T) string {
	t.Helper()
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "program")
	if err := errors.Join(os.Chmod(filepath.Dir(filepath.Dir(path)), 0o755), os.WriteFile(path, self, 0o755)); err != nil {
		t.Fatal(err)
	}
	return path
}

// lookFor notes what of the workspaces is there, and what of it a user reaches.
func lookFor(t *testing.T, work string, user uint32, open, seen map[string]bool) {
	root := filepath.Join(work, "workspaces")
	reached := map[string]bool{root: true} // folders that the user can pass through
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		stat := info.Sys().(*syscall.Stat_t)
		bits := info.Mode().Perm() & 7
		switch user {
		case stat.Uid:
			bits = info.Mode().Perm() >> 6
		case stat.Gid:
			bits = info.Mode().Perm() >> 3 & 7
		}
		seen[d.Name()] = true
		if reached[filepath.Dir(path)] && bits != 0 || stat.Uid == 0 && d.Type().IsRegular() && bits != 0 {
			open[d.Name()] = true
		}
		reached[path] = d.IsDir() && reached[filepath.Dir(path)] && bits&1 != 0
		return nil
	})
	if err != nil {
		t.Errorf("look at the workspaces: %v", err)
	}
}
