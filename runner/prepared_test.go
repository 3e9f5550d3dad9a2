package runner_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner"
	"github.com/holdfast-dev/holdfast/runner/engine"
)

// gitModule returns a Git repository with a module, and what commits a new
// version of it.
func gitModule(t *testing.T) (url string, commit func(code string)) {
	t.Helper()
	dir := t.TempDir()
	git := func(args ...string) {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@t"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q", "-b", "main")
	commit = func(code string) {
		if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		git("add", "main.tf")
		git("commit", "-q", "-m", "a version")
	}
	return "git::file://" + dir, commit
}

// TestFetchedModules: modules are fetched once, stay what was reviewed for a
// while, and are part of the input once they have moved.
func TestFetchedModules(t *testing.T) {
	t.Parallel()
	realEngine(t)
	url, commit := gitModule(t)
	commit(`resource "terraform_data" "x" { input = "${path.module} ${file("${path.module}/main.tf") != "" ? 1 : 2}" }`)
	var ahead atomic.Int64
	e, _ := newExecutor(t, func(o *runner.ExecutorOptions) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	states := newStateServer(t)
	plan := func(run string, env map[string]string) (protocol.Result, string) {
		s := newMemorySession(map[string]string{"main.tf": fmt.Sprintf("terraform {\n  backend \"http\" {}\n}\nmodule \"m\" { source = %q }\n", url)})
		s.state = states.URL + "/x"
		a := engineAssignment(run, holdfast.RunPlan)
		a.Env = env
		got := e.Execute(t.Context(), a, s)
		wantStatus(t, got, holdfast.RunPlanned, "", s)
		return got, s.logged()
	}
	first, _ := plan("run-1", nil)
	commit(`resource "terraform_data" "y" {}`)
	second, log := plan("run-2", nil)
	if first.InputDigest != second.InputDigest || strings.Contains(log, "Downloading") {
		t.Errorf("fetched again: %s", log)
	}
	if _, log = plan("run-3", map[string]string{"TOKEN": "other-credentials"}); !strings.Contains(log, "Downloading") {
		t.Error("a fetched module was shared with other credentials")
	}
	ahead.Store(int64(2 * time.Hour))
	third, log := plan("run-4", nil)
	if third.InputDigest == first.InputDigest || !strings.Contains(log, "Downloading") {
		t.Errorf("a module that moved did not change the input: %s", log)
	}
}

// TestSharedFoldersArePruned: only so many prepared folders are kept.
func TestSharedFoldersArePruned(t *testing.T) {
	t.Parallel()
	var work string
	e, _ := engineExecutor(t, func(o *runner.ExecutorOptions) { o.Limits.Prepared, work = 2, o.WorkDir })
	for i := range 5 {
		s := newMemorySession(map[string]string{"main.tf": fmt.Sprintf("resource \"p%d_x\" \"x\" {}\n", i)})
		s.state = "http://127.0.0.1:1/x"
		wantStatus(t, e.Execute(t.Context(), engineAssignment(fmt.Sprintf("run-%d", i), holdfast.RunPlan), s), holdfast.RunPlanned, "", s)
	}
	entries, err := os.ReadDir(filepath.Join(work, "shared"))
	if err != nil || len(entries) > 6 { // two and the one in use, each with another name
		t.Errorf("%d entries, %v", len(entries), err)
	}
}

// TestLeftoversAreClearedByTheFirstAttempt: what a dead predecessor left half
// done goes, but not before the folder is ours alone; workspaces stay for whoever
// looks for unsaved states.
func TestLeftoversAreClearedByTheFirstAttempt(t *testing.T) {
	t.Parallel()
	var work string
	leftovers := []string{"shared/tmp-1/providers", "engines/tmp-2", "workspaces/run-1-1/bundle"}
	e, _ := engineExecutor(t, func(o *runner.ExecutorOptions) {
		work = o.WorkDir
		for _, dir := range leftovers {
			if err := os.MkdirAll(filepath.Join(work, dir), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("nowhere", filepath.Join(work, "shared/dangling")); err != nil {
			t.Fatal(err)
		}
	})
	left := func() (names []string) {
		for _, name := range append(slices.Clone(leftovers), "shared/dangling") {
			if _, err := os.Lstat(filepath.Join(work, name)); err == nil {
				names = append(names, name)
			}
		}
		return names
	}
	if n := len(left()); n != 4 {
		t.Errorf("NewExecutor removed something of a predecessor that may be alive: left %v", left())
	}
	s := newMemorySession(map[string]string{"main.tf": ""})
	s.state = "http://127.0.0.1:1/x"
	wantStatus(t, e.Execute(t.Context(), engineAssignment("run-2", holdfast.RunPlan), s), holdfast.RunPlanned, "", s)
	if diff := cmp.Diff([]string{"workspaces/run-1-1/bundle"}, left()); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// TestNewExecutorNamesWhatIsWrong: a wrong option is an error at the start.
func TestNewExecutorNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for want, opts := range map[string]runner.ExecutorOptions{
		"no work folder":       {},
		`validation "md5"`:     {WorkDir: t.TempDir(), Engines: runner.Engines{Sources: engine.Sources{Validation: "md5"}}},
		"engine configuration": {WorkDir: t.TempDir(), Engines: runner.Engines{CLIConfigFile: "/nowhere/engine.rc"}},
	} {
		if _, err := runner.NewExecutor(opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

// TestApplyStopped: an apply that is stopped is interrupted, and what the engine
// was at when it had to be killed is told.
func TestApplyStopped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		then       string
		status     holdfast.RunStatus
		unrecorded []string
		hint       string
	}{
		"it ends well":      {then: "hang", status: holdfast.RunCanceled, unrecorded: []string{"a.b"}},
		"it must be killed": {then: "hang-hard", status: holdfast.RunCanceled, unrecorded: []string{"a.b", "a.c"}, hint: "did not end in time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, _ := engineExecutor(t, func(o *runner.ExecutorOptions) { o.Waits.Grace = graceFor(c.then) })
			ready := filepath.Join(t.TempDir(), "ready")
			s := newMemorySession(map[string]string{
				"main.tf": "",
				"fake":    "apply say a.c: Creating...\napply say a.b: Creating...\napply say a.c: Creation complete after 0s [id=1]\napply ready " + ready + "\napply " + c.then,
			})
			s.state = "http://127.0.0.1:1/x"
			a := engineAssignment("run-1", holdfast.RunPlan)
			planned := e.Execute(t.Context(), a, s)
			a.Run, a.Kind, a.Reviews = "run-2", holdfast.RunApply, review("run-1", planned)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			go func() {
				for ctx.Err() == nil {
					if _, err := os.Stat(ready); err == nil {
						cancel(&runner.StopError{Reason: holdfast.ReasonCanceled, Detail: "by ann"})
						return
					}
					time.Sleep(5 * time.Millisecond)
				}
			}()
			got := e.Execute(ctx, a, s)
			wantStatus(t, got, c.status, holdfast.ReasonCanceled, s)
			if diff := cmp.Diff(c.unrecorded, got.Failure.Unrecorded); diff != "" || !got.Applying || got.Detail != "by ann" {
				t.Errorf("applying %v, detail %q, unrecorded (-want +got):\n%s", got.Applying, got.Detail, diff)
			}
			if got.Failure.Crashed != (c.then == "hang-hard") { // one that ends has released its lock
				t.Errorf("crashed: %v", got.Failure.Crashed)
			}
			if hint := got.Failure.Hint; !strings.Contains(hint, c.hint) || strings.Contains(hint, "memory") {
				t.Errorf("the hint is %q", hint)
			}
		})
	}
}
