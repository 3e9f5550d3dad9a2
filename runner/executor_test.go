package runner_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner"
	"github.com/holdfast-dev/holdfast/runner/failure"
)

const rootWithData = `
terraform {
  backend "http" {}
}
variable "password" {
  type      = string
  sensitive = true
}
variable "size" { type = number }
resource "terraform_data" "x" { input = var.size }
resource "terraform_data" "secret" { input = var.password }
output "size" { value = terraform_data.x.output }
output "password" {
  value     = var.password
  sensitive = true
}
output "leak" { value = nonsensitive(var.password) }
`

func dataFiles(size int) map[string]string {
	return map[string]string{
		"root/main.tf":                   rootWithData,
		"root/cluster.auto.tfvars.json":  fmt.Sprintf(`{"size": %d, "password": "correct-horse-battery"}`, size),
		"root/unrelated/ignored.txt":     "x",
		"root/.terraform/modules/x/x.tf": "nonsense that must not be unpacked",
	}
}

// TestExecuteReviewedApply walks a change from its review to its apply, a second
// one that has nothing to do, one that is not what was reviewed, and the end.
func TestExecuteReviewedApply(t *testing.T) {
	t.Parallel()
	realEngine(t)
	ctx := t.Context()
	e, work := newRealExecutor(t)
	states := newStateServer(t)
	run := func(id string, kind holdfast.RunKind, size int, change func(*protocol.Assignment)) (protocol.Result, *memorySession) {
		s := newMemorySession(dataFiles(size))
		s.state = states.URL + "/prod-eu"
		a := engineAssignment(id, kind)
		a.Dir = "root"
		if change != nil {
			change(&a)
		}
		return e.Execute(ctx, a, watchedSession{s, states}), s
	}

	planned, s := run("run-1", holdfast.RunPlan, 3, nil)
	wantStatus(t, planned, holdfast.RunPlanned, "", s)
	if want := (holdfast.Counts{Create: 2, Outputs: 3}); summary(t, s).Counts != want {
		t.Errorf("counts %+v, want %+v", summary(t, s).Counts, want)
	}
	for _, name := range []string{"plan", "plan.json", protocol.ArtefactPlan} {
		if s.artefacts[name] != nil {
			t.Errorf("the agent leaves %s", name)
		}
	}
	if plan := summary(t, s); !strings.Contains(plan.Text, "terraform_data.x will be created") {
		t.Errorf("plan text is %q", plan.Text)
	}
	if states.state("/prod-eu") != "" {
		t.Error("a plan wrote the state")
	}
	for _, name := range []string{protocol.ArtefactDocument, protocol.ArtefactInfo} {
		if len(s.artefact(name)) == 0 {
			t.Errorf("no artefact %s", name)
		}
		if strings.Contains(string(s.artefact(name)), "correct-horse") {
			t.Errorf("artefact %s holds the password", name)
		}
	}

	applied, s := run("run-2", holdfast.RunApply, 3, func(a *protocol.Assignment) { a.Reviews = review("run-1", planned) })
	wantStatus(t, applied, holdfast.RunApplied, "", s)
	if applied.Matched != "run-1" || !applied.Applying {
		t.Errorf("matched %q, applying %v", applied.Matched, applied.Applying)
	}
	var outputs []holdfast.Output
	if err := json.Unmarshal(s.artefact(protocol.ArtefactOutputs), &outputs); err != nil || len(outputs) != 3 || string(outputs[2].Value) != "3" {
		t.Errorf("outputs %v, %v", outputs, err)
	}
	if strings.Contains(s.logged(), "correct-horse") {
		t.Errorf("the log holds the password:\n%s", s.logged())
	}
	if strings.Contains(s.logged(), "Initializing") {
		t.Error("the second run was initialised again")
	}

	same, s := run("run-3", holdfast.RunApply, 3, nil)
	wantStatus(t, same, holdfast.RunNoChanges, "", s)

	changed, s := run("run-4", holdfast.RunApply, 4, func(a *protocol.Assignment) { a.Reviews = review("run-1", planned) })
	wantStatus(t, changed, holdfast.RunPlanned, holdfast.ReasonPlanChanged, s)
	if changed.Applying || !strings.Contains(changed.Detail, "run-1") {
		t.Errorf("applying %v, detail %q", changed.Applying, changed.Detail)
	}

	gone, s := run("run-5", holdfast.RunPlan, 3, nil)
	wantStatus(t, gone, holdfast.RunNoChanges, "", s)
	destroyed, s := run("run-6", holdfast.RunDestroy, 3, nil)
	wantStatus(t, destroyed, holdfast.RunPlanned, holdfast.ReasonPlanChanged, s)
	reviewed := review("run-6", destroyed)
	destroyed, s = run("run-7", holdfast.RunDestroy, 3, func(a *protocol.Assignment) { a.Reviews = reviewed })
	wantStatus(t, destroyed, holdfast.RunApplied, "", s)

	if left, _ := filepath.Glob(filepath.Join(work, "workspaces", "*")); len(left) > 0 {
		t.Errorf("workspaces left: %v", left)
	}
}

// TestExecuteOnAFaultyDisk: what an apply has left is kept once the disk is back, and a
// plan that the disk did not take is tried again: it is not one that cannot be read.
func TestExecuteOnAFaultyDisk(t *testing.T) {
	t.Parallel()
	e, _ := newRealExecutor(t)
	states := newStateServer(t)
	run := func(id string, kind holdfast.RunKind, reviews []holdfast.Review, faults map[string][]error) (protocol.Result, *memorySession) {
		s := newMemorySession(dataFiles(3))
		s.state, s.faults = states.URL+"/prod-eu", faults
		a := engineAssignment(id, kind)
		a.Dir, a.Reviews = "root", reviews
		return e.Execute(t.Context(), a, s), s
	}
	fault := func(errno syscall.Errno) []error {
		return []error{&fs.PathError{Op: "write", Path: "x", Err: errno}, &fs.PathError{Op: "write", Path: "x", Err: errno}}
	}
	for errno, cause := range map[syscall.Errno]holdfast.Reason{
		syscall.ENOSPC: holdfast.CauseDiskFull, syscall.EROFS: holdfast.CauseWorkspaceFailed, syscall.EIO: holdfast.CauseWorkspaceFailed,
	} {
		got, s := run("run-"+errno.Error(), holdfast.RunPlan, nil, map[string][]error{protocol.ArtefactDocument: fault(errno)})
		wantStatus(t, got, holdfast.RunErrored, cause, s)
		if !got.Failure.Transient {
			t.Errorf("%v is not tried again", errno)
		}
	}
	plan, s := run("run-1", holdfast.RunPlan, nil, nil)
	wantStatus(t, plan, holdfast.RunPlanned, "", s)
	applied, s := run("run-2", holdfast.RunApply, review("run-1", plan), map[string][]error{
		protocol.ArtefactOutputs: fault(syscall.ENOSPC), protocol.ArtefactResources: fault(syscall.EROFS),
	})
	wantStatus(t, applied, holdfast.RunApplied, "", s)
	for _, name := range []string{protocol.ArtefactOutputs, protocol.ArtefactResources} {
		if len(s.artefact(name)) == 0 {
			t.Errorf("%s are lost:\n%s", name, s.logged())
		}
	}
}

// TestExecuteWithAFileOfTheMachine: what a provisioner is given of a file that is not of
// the repository may not be another than when the plan was reviewed.
func TestExecuteWithAFileOfTheMachine(t *testing.T) {
	t.Parallel()
	e, _ := newRealExecutor(t)
	states := newStateServer(t)
	file := filepath.Join(t.TempDir(), "job")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // the engine's user reads it
			t.Fatal(err)
		}
	}
	code := fmt.Sprintf("terraform {\n  backend \"http\" {}\n}\nresource \"terraform_data\" \"x\" {\n  provisioner \"local-exec\" { command = \"echo ${file(%q)}\" }\n}\n", file)
	run := func(id string, kind holdfast.RunKind, reviews []holdfast.Review) (protocol.Result, *memorySession) {
		s := newMemorySession(map[string]string{"root/main.tf": code})
		s.state = states.URL + "/prod-eu"
		a := engineAssignment(id, kind)
		a.Dir, a.Reviews = "root", reviews
		return e.Execute(t.Context(), a, s), s
	}
	write("good")
	planned, s := run("run-1", holdfast.RunPlan, nil)
	wantStatus(t, planned, holdfast.RunPlanned, "", s)
	write("evil")
	held, s := run("run-2", holdfast.RunApply, review("run-1", planned))
	wantStatus(t, held, holdfast.RunPlanned, holdfast.ReasonPlanChanged, s)
	if !strings.Contains(s.logged()+held.Detail, file) && !strings.Contains(summary(t, s).Reads[0].Address, file) {
		t.Errorf("it is not said which file: %s", held.Detail)
	}
	write("good")
	applied, s := run("run-3", holdfast.RunApply, review("run-1", planned))
	wantStatus(t, applied, holdfast.RunApplied, "", s)
}

// TestExecuteWhatWasShown applies what a person has seen, and not once the state
// has moved. The plan file of another run is never asked for.
func TestExecuteWhatWasShown(t *testing.T) {
	t.Parallel()
	e, _ := newRealExecutor(t)
	states := newStateServer(t)
	run := func(id string, size int, shown string, then protocol.Result, from *memorySession) (protocol.Result, *memorySession) {
		s := newMemorySession(dataFiles(size))
		s.state = states.URL + "/prod-eu"
		a := engineAssignment(id, holdfast.RunApply)
		a.Dir = "root"
		if from != nil {
			a.Reviews = review(shown, then)
			s.stored = map[string]map[string][]byte{shown: from.artefacts}
		}
		return e.Execute(t.Context(), a, s), s
	}

	first, held := run("run-1", 1, "", protocol.Result{}, nil)
	wantStatus(t, first, holdfast.RunPlanned, holdfast.ReasonPlanChanged, held)
	second, other := run("run-2", 2, "", protocol.Result{}, nil)
	wantStatus(t, second, holdfast.RunPlanned, holdfast.ReasonPlanChanged, other)

	held.artefacts["plan"] = []byte("a plan file that another run has left")
	applied, s := run("run-3", 1, "run-1", first, held)
	wantStatus(t, applied, holdfast.RunApplied, "", s)
	if applied.Matched != "run-1" {
		t.Errorf("matched %q", applied.Matched)
	}
	stale, s := run("run-4", 2, "run-2", second, other)
	wantStatus(t, stale, holdfast.RunPlanned, holdfast.ReasonPlanChanged, s)
	if want := (holdfast.Counts{Update: 1, Outputs: 1}); stale.Applying || summary(t, s).Counts != want {
		t.Errorf("applying %v, counts %+v", stale.Applying, summary(t, s).Counts)
	}
	second.PlanDigest = ""
	outdated, s := run("run-5", 2, "run-2", second, other)
	wantStatus(t, outdated, holdfast.RunPlanned, holdfast.ReasonPlanChanged, s)
	if !strings.Contains(outdated.Detail, "has no plan document") {
		t.Errorf("detail %q", outdated.Detail)
	}
}

// stoppedSession stops its attempt when it is to keep a state that could not be saved.
type stoppedSession struct {
	*memorySession
	stop func()
}

func (s stoppedSession) PutArtefact(ctx context.Context, name string, r io.Reader) error {
	if name == protocol.ArtefactErrored {
		s.stop()
	}
	return s.memorySession.PutArtefact(ctx, name, r)
}

// TestExecuteStateRefused: a state that cannot be saved is kept and pushed. One that is
// saved nowhere is the cause of the failure also if the attempt is stopped meanwhile.
func TestExecuteStateRefused(t *testing.T) {
	t.Parallel()
	realEngine(t)
	full, gone := &fs.PathError{Op: "write", Path: "errored.tfstate", Err: syscall.ENOSPC}, errors.New("the server is gone")
	for name, c := range map[string]struct {
		refuse int
		faults []error         // of keeping the state
		stop   holdfast.Reason // of the attempt, while the state is kept
		pushed bool
		left   bool // in the workspace
	}{
		"once":                        {refuse: 1, pushed: true},
		"forever":                     {refuse: 1 << 20},
		"while the disk is full":      {refuse: 1 << 20, faults: []error{full, full}},
		"and it cannot be kept":       {refuse: 1 << 20, faults: []error{gone}, left: true},
		"once, and it cannot be kept": {refuse: 1, faults: []error{gone}, pushed: true},

		"canceled":                        {refuse: 1 << 20, stop: holdfast.ReasonCanceled},
		"canceled while the disk is full": {refuse: 1 << 20, faults: []error{full, full}, stop: holdfast.ReasonCanceled},
		"canceled, and it cannot be kept": {refuse: 1 << 20, faults: []error{gone}, stop: holdfast.ReasonCanceled, left: true},
		"too late, and it cannot be kept": {refuse: 1 << 20, faults: []error{gone}, stop: holdfast.ReasonTimeout, left: true},
		"given up, and it cannot be kept": {refuse: 1 << 20, faults: []error{gone}, stop: holdfast.ReasonLeaseLost, left: true},
		"canceled, but it is saved late":  {refuse: 1, faults: []error{gone}, stop: holdfast.ReasonCanceled, pushed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, work := newRealExecutor(t)
			states := newStateServer(t)
			s := newMemorySession(dataFiles(1))
			s.state = states.URL + "/prod-eu"
			a := engineAssignment("run-1", holdfast.RunPlan)
			a.Dir = "root"
			planned := e.Execute(t.Context(), a, s)
			wantStatus(t, planned, holdfast.RunPlanned, "", s)

			states.mu.Lock()
			states.refuse = c.refuse
			states.mu.Unlock()
			s.faults = map[string][]error{protocol.ArtefactErrored: c.faults}
			a = engineAssignment("run-2", holdfast.RunApply)
			a.Dir, a.Reviews = "root", review("run-1", planned)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			status, reason := holdfast.RunErrored, holdfast.CauseStateUnsaved
			var session runner.Session = s
			if c.stop != "" {
				status, reason = failure.StopStatus(c.stop), c.stop
				session = stoppedSession{s, func() { cancel(&failure.StopError{Reason: c.stop}) }}
			}
			got := e.Execute(ctx, a, session)
			if got.Status != status || !got.Applying || (!c.pushed || c.stop != "") && got.Reason != reason {
				t.Fatalf("got %+v\n%s", got, s.logged())
			}
			if f := got.Failure; (f.Cause == holdfast.CauseStateUnsaved) == c.pushed || f.Transient && !c.pushed ||
				strings.Contains(f.Hint, "holdfast state push") == c.pushed {
				t.Errorf("failure %+v", f)
			}
			if kept := len(s.artefact(protocol.ArtefactErrored)) > 0; kept == slices.Contains(c.faults, gone) {
				t.Errorf("errored.tfstate was kept: %t", kept)
			}
			if pushed := strings.Contains(states.state("/prod-eu"), "terraform_data"); pushed != c.pushed {
				t.Errorf("pushed %v, want %v\n%s", pushed, c.pushed, s.logged())
			}
			left, _ := filepath.Glob(filepath.Join(work, "workspaces", "*", "work", "bundle", "root", protocol.ArtefactErrored))
			if all, _ := filepath.Glob(filepath.Join(work, "workspaces", "*")); len(left) != len(all) || len(left) > 0 != c.left {
				t.Errorf("workspaces left: %v", all)
			}
			if c.left && !strings.Contains(got.Failure.Detail, strings.TrimSuffix(left[0], "/work/bundle/root/errored.tfstate")) {
				t.Errorf("it does not say where it is: %s", got.Failure.Detail)
			}
		})
	}
}

// TestExecuteOtherBackend runs a root module with its own backend over the shared
// folder.
func TestExecuteOtherBackend(t *testing.T) {
	t.Parallel()
	e, _ := newRealExecutor(t)
	state := filepath.Join(t.TempDir(), "terraform.tfstate")
	files := map[string]string{"main.tf": fmt.Sprintf(`
terraform {
  backend "local" { path = %q }
}
module "m" { source = "./m" }
`, state), "m/main.tf": `resource "terraform_data" "x" {}`}
	a := engineAssignment("run-1", holdfast.RunPlan)
	a.OwnState = false
	s := newMemorySession(files)
	planned := e.Execute(t.Context(), a, s)
	wantStatus(t, planned, holdfast.RunPlanned, "", s)
	a.Run, a.Kind, a.Reviews = "run-2", holdfast.RunApply, review("run-1", planned)
	s = newMemorySession(files)
	wantStatus(t, e.Execute(t.Context(), a, s), holdfast.RunApplied, "", s)
	if data, err := os.ReadFile(state); err != nil || !strings.Contains(string(data), "module.m") {
		t.Errorf("state %q, %v", data, err)
	}
}

// TestExecuteWithoutServer plans against an empty state where no backend is, and
// completes a root module that has none.
func TestExecuteWithoutServer(t *testing.T) {
	t.Parallel()
	e, _ := newRealExecutor(t)
	for name, code := range map[string]string{
		"http": "terraform {\n  backend \"http\" {}\n}\n", "none": "",
	} {
		s := newMemorySession(map[string]string{"main.tf": code + `resource "terraform_data" "x" {}`})
		a := engineAssignment("run-"+name, holdfast.RunPlan)
		wantStatus(t, e.Execute(t.Context(), a, s), holdfast.RunPlanned, "", s)
	}
	states := newStateServer(t)
	s := newMemorySession(map[string]string{"main.tf": `resource "terraform_data" "x" {}`})
	s.state = states.URL + "/x"
	a := engineAssignment("run-1", holdfast.RunPlan)
	planned := e.Execute(t.Context(), a, s)
	wantStatus(t, planned, holdfast.RunPlanned, "", s)
	a.Run, a.Kind, a.Reviews = "run-2", holdfast.RunApply, review("run-1", planned)
	wantStatus(t, e.Execute(t.Context(), a, s), holdfast.RunApplied, "", s)
	if !strings.Contains(states.state("/x"), "terraform_data") {
		t.Error("the state is not in Holdfast's backend")
	}
}

// TestHTTPBackendOfAUser: a backend that is not ours gets the credentials that are
// bound for it.
func TestHTTPBackendOfAUser(t *testing.T) {
	t.Parallel()
	e, _ := newRealExecutor(t)
	store := newStateServer(t)
	guarded := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "gitlab" || password != "glpat" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		store.ServeHTTP(w, r)
	}))
	t.Cleanup(guarded.Close)
	s := newMemorySession(map[string]string{"main.tf": "terraform {\n  backend \"http\" {\n    address = \"" + guarded.URL + "/x\"\n  }\n}\n" +
		`resource "terraform_data" "x" {}`})
	a := engineAssignment("run-1", holdfast.RunPlan)
	a.OwnState, a.Env, a.Secrets = false, map[string]string{"TF_HTTP_USERNAME": "gitlab", "TF_HTTP_PASSWORD": "glpat"}, []string{"TF_HTTP_PASSWORD"}
	wantStatus(t, e.Execute(t.Context(), a, s), holdfast.RunPlanned, "", s)
}

// TestExecuteDiagnostics: what the engine says is wrong comes with its place.
func TestExecuteDiagnostics(t *testing.T) {
	t.Parallel()
	e, _ := newRealExecutor(t)
	states := newStateServer(t)
	s := newMemorySession(map[string]string{"infra/prod/main.tf": "terraform {\n  backend \"http\" {}\n}\nresource \"terraform_data\" \"x\" { input = nope.y }\n"})
	s.state = states.URL + "/a"
	in := engineAssignment("run-1", holdfast.RunPlan)
	in.Dir = "infra/prod"
	got := e.Execute(t.Context(), in, s)
	wantStatus(t, got, holdfast.RunErrored, "InvalidConfiguration", s)
	detail := map[string]string{
		"terraform": `A managed resource "nope" "y" has not been declared in the root module.`,
		"tofu":      `There is no managed resource "nope" "y" definition in the root module.`,
	}
	want := []holdfast.Diagnostic{{
		Severity: "error", Summary: "Reference to undeclared resource", File: "infra/prod/main.tf", Line: 4,
		Detail:  detail[got.EngineName],
		Snippet: ` 4: resource "terraform_data" "x" { input = nope.y }`,
	}}
	if diff := cmp.Diff(want, got.Failure.Diagnostics); diff != "" {
		t.Errorf("diagnostics (-want +got):\n%s", diff)
	}

	files := map[string]string{"main.tf": "resource \"terraform_data\" \"bad\" {\n  provisioner \"local-exec\" { command = \"echo dial tcp: i/o timeout; exit 3\" }\n}\n"}
	s = newMemorySession(files)
	s.state = states.URL + "/b"
	planned := e.Execute(t.Context(), engineAssignment("run-2", holdfast.RunPlan), s)
	a := engineAssignment("run-3", holdfast.RunApply)
	a.Reviews = review("run-2", planned)
	got = e.Execute(t.Context(), a, s)
	wantStatus(t, got, holdfast.RunErrored, "Network", s)
	if d := got.Failure.Diagnostics[0]; d.Address != "terraform_data.bad" || d.Line != 2 || !got.Failure.Transient {
		t.Errorf("failure %+v", got.Failure)
	}
}

// TestExecuteSharesInit: of runs that need the same only the first initialises,
// however many begin at once; a damaged folder is made again.
func TestExecuteSharesInit(t *testing.T) {
	t.Parallel()
	var work string
	e, calls := engineExecutor(t, func(o *runner.ExecutorOptions) { work = o.WorkDir })
	files := map[string]string{"main.tf": `terraform { 
  backend "http" {}
}`}
	count := func(command string) (n int) {
		for _, call := range calls() {
			if call == command {
				n++
			}
		}
		return n
	}
	execute := func(run string, files map[string]string) {
		s := newMemorySession(files)
		s.state = "http://127.0.0.1:1/x"
		wantStatus(t, e.Execute(t.Context(), engineAssignment(run, holdfast.RunPlan), s), holdfast.RunPlanned, "", s)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() { execute(fmt.Sprintf("run-%d", i), files) })
	}
	wg.Wait()
	if got := count("init"); got != 1 {
		t.Errorf("%d runs of init, want 1", got)
	}
	if got, want := len(calls()), 1+3*8; got != want { // state pull, as nobody sees the state on its way, plan and show
		t.Errorf("%d starts of the engine, want %d: %v", got, want, calls())
	}

	execute("run-other-code", map[string]string{"main.tf": files["main.tf"] + "\nlocals {\n  x = 1\n}\n"})
	if got := count("init"); got != 1 {
		t.Errorf("code that init does not read made init run again")
	}

	manifests, _ := filepath.Glob(filepath.Join(work, "shared", "*", "content", "modules", "modules.json"))
	for _, name := range manifests {
		_ = os.Chmod(name, 0o600)
		if err := os.WriteFile(name, []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	execute("run-after-damage", files)
	if got := count("init"); got != 2 {
		t.Errorf("%d runs of init after a damage, want 2", got)
	}
}

// TestExecuteHostileEngine: whatever the engine does, the outcome is true and
// in bounds.
func TestExecuteHostileEngine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fake   string
		kind   holdfast.RunKind
		status holdfast.RunStatus
		reason holdfast.Reason
		check  func(t *testing.T, got protocol.Result, s *memorySession)
	}{
		"garbage instead of JSON": {
			fake: "show say {\"format_version\": nonsense\nshow quit", status: holdfast.RunErrored, reason: "UnreadablePlan",
		},
		"nothing instead of JSON": {fake: "show quit", status: holdfast.RunErrored, reason: "UnreadablePlan"},
		"no plan file":            {fake: "plan quit", status: holdfast.RunErrored, reason: "UnreadablePlan"},
		"lines without end":       {fake: "plan flood 20", status: holdfast.RunPlanned, check: wantSmallLog},
		"a line without end":      {fake: "plan flood-line 20", status: holdfast.RunPlanned, check: wantSmallLog},
		"JSON without end": {
			fake: "show say {\nshow flood-line 4\nshow quit", status: holdfast.RunErrored, reason: "UnreadablePlan",
			check: func(t *testing.T, got protocol.Result, _ *memorySession) {
				t.Helper()
				if f := got.Failure; f.Summary != "show: the plan's JSON has more than its limit: 1048576 bytes" || !strings.Contains(f.Hint, "large values") {
					t.Errorf("failure %+v", f)
				}
			},
		},
		"throttled": {
			fake: "plan fail creating cluster: ThrottlingException: Rate exceeded", status: holdfast.RunErrored, reason: "Throttled",
			check: func(t *testing.T, got protocol.Result, _ *memorySession) {
				t.Helper()
				if !got.Failure.Transient || got.Failure.Step != "plan" || got.Failure.Summary != "plan: creating cluster: ThrottlingException: Rate exceeded" {
					t.Errorf("failure %+v", got.Failure)
				}
			},
		},
		"a secret in an error": {
			fake: "plan fail no access with the-run-token", status: holdfast.RunErrored, reason: "EngineFailed",
			check: func(t *testing.T, got protocol.Result, s *memorySession) {
				t.Helper()
				if text := fmt.Sprintf("%+v", got.Failure) + s.logged(); strings.Contains(text, "the-run-token") {
					t.Error(text)
				}
			},
		},
		"killed in a plan": {fake: "plan die", status: holdfast.RunInterrupted, reason: holdfast.ReasonEngineKilled},
		"killed in an apply": {
			fake: "apply say a.b: Creating...\napply say c.d: Creating...\napply say c.d: Creation complete after 0s [id=1]\napply die",
			kind: holdfast.RunApply, status: holdfast.RunInterrupted, reason: holdfast.ReasonEngineKilled,
			check: func(t *testing.T, got protocol.Result, _ *memorySession) {
				t.Helper()
				if diff := cmp.Diff([]string{"a.b"}, got.Failure.Unrecorded); diff != "" || !got.Applying {
					t.Errorf("applying %v, unrecorded (-want +got):\n%s", got.Applying, diff)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, _ := engineExecutor(t, func(o *runner.ExecutorOptions) { o.Limits.Log, o.Limits.Plan = 1<<20, 1<<20 })
			s := newMemorySession(map[string]string{"main.tf": "terraform {\n  backend \"http\" {}\n}\n", "fake": c.fake})
			s.state = "http://127.0.0.1:1/x"
			a := engineAssignment("run-1", holdfast.RunPlan)
			if c.kind != "" {
				a.Kind = c.kind
				a.Reviews = review("run-0", e.Execute(t.Context(), engineAssignment("run-0", holdfast.RunPlan), s))
			}
			got := e.Execute(t.Context(), a, s)
			wantStatus(t, got, c.status, c.reason, s)
			if c.check != nil {
				c.check(t, got, s)
			}
		})
	}
}

func wantSmallLog(t *testing.T, _ protocol.Result, s *memorySession) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.written > 3<<20 || !strings.Contains(s.log.String(), "bytes of the log left out") {
		t.Errorf("%d bytes of log", s.written)
	}
}

// TestTheRunIsNotSecret: the secret in a run's token is left out of its log, and the run's
// id, which names folders, is not.
func TestTheRunIsNotSecret(t *testing.T) {
	t.Parallel()
	run := holdfast.NewID("run", time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	secret := strings.Repeat("0123456789abcdef", 4)
	e, _ := engineExecutor(t, nil)
	s := newMemorySession(map[string]string{
		"main.tf": "terraform {\n  backend \"http\" {}\n}\n", "fake": "plan fail cannot read /data/" + run + "/x with " + secret,
	})
	s.state = "http://127.0.0.1:1/x"
	a := engineAssignment(run, holdfast.RunPlan)
	a.Token = protocol.FormatRunToken(holdfast.AttemptRef{Run: run, Attempt: 1, Fence: 1}, secret)
	got := e.Execute(t.Context(), a, s)
	wantStatus(t, got, holdfast.RunErrored, "EngineFailed", s)
	if log := s.logged(); !strings.Contains(log, "/data/"+run+"/x") || strings.Contains(log, secret) {
		t.Error(log)
	}
}

// TestExecuteStopped: a stopped attempt interrupts the engine, kills it after
// the grace, and says why.
func TestExecuteStopped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hang   string
		cause  error
		status holdfast.RunStatus
		reason holdfast.Reason
	}{
		"canceled":        {"hang", &runner.StopError{Reason: holdfast.ReasonCanceled}, holdfast.RunCanceled, holdfast.ReasonCanceled},
		"superseded":      {"hang", &runner.StopError{Reason: "Superseded"}, holdfast.RunCanceled, "Superseded"},
		"timeout":         {"hang", &runner.StopError{Reason: holdfast.ReasonTimeout}, holdfast.RunErrored, holdfast.ReasonTimeout},
		"deadline":        {"hang-hard", context.DeadlineExceeded, holdfast.RunErrored, holdfast.ReasonTimeout},
		"lease lost":      {"hang-hard", &runner.StopError{Reason: holdfast.ReasonLeaseLost}, holdfast.RunInterrupted, holdfast.ReasonLeaseLost},
		"without a cause": {"hang", nil, holdfast.RunCanceled, holdfast.ReasonCanceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, _ := engineExecutor(t, func(o *runner.ExecutorOptions) { o.Waits.Grace = graceFor(c.hang) })
			ready := filepath.Join(t.TempDir(), "ready")
			s := newMemorySession(map[string]string{"main.tf": "", "fake": "plan ready " + ready + "\nplan " + c.hang})
			s.state = "http://127.0.0.1:1/x"
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			go func() {
				for ctx.Err() == nil {
					if _, err := os.Stat(ready); err == nil {
						cancel(c.cause)
						return
					}
					time.Sleep(5 * time.Millisecond)
				}
			}()
			got := e.Execute(ctx, engineAssignment("run-1", holdfast.RunPlan), s)
			wantStatus(t, got, c.status, c.reason, s)
		})
	}
}

// TestExecuteWithoutLeave: an apply whose lock is not confirmed does not begin, nor one that
// cannot be written down: it says which of the two it was.
func TestExecuteWithoutLeave(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		unkept error
		reason holdfast.Reason
	}{
		"no lock":     {nil, holdfast.ReasonLeaseLost},
		"full disk":   {&fs.PathError{Op: "sync", Path: "/work/input", Err: syscall.ENOSPC}, holdfast.CauseDiskFull},
		"broken disk": {&fs.PathError{Op: "sync", Path: "/work/input", Err: syscall.EIO}, holdfast.CauseWorkspaceFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, calls := engineExecutor(t, func(o *runner.ExecutorOptions) { o.Waits.Apply = 300 * time.Millisecond })
			s := newMemorySession(map[string]string{"main.tf": ""})
			s.state, s.deny, s.unkept = "http://127.0.0.1:1/x", true, test.unkept
			a := engineAssignment("run-1", holdfast.RunPlan)
			planned := e.Execute(t.Context(), a, s)
			a.Run, a.Kind, a.Reviews = "run-2", holdfast.RunApply, review("run-1", planned)
			got := e.Execute(t.Context(), a, s)
			wantStatus(t, got, holdfast.RunInterrupted, test.reason, s)
			if got.Applying || strings.Contains(strings.Join(calls(), " "), "apply") {
				t.Error("the apply began")
			}
			if test.unkept != nil && (!got.Failure.Transient || !strings.Contains(got.Failure.Summary, test.unkept.Error())) {
				t.Errorf("it says %+v", got.Failure)
			}
		})
	}
}

// TestExecuteResume: what remains of a failed apply continues if it was reviewed,
// and is told if it was not.
func TestExecuteResume(t *testing.T) {
	t.Parallel()
	e, _ := engineExecutor(t, nil)
	s := newMemorySession(map[string]string{"main.tf": ""})
	s.state = "http://127.0.0.1:1/x"
	planned := e.Execute(t.Context(), engineAssignment("run-1", holdfast.RunPlan), s)
	wantStatus(t, planned, holdfast.RunPlanned, "", s)
	reviewed := review("run-1", planned)[0]
	// What was reviewed did more than what is left to do.
	document, err := plandoc.Decode(bytes.NewReader(s.artefact(protocol.ArtefactDocument)))
	if err != nil {
		t.Fatal(err)
	}
	stored := func(d plandoc.Document) holdfast.Digest {
		var b bytes.Buffer
		if err := d.Encode(&b); err != nil {
			t.Fatal(err)
		}
		s.stored = map[string]map[string][]byte{"run-1": {protocol.ArtefactDocument: b.Bytes()}}
		return d.Digest()
	}
	deleted := plandoc.Resource{Address: "terraform_data.a_first_one", Type: "terraform_data", Actions: []string{"delete"}}
	more := plandoc.Document{Version: 1, Resources: append([]plandoc.Resource{deleted}, document.Resources...), Outputs: document.Outputs}
	more.Sort()
	reviewed.PlanDigest = stored(more)

	a := engineAssignment("run-2", holdfast.RunApply)
	a.Reviews = []holdfast.Review{reviewed}
	got := e.Execute(t.Context(), a, s)
	wantStatus(t, got, holdfast.RunPlanned, holdfast.ReasonPlanChanged, s)

	a.Run, a.Resume = "run-3", true
	got = e.Execute(t.Context(), a, s)
	wantStatus(t, got, holdfast.RunApplied, "", s)
	if got.Matched != "run-1" {
		t.Errorf("matched %q", got.Matched)
	}

	// What is stored is not what was reviewed: it counts for nothing.
	lie := reviewed
	lie.PlanDigest = holdfast.DigestOf([]byte("another document"))
	a.Run, a.Reviews = "run-3b", []holdfast.Review{lie}
	got = e.Execute(t.Context(), a, s)
	wantStatus(t, got, holdfast.RunPlanned, holdfast.ReasonPlanChanged, s)

	other := reviewed
	other.PlanDigest = stored(plandoc.Document{Version: 1, Resources: []plandoc.Resource{deleted}})
	a.Run, a.Reviews = "run-4", []holdfast.Review{other}
	got = e.Execute(t.Context(), a, s)
	wantStatus(t, got, holdfast.RunPlanned, holdfast.ReasonPlanChanged, s)
	for _, want := range []string{"terraform_data.x", "terraform_data.a_first_one"} {
		if !strings.Contains(got.Detail, want) {
			t.Errorf("detail %q does not name %s", got.Detail, want)
		}
	}

	other = reviewed
	other.InputDigest = holdfast.DigestOf([]byte("another input"))
	a.Run, a.Reviews = "run-5", []holdfast.Review{other}
	got = e.Execute(t.Context(), a, s)
	wantStatus(t, got, holdfast.RunPlanned, holdfast.ReasonPlanChanged, s)
	if !strings.Contains(got.Detail, "input") {
		t.Errorf("detail %q", got.Detail)
	}
}

// TestExecuteResumeAfterDeath: what an apply that died may have created is not created
// again, unless a person asks for it.
func TestExecuteResumeAfterDeath(t *testing.T) {
	t.Parallel()
	e, calls := engineExecutor(t, nil)
	s := newMemorySession(map[string]string{"main.tf": ""})
	s.state = "http://127.0.0.1:1/x"
	planned := e.Execute(t.Context(), engineAssignment("run-1", holdfast.RunPlan), s)
	wantStatus(t, planned, holdfast.RunPlanned, "", s)
	document := s.artefact(protocol.ArtefactDocument)
	s.stored = map[string]map[string][]byte{"run-1": {protocol.ArtefactDocument: document}}
	a := engineAssignment("run-2", holdfast.RunApply)
	a.Reviews, a.Resume = review("run-1", planned), true

	for i, held := range []protocol.AssignedResume{
		{Resume: true, MayExist: []string{"terraform_data.a", "terraform_data.x"}},
		{Resume: true, AnyMayExist: true},
	} {
		a.Run, a.AssignedResume = fmt.Sprintf("run-3%d", i), held
		got := e.Execute(t.Context(), a, s)
		wantStatus(t, got, holdfast.RunPlanned, holdfast.ReasonMayExist, s)
		if !strings.Contains(got.Detail, "may exist already") || !strings.Contains(got.Detail, "terraform_data.x") || strings.Contains(got.Detail, "terraform_data.a") {
			t.Errorf("detail is %q", got.Detail)
		}
		if got.Applying || got.PlanDigest == "" || strings.Contains(strings.Join(calls(), " "), " apply") {
			t.Errorf("it was not held: %+v", got)
		}
	}

	// A plan says so as well, and so does an apply of what was not reviewed.
	p := engineAssignment("run-5", holdfast.RunPlan)
	p.MayExist = []string{"terraform_data.x"}
	got := e.Execute(t.Context(), p, s)
	wantStatus(t, got, holdfast.RunPlanned, holdfast.ReasonMayExist, s)
	if !strings.Contains(got.Detail, "terraform_data.x") {
		t.Errorf("the plan's detail is %q", got.Detail)
	}
	other := a
	other.Run, other.Reviews, other.AssignedResume = "run-6", nil, p.AssignedResume
	got = e.Execute(t.Context(), other, s)
	wantStatus(t, got, holdfast.RunPlanned, holdfast.ReasonMayExist, s)
	if !strings.Contains(got.Detail, "terraform_data.x") || !strings.Contains(got.Detail, "reviewed") {
		t.Errorf("the detail of what was not reviewed is %q", got.Detail)
	}

	// Others than what this plan creates: of another key, or in another module.
	a.Run, a.MayExist, a.AnyMayExist = "run-4", []string{"terraform_data.x[0]", "module.m.terraform_data.x", "terraform_data.x (deposed object 1a2b3c4d)"}, false
	wantStatus(t, e.Execute(t.Context(), a, s), holdfast.RunApplied, "", s)
}

// TestExecuteEnvironment: engines see what they are given and nothing of this
// process.
func TestExecuteEnvironment(t *testing.T) {
	t.Parallel()
	e, _ := engineExecutor(t, nil)
	file := filepath.Join(t.TempDir(), "env")
	s := newMemorySession(map[string]string{"main.tf": "", "fake": "plan env " + file})
	s.state = "http://127.0.0.1:1/x"
	a := engineAssignment("run-1", holdfast.RunPlan)
	a.Env = map[string]string{
		"AWS_PROFILE": "reader", "TF_VAR_size": "3", "TF_DATA_DIR": "/elsewhere", "TF_HTTP_PASSWORD": "not this one",
		"TF_HTTP_CLIENT_PRIVATE_KEY_PEM": "of another backend",
	}
	wantStatus(t, e.Execute(t.Context(), a, s), holdfast.RunPlanned, "", s)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		got[name] = value
	}
	for _, name := range []string{"PWD", "OLDPWD", "SHLVL", "_", "PATH", "FAKE_ENGINE_CALLS", "TF_CLI_CONFIG_FILE"} {
		delete(got, name) // of the shell, or other in each test
	}
	for name, end := range map[string]string{"GIT_CONFIG_VALUE_0": "/work", "GIT_CONFIG_VALUE_1": "/work/bundle"} {
		if !strings.HasSuffix(got[name], end) {
			t.Errorf("Git takes %q for safe, want a folder that ends with %s", got[name], end)
		}
		delete(got, name)
	}
	want := map[string]string{
		"HOME": "/nowhere", "AWS_PROFILE": "reader", "TF_VAR_size": "3",
		"GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_KEY_1": "safe.directory",
		"TF_IN_AUTOMATION": "1", "TF_INPUT": "0", "CHECKPOINT_DISABLE": "1",
		"GOGC":            "200",
		"TF_HTTP_ADDRESS": "http://127.0.0.1:1/x", "TF_HTTP_LOCK_ADDRESS": "http://127.0.0.1:1/x",
		"TF_HTTP_UNLOCK_ADDRESS": "http://127.0.0.1:1/x", "TF_HTTP_USERNAME": "run", "TF_HTTP_PASSWORD": "the-state-password",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

// TestPasswordsOfProxies: the code of a plan can read them, and whoever reads its log or its
// failure cannot. A proxy without a password is nothing secret.
func TestPasswordsOfProxies(t *testing.T) {
	t.Parallel()
	e, _ := engineExecutor(t, func(o *runner.ExecutorOptions) {
		o.Engines.Env["HTTPS_PROXY"] = "http://alice:p%40ssw0rd-1@proxy.example.com:3128"
		o.Engines.Env["http_proxy"] = "http://open.example.com:3128"
	})
	s := newMemorySession(map[string]string{"main.tf": "", "fake": "plan fail-with /proc/self/environ"})
	a := engineAssignment("run-1", holdfast.RunPlan)
	a.Env = map[string]string{
		"all_proxy": "bob:another-one@socks.example.com:1080", "NOTE": "p@ssw0rd-1",
		"HEADER": "Basic " + base64.StdEncoding.EncodeToString([]byte("alice:p@ssw0rd-1")),
	}
	got := e.Execute(t.Context(), a, s)
	wantStatus(t, got, holdfast.RunErrored, "EngineFailed", s)
	failed, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"log": s.logged(), "failure": string(failed)} {
		for _, secret := range []string{"ssw0rd-1", "another-one", strings.TrimPrefix(a.Env["HEADER"], "Basic ")} {
			if strings.Contains(text, secret) {
				t.Errorf("the %s has %q in it: %s", name, secret, text)
			}
		}
		if !strings.Contains(text, "http://open.example.com:3128") {
			t.Errorf("the %s does not have the proxy without a password: %s", name, text)
		}
	}
}
