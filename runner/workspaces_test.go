package runner_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner"
)

// TestPathsAreThoseOfTheReview: code that reads its own path means the same in
// the plan and in the apply, and in the next run.
func TestPathsAreThoseOfTheReview(t *testing.T) {
	t.Parallel()
	e, work := newRealExecutor(t)
	states := newStateServer(t)
	files := map[string]string{"clusters/a/main.tf": `
resource "terraform_data" "here" { input = [abspath("."), path.cwd, abspath(path.root), abspath(path.module)] }
module "m" { source = "../../m" }
`, "m/main.tf": `resource "terraform_data" "here" { input = abspath(path.module) }`}
	run := func(id string, kind holdfast.RunKind, reviews []holdfast.Review) (protocol.Result, *memorySession) {
		s := newMemorySession(files)
		s.state = states.URL + "/prod-eu"
		a := engineAssignment(id, kind)
		a.Dir, a.StateLocation, a.Reviews = "clusters/a", "prod-eu", reviews
		return e.Execute(t.Context(), a, s), s
	}
	planned, s := run("run-1", holdfast.RunPlan, nil)
	wantStatus(t, planned, holdfast.RunPlanned, "", s)
	applied, s := run("run-2", holdfast.RunApply, review("run-1", planned))
	wantStatus(t, applied, holdfast.RunApplied, "", s)
	again, s := run("run-3", holdfast.RunPlan, nil)
	wantStatus(t, again, holdfast.RunNoChanges, "", s)
	if left, _ := filepath.Glob(filepath.Join(work, "workspaces", "*")); len(left) > 0 {
		t.Errorf("workspaces left: %v", left)
	}
}

// atLocation executes a run of a state location whose plan writes down where it
// is, and returns that.
func atLocation(t *testing.T, e *runner.Executor, run, location string, during func()) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "env")
	s := newMemorySession(map[string]string{"main.tf": "", "fake": "plan env " + file})
	s.state = "http://127.0.0.1:1/x"
	if during != nil {
		s.onStep = func(step string) {
			if step == "plan" {
				during()
			}
		}
	}
	a := engineAssignment(run, holdfast.RunPlan)
	a.StateLocation = location
	wantStatus(t, e.Execute(t.Context(), a, s), holdfast.RunPlanned, "", s)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if dir, ok := strings.CutPrefix(line, "PWD="); ok {
			return strings.TrimSpace(dir)
		}
	}
	t.Fatalf("no folder in %q", data)
	return ""
}

// TestPlaceIsForOneAttempt: attempts for one location that are there at once have their
// own folders, and each is found by its name.
func TestPlaceIsForOneAttempt(t *testing.T) {
	t.Parallel()
	var work string
	e, _ := engineExecutor(t, func(o *runner.ExecutorOptions) { work = o.WorkDir })
	var second, other string
	first := atLocation(t, e, "run-1", "prod-eu", func() {
		second = atLocation(t, e, "run-2", "prod-eu", func() {
			for run, where := range map[string]string{"run-1": "at-", "run-2": "run-2-1"} {
				dir := e.WorkspaceDir(holdfast.AttemptRef{Run: run, Attempt: 1})
				if _, err := os.Stat(dir); err != nil || !strings.HasPrefix(filepath.Base(dir), where) {
					t.Errorf("%s is said to be in %s: %v", run, dir, err)
				}
			}
		})
		other = atLocation(t, e, "run-3", "prod-us", nil)
	})
	if second == first || other == first {
		t.Errorf("shared: %s, %s, %s", first, second, other)
	}
	if again := atLocation(t, e, "run-4", "prod-eu", nil); again != first {
		t.Errorf("the place is %s, then %s", first, again)
	}
	if again := atLocation(t, e, "run-5", "prod-us", nil); again != other {
		t.Errorf("the other place is %s, then %s", other, again)
	}
	if left, _ := filepath.Glob(filepath.Join(work, "workspaces", "*")); len(left) > 0 {
		t.Errorf("workspaces left: %v", left)
	}
}

// TestManyAttemptsForAPlace: however they meet, no two are in one folder.
func TestManyAttemptsForAPlace(t *testing.T) {
	t.Parallel()
	e, _ := engineExecutor(t, nil)
	var mu sync.Mutex
	there := map[string]string{}
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			ref := holdfast.AttemptRef{Run: fmt.Sprintf("run-%d", i), Attempt: 1}
			s := newMemorySession(map[string]string{"main.tf": ""})
			s.state = "http://127.0.0.1:1/x"
			var dir string
			s.onStep = func(step string) {
				mu.Lock()
				defer mu.Unlock()
				switch step {
				case "plan":
					dir = e.WorkspaceDir(ref)
					if by, taken := there[dir]; taken {
						t.Errorf("%s and %s are in %s", by, ref.Run, dir)
					}
					there[dir] = ref.Run
				case "show":
					delete(there, dir)
				}
			}
			a := engineAssignment(ref.Run, holdfast.RunPlan)
			a.StateLocation = "prod-eu"
			wantStatus(t, e.Execute(t.Context(), a, s), holdfast.RunPlanned, "", s)
		})
	}
	wg.Wait()
}

// TestPlaceOfADeadAttempt: what a dead attempt left in the place goes, but not a
// state that its engine could not save.
func TestPlaceOfADeadAttempt(t *testing.T) {
	t.Parallel()
	var work string
	e, _ := engineExecutor(t, func(o *runner.ExecutorOptions) { work = o.WorkDir })
	first := atLocation(t, e, "run-1", "prod-eu", nil)
	place := filepath.Dir(filepath.Dir(first))

	leave := func(name, content string) {
		if err := os.MkdirAll(filepath.Join(place, "work", "bundle", "root"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(place, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	leave("attempt", "run-dead-3")
	leave("work/bundle/main.tf", "nonsense")
	ref := holdfast.AttemptRef{Run: "run-dead", Attempt: 3}
	if got := e.WorkspaceDir(ref); got != place {
		t.Errorf("a dead attempt's workspace is said to be %s, it is %s", got, place)
	}
	if again := atLocation(t, e, "run-2", "prod-eu", nil); again != first {
		t.Errorf("the place is %s, then %s", first, again)
	}

	leave("attempt", "run-dead-3")
	leave("work/bundle/root/errored.tfstate", `{"serial": 3}`)
	if again := atLocation(t, e, "run-3", "prod-eu", nil); again != first {
		t.Errorf("the place is %s, then %s", first, again)
	}
	kept := filepath.Join(e.WorkspaceDir(ref), "work", "bundle", "root", "errored.tfstate")
	if data, err := os.ReadFile(kept); err != nil || string(data) != `{"serial": 3}` {
		t.Errorf("the unsaved state is gone: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(work, "workspaces", "*")); len(left) != 1 {
		t.Errorf("workspaces left: %v", left)
	}
}
