//go:build !race

package runner_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner"
)

// moduleLab executes runs of a cluster that has a module from a branch, by several
// agents: each has prepared folders of its own.
type moduleLab struct {
	t      *testing.T
	states *stateServer
	stored map[string]map[string][]byte
	files  map[string]string
	moves  string             // the module on the branch, as it is named to people
	write  func(code string)  // commits the module's code
	commit func(value string) // commits code with that value
	ahead  atomic.Int64       // how much later it is
}

// newModuleLab makes one whose root module calls the module on a branch or, if that is
// nested, calls one with a version that does.
func newModuleLab(t *testing.T, nested bool) *moduleLab {
	t.Helper()
	realEngine(t)
	url, commit := gitModule(t)
	l := &moduleLab{t: t, states: newStateServer(t), stored: map[string]map[string][]byte{}, moves: "net", write: commit}
	l.commit = func(value string) { l.write(fmt.Sprintf("resource \"terraform_data\" \"x\" { input = %q }\n", value)) }
	l.commit("v1")
	if nested {
		pinned, commit := gitModule(t)
		commit(fmt.Sprintf("module \"subnets\" { source = %q }\n", url))
		url, l.moves = tagged(t, pinned), "net.subnets"
	}
	l.call(url)
	return l
}

// call has the root module call a module.
func (l *moduleLab) call(url string) {
	l.files = map[string]string{"main.tf": fmt.Sprintf("terraform {\n  backend \"http\" {}\n}\nmodule \"net\" { source = %q }\n", url)}
}

// tagged makes the newest commit v1.0.0, whichever that was, and returns the source of it.
func tagged(t *testing.T, url string) string {
	t.Helper()
	dir := strings.TrimPrefix(url, "git::file://")
	if out, err := exec.CommandContext(t.Context(), "git", "-C", dir, "tag", "--force", "v1.0.0").CombinedOutput(); err != nil {
		t.Fatalf("git tag: %v\n%s", err, out)
	}
	return url + "?ref=v1.0.0"
}

func (l *moduleLab) agent() *runner.Executor {
	l.t.Helper()
	e, _ := l.agentIn()
	return e
}

// agentIn also returns the folder in which the agent works.
func (l *moduleLab) agentIn() (*runner.Executor, string) {
	l.t.Helper()
	return newExecutor(l.t, func(o *runner.ExecutorOptions) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(l.ahead.Load())) }
	})
}

// run executes a run whose result must be this, and returns it and the log.
func (l *moduleLab) run(
	e *runner.Executor, id string, kind holdfast.RunKind, status holdfast.RunStatus, reason holdfast.Reason, change func(*protocol.Assignment),
) (protocol.Result, string) {
	l.t.Helper()
	s := newMemorySession(l.files)
	s.state, s.stored = l.states.URL+"/x", l.stored
	a := engineAssignment(id, kind)
	if change != nil {
		change(&a)
	}
	got := e.Execute(l.t.Context(), a, s)
	wantStatus(l.t, got, status, reason, s)
	l.stored[id] = s.artefacts
	return got, s.logged()
}

// TestChecksHaveTheModulesThatWereApplied: a drift check has the modules of
// the last apply, whichever agents fetched them and whatever has become of their
// branch since.
func TestChecksHaveTheModulesThatWereApplied(t *testing.T) {
	t.Parallel()
	for name, nested := range map[string]bool{"of the root module": false, "of a module with a version": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checksHaveTheModulesThatWereApplied(t, newModuleLab(t, nested))
		})
	}
}

func checksHaveTheModulesThatWereApplied(t *testing.T, l *moduleLab) {
	t.Helper()
	planner, applier := l.agent(), l.agent()
	planned, _ := l.run(planner, "run-1", holdfast.RunPlan, holdfast.RunPlanned, "", nil)
	applied, _ := l.run(applier, "run-2", holdfast.RunApply, holdfast.RunApplied, "", func(a *protocol.Assignment) {
		a.Reviews = review("run-1", planned)
	})
	if len(l.stored["run-1"][protocol.ArtefactModules]) > 0 || len(l.stored["run-2"][protocol.ArtefactModules]) == 0 {
		t.Errorf("modules kept by the plan: %d bytes, by the apply: %d bytes; want those of the apply alone",
			len(l.stored["run-1"][protocol.ArtefactModules]), len(l.stored["run-2"][protocol.ArtefactModules]))
	}
	l.commit("v2")
	l.ahead.Store(int64(2 * time.Hour))
	exact := func(a *protocol.Assignment) { a.Modules = "run-2" }
	for name, e := range map[string]*runner.Executor{"of the apply": applier, "of the plan": planner, "new": l.agent()} {
		checked, log := l.run(e, "run-3", holdfast.RunDrift, holdfast.RunNoChanges, "", exact)
		if checked.InputDigest != applied.InputDigest || strings.Contains(log, "Downloading") {
			t.Errorf("the agent %s fetched other modules:\n%s", name, log)
		}
	}

	// What takes the place of an apply keeps the modules in its turn.
	again, _ := l.run(l.agent(), "run-4", holdfast.RunApply, holdfast.RunNoChanges, "", exact)
	if again.InputDigest != applied.InputDigest || len(l.stored["run-4"][protocol.ArtefactModules]) == 0 {
		t.Error("an apply of what was applied has not kept its modules")
	}

	// A plan has what is on the branch now, also where those of the apply are prepared.
	for _, e := range []*runner.Executor{planner, applier} {
		if _, log := l.run(e, "run-5", holdfast.RunPlan, holdfast.RunPlanned, "", nil); !strings.Contains(log, "v2") {
			t.Errorf("a plan has old modules:\n%s", log)
		}
	}

	// Without the archive others are fetched, and nothing of them is drift.
	delete(l.stored["run-2"], protocol.ArtefactModules)
	checked, _ := l.run(l.agent(), "run-6", holdfast.RunDrift, holdfast.RunErrored, "InvalidConfiguration", exact)
	if !strings.Contains(checked.Detail, "module "+l.moves+" has changed") {
		t.Errorf("the check says %q", checked.Detail)
	}
	l.run(l.agent(), "run-7", holdfast.RunPlan, holdfast.RunPlanned, "", func(a *protocol.Assignment) {
		exact(a)
		a.Destroy = true
	})
}

// TestChecksOfWhatKeptNoModules: a drift check of an adopted cluster, whose modules nobody
// has kept, holds whatever has become of them as long as nothing is to be changed. Changes
// with other modules are neither reported as drift nor applied, and a new plan is the way
// out that the failure names.
func TestChecksOfWhatKeptNoModules(t *testing.T) {
	t.Parallel()
	l := newModuleLab(t, true)
	planned, _ := l.run(l.agent(), "run-1", holdfast.RunPlan, holdfast.RunPlanned, "", nil)
	l.run(l.agent(), "run-2", holdfast.RunApply, holdfast.RunApplied, "", func(a *protocol.Assignment) { a.Reviews = review("run-1", planned) })
	l.run(l.agent(), "run-3", holdfast.RunPlan, holdfast.RunNoChanges, "", nil)
	adopted := func(a *protocol.Assignment) { a.Modules = "run-3" }

	l.write("# the same with a comment\nresource \"terraform_data\" \"x\" { input = \"v1\" }\n")
	_, log := l.run(l.agent(), "run-4", holdfast.RunDrift, holdfast.RunNoChanges, "", adopted)
	if !strings.Contains(log, "module "+l.moves+" has changed") || strings.Contains(log, "not found") {
		t.Errorf("the log says\n%s", log)
	}

	l.commit("v2")
	for id, kind := range map[string]holdfast.RunKind{"run-5": holdfast.RunDrift, "run-6": holdfast.RunApply} {
		got, _ := l.run(l.agent(), id, kind, holdfast.RunErrored, holdfast.CauseInvalidConfiguration, adopted)
		if !strings.Contains(got.Detail, "module "+l.moves+" has changed") || !strings.Contains(got.Failure.Hint, "holdfast replan") || got.Applying {
			t.Errorf("the %s says %q, applying %v, and %+v", kind, got.Detail, got.Applying, got.Failure)
		}
	}
	planned, _ = l.run(l.agent(), "run-7", holdfast.RunPlan, holdfast.RunPlanned, "", nil)
	l.run(l.agent(), "run-8", holdfast.RunApply, holdfast.RunApplied, "", func(a *protocol.Assignment) { a.Reviews = review("run-7", planned) })
	l.commit("v3")
	l.run(l.agent(), "run-9", holdfast.RunDrift, holdfast.RunNoChanges, "", func(a *protocol.Assignment) { a.Modules = "run-8" })
}

// TestReviewedModulesAreApplied: an apply has the modules that were reviewed, where
// its agent has them or can fetch them, and says which one is another.
func TestReviewedModulesAreApplied(t *testing.T) {
	t.Parallel()
	for name, nested := range map[string]bool{"of the root module": false, "of a module with a version": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reviewedModulesAreApplied(t, newModuleLab(t, nested))
		})
	}
}

func reviewedModulesAreApplied(t *testing.T, l *moduleLab) {
	t.Helper()
	both, applier := l.agent(), l.agent()
	first, _ := l.run(both, "run-1", holdfast.RunPlan, holdfast.RunPlanned, "", nil)
	l.commit("v2")
	moved, _ := l.run(applier, "run-2", holdfast.RunApply, holdfast.RunPlanned, holdfast.ReasonPlanChanged, func(a *protocol.Assignment) {
		a.Reviews = review("run-1", first)
	})
	if !strings.Contains(moved.Detail, "module "+l.moves+" has changed") {
		t.Errorf("the apply says %q", moved.Detail)
	}

	// The agent of the plan has prepared others since, and still has the reviewed ones,
	// for whatever credentials it applies with.
	l.ahead.Store(int64(2 * time.Hour))
	second, log := l.run(both, "run-3", holdfast.RunPlan, holdfast.RunPlanned, "", nil)
	if second.InputDigest == first.InputDigest {
		t.Fatalf("the module has not moved:\n%s", log)
	}
	_, log = l.run(both, "run-4", holdfast.RunApply, holdfast.RunApplied, "", func(a *protocol.Assignment) {
		a.Env, a.Reviews = map[string]string{"TOKEN": "of-applies"}, review("run-1", first)
	})
	if strings.Contains(log, "Downloading") || !strings.Contains(log, "v1") {
		t.Errorf("the apply fetched other modules:\n%s", log)
	}

	// What an agent prepared a moment ago is not a reason not to apply what was reviewed.
	late := l.agent()
	l.run(late, "run-5", holdfast.RunPlan, holdfast.RunPlanned, "", nil) // v2
	l.commit("v3")
	third, _ := l.run(l.agent(), "run-6", holdfast.RunPlan, holdfast.RunPlanned, "", nil)
	l.run(late, "run-7", holdfast.RunApply, holdfast.RunApplied, "", func(a *protocol.Assignment) { a.Reviews = review("run-6", third) })
}

// TestReviewedModulesOfATagThatWasMoved: an apply has the modules that were reviewed although
// another run of its agent uses those that the tag was on before, and neither take the place of
// the others.
func TestReviewedModulesOfATagThatWasMoved(t *testing.T) {
	t.Parallel()
	l := newModuleLab(t, false)
	url, write := gitModule(t)
	l.write = write
	l.commit("v1")
	l.call(tagged(t, url))
	agent := l.agent()
	l.run(agent, "run-1", holdfast.RunPlan, holdfast.RunPlanned, "", nil)
	l.commit("v2")
	tagged(t, url)
	moved, _ := l.run(l.agent(), "run-2", holdfast.RunPlan, holdfast.RunPlanned, "", nil)

	user := newMemorySession(l.files)
	user.state = l.states.URL + "/other"
	user.onStep = func(step string) {
		if step == "plan" {
			l.run(agent, "run-4", holdfast.RunApply, holdfast.RunApplied, "", func(a *protocol.Assignment) { a.Reviews = review("run-2", moved) })
		}
	}
	wantStatus(t, agent.Execute(t.Context(), engineAssignment("run-3", holdfast.RunPlan), user), holdfast.RunPlanned, "", user)
	_, log := l.run(agent, "run-5", holdfast.RunDrift, holdfast.RunPlanned, "", func(a *protocol.Assignment) { a.Modules = "run-1" })
	if strings.Contains(log, "Downloading") {
		t.Errorf("the former modules are gone:\n%s", log)
	}
}

// TestModulesOfAnEarlierVersion: what was reviewed before an upgrade is applied after it,
// with the modules that an agent of the earlier version has fetched. That one had not looked
// at what fetched modules call. Plans fetch what there is now.
func TestModulesOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	l := newModuleLab(t, true)
	agent, dir := l.agentIn()
	planned, _ := l.run(agent, "run-1", holdfast.RunPlan, holdfast.RunPlanned, "", nil)
	asBefore(t, dir)
	l.commit("v2")
	l.ahead.Store(int64(2 * time.Hour))
	_, log := l.run(agent, "run-2", holdfast.RunApply, holdfast.RunApplied, "", func(a *protocol.Assignment) {
		a.Reviews = review("run-1", planned)
	})
	if strings.Contains(log, "Downloading") || len(l.stored["run-2"][protocol.ArtefactModules]) == 0 {
		t.Errorf("the apply fetched modules, or has not kept them:\n%s", log)
	}
	l.run(agent, "run-3", holdfast.RunDrift, holdfast.RunNoChanges, "", func(a *protocol.Assignment) { a.Modules = "run-2" })
	if _, log := l.run(agent, "run-4", holdfast.RunPlan, holdfast.RunPlanned, "", nil); !strings.Contains(log, "v2") {
		t.Errorf("a plan has old modules:\n%s", log)
	}
}

// asBefore gives the only prepared folder below dir the name and the manifest that it had
// when modules counted as pinned because of what the root module calls alone.
func asBefore(t *testing.T, dir string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*", "*", "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var folder string
	for _, file := range found {
		if info, err := os.Lstat(filepath.Dir(file)); err == nil && info.IsDir() {
			folder = filepath.Dir(file)
		}
	}
	links, _ := filepath.Glob(filepath.Join(filepath.Dir(folder), "*"))
	key := ""
	for _, link := range links {
		if info, err := os.Lstat(link); err == nil && info.Mode()&os.ModeSymlink != 0 {
			if !strings.Contains(filepath.Base(link), "-") {
				key = link
			}
			if err := os.Remove(link); err != nil {
				t.Fatal(err)
			}
		}
	}
	if folder == "" || key == "" {
		t.Fatalf("prepared are %v", found)
	}
	if err := os.Rename(folder, key); err != nil {
		t.Fatal(err)
	}
}
