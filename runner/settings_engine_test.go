//go:build !race

package runner_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner"
)

// emptiedState is the state of a cluster from which all was taken.
const emptiedState = `{"version": 4, "terraform_version": "1.5.0", "serial": 3, "lineage": "0d7f3c2e", "outputs": {}, "resources": [], "check_results": null}`

// refusal is how an object store answers in place of what it has.
type refusal struct {
	code   string
	status int
}

func (r refusal) serve(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(r.status)
	_, _ = fmt.Fprintf(w, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%[1]s</Code><Message>%[1]s</Message></Error>", r.code)
}

// keyLines are the arguments of a bucket's block that are secret.
var keyLines = regexp.MustCompile(`(?m)^ *(access|secret)_key .*\n`)

// TestRememberedBackendThatIsGone: a store that was there in an earlier run, and no
// longer is, or refuses what it took, ends a run with the failure with which it ends the
// first run of an agent.
func TestRememberedBackendThatIsGone(t *testing.T) {
	t.Parallel()
	realEngine(t)
	var answers atomic.Pointer[refusal]
	b := newBucket(t, func(store http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if answer := answers.Load(); answer != nil {
				answer.serve(w)
				return
			}
			store.ServeHTTP(w, r)
		})
	})
	if status := b.ask(http.MethodPut, stateKey, emptiedState, false); status != http.StatusOK {
		t.Fatalf("the state was answered %d", status)
	}
	files := map[string]string{"main.tf": keyLines.ReplaceAllString(b.code("")["main.tf"], "")}
	look := func(e *runner.Executor) (protocol.Result, *memorySession) {
		s := newMemorySession(files)
		a := engineAssignment("look", holdfast.RunPlan)
		a.OwnState = false
		a.Env = map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_EC2_METADATA_DISABLED": "true"}
		return e.Execute(t.Context(), a, s), s
	}
	e, _ := newRealExecutor(t)
	looks := func(when string, byInit bool) {
		t.Helper()
		same, s := look(e)
		wantStatus(t, same, holdfast.RunNoChanges, "", s)
		if got := strings.Contains(s.logged(), "Initializing the backend"); got != byInit {
			t.Errorf("%s: init has configured the backend: %v, want %v\n%s", when, got, byInit, s.logged())
		}
	}
	looks("first", true)
	for name, answer := range map[string]refusal{
		"it is gone": {"NoSuchBucket", http.StatusNotFound},
		"it refuses": {"AccessDenied", http.StatusForbidden},
	} {
		looks("before "+name, false)
		answers.Store(&answer)
		got, s := look(e)
		first, _ := newRealExecutor(t)
		want, _ := look(first)
		if got.Status != holdfast.RunErrored || got.Failure == nil || want.Failure == nil {
			t.Fatalf("%s: it ended %s, and %s without memory\n%s", name, got.Status, want.Status, s.logged())
		}
		if diff := cmp.Diff(want.Failure, got.Failure); diff != "" {
			t.Errorf("%s: the failure is another one (-without memory +with it):\n%s", name, diff)
		}
		answers.Store(nil)
		looks("after "+name, true)
	}
}

// TestRememberedBackendThatReadsAsEmpty: some engines read a store that is gone as one
// without a state, and only their init says that it is gone. Nothing is planned then.
func TestRememberedBackendThatReadsAsEmpty(t *testing.T) {
	t.Parallel()
	l := newScriptLab(t, `
if [ -e WORLD/gone ]; then
	case "$1 $2" in
	"state pull") exit 0 ;;
	"init -reconfigure") printf '\nError: Failed to get existing workspaces: the bucket does not exist\n\n' >&2; exit 1 ;;
	esac
fi
exec "$engine" "$@"`)
	l.ours = false
	l.put("state", emptiedState)
	files := map[string]string{"main.tf": "terraform {\n  backend \"local\" { path = \"WORLD/state\" }\n}\n"}
	look := func(id string, status holdfast.RunStatus, reason holdfast.Reason, want map[string]int) protocol.Result {
		t.Helper()
		result, starts := l.run(id, holdfast.RunPlan, files, nil)
		l.want(result, id, status, reason)
		if diff := cmp.Diff(want, starts); diff != "" {
			t.Errorf("%s: starts of the engine (-want +got):\n%s", id, diff)
		}
		return result
	}
	look("first", holdfast.RunNoChanges, "", map[string]int{"init": 2, "state": 1, "plan": 1, "show": 1})
	look("second", holdfast.RunNoChanges, "", map[string]int{"state": 1, "plan": 1, "show": 1})
	l.put("gone", "")
	gone := look("gone", holdfast.RunErrored, holdfast.CauseStateBackend, map[string]int{"state": 1, "init": 1})
	if gone.Failure.Step != "init" || !strings.Contains(gone.Failure.Summary, "the bucket does not exist") {
		t.Errorf("failure %+v", gone.Failure)
	}
	l.remove("gone")
	look("back", holdfast.RunNoChanges, "", map[string]int{"init": 1, "state": 1, "plan": 1, "show": 1})
	look("again", holdfast.RunNoChanges, "", map[string]int{"state": 1, "plan": 1, "show": 1})
}

// TestRememberedBackendOfACluster: what is remembered of a backend is for runs of the same
// cluster, with the same code and credentials, and has no secret in it.
func TestRememberedBackendOfACluster(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.ours = false
	states := newStateServer(t)
	states.states["/prod-eu"] = []byte(emptiedState)
	local := func(name string) string {
		if err := os.WriteFile(filepath.Join(l.world, name), []byte(emptiedState), 0o600); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("terraform {\n  backend \"local\" {\n    path = %q\n  }\n}\n", filepath.Join(l.world, name))
	}
	number := 0
	inits := func(code string, change func(*protocol.Assignment)) int {
		t.Helper()
		number++
		id := fmt.Sprintf("look-%d", number)
		result, starts := l.run(id, holdfast.RunPlan, map[string]string{"main.tf": code}, change)
		l.want(result, id, holdfast.RunNoChanges, "")
		return starts["init"]
	}
	given := func(a *protocol.Assignment) {
		a.Env, a.Secrets = map[string]string{"GIVEN": "the-secret-value"}, []string{"GIVEN"}
	}
	code := local("state")
	for name, c := range map[string]struct {
		code       string
		remembered bool
	}{
		"a file":         {code, true},
		"a known secret": {local("the-secret-value"), false},
		"a password": {fmt.Sprintf("terraform {\n  backend \"http\" {\n    address  = %q\n    username = \"ann\"\n    password = \"hunter2\"\n  }\n}\n",
			states.URL+"/prod-eu"), false},
	} {
		inits(c.code, given)
		if n := inits(c.code, given); (n == 0) != c.remembered {
			t.Errorf("%s: init was started %d times by a run that follows another one", name, n)
		}
	}
	for name, change := range map[string]func(*protocol.Assignment){
		"another cluster":    func(a *protocol.Assignment) { given(a); a.Cluster = "prod-us" },
		"another place":      func(a *protocol.Assignment) { given(a); a.StateLocation = "elsewhere" },
		"another credential": func(a *protocol.Assignment) { given(a); a.Env["GIVEN"] = "another-value" },
		"options for init":   func(a *protocol.Assignment) { given(a); a.Env["TF_CLI_ARGS_init"] = "-get=true" },
	} {
		if inits(code, change) == 0 {
			t.Errorf("%s: init was not started", name)
		}
	}
	if inits(code+"variable \"x\" { default = 1 }\n", given) != 0 {
		t.Error("other code with the same backend: init was started")
	}
	if inits(strings.Replace(code, "path", "workspace_dir = \"w\"\n    path", 1), given) == 0 {
		t.Error("another argument: init was not started")
	}
}
