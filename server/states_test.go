package server_test

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/statelock"
)

const (
	lockOne = `{"ID":"one","Operation":"OperationTypeApply","Who":"me@here","Version":"1.11.4","Created":"2026-03-01T12:00:00Z"}`
	lockTwo = `{"ID":"two","Operation":"OperationTypePlan","Who":"you@there","Version":"1.11.4","Created":"2026-03-01T12:00:00Z"}`
)

func md5Of(text string) string {
	sum := md5.Sum([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// TestStateConversation follows the http backend of the engines step by step.
func TestStateConversation(t *testing.T) {
	t.Parallel()
	w := newWorld()
	token := w.start(applyRun("run-1"))
	plan := w.start(planRun("run-plan"))
	url := serve(t, newServer(t, w, func(o *server.Options) { o.Limits.State = 1000 }).Agents()) + "/agent/v1/state/clusters/prod-eu"

	state := `{"version":4,"serial":1}`
	for _, step := range []struct {
		name, method, query, token, body, md5 string
		want                                  int
		wantBody                              string
	}{
		{"no state yet", "GET", "", token, "", "", 204, ""},
		{"lock", "LOCK", "", token, lockOne, "", 200, lockOne},
		{"lock again", "LOCK", "", token, lockOne, "", 200, lockOne},
		{"lock held by another", "LOCK", "", plan, lockTwo, "", 423, lockOne},
		{"lock without ID", "LOCK", "", token, `{"Who":"me"}`, "", 400, `{"error":"lock has no ID"}`},
		{"lock that is not JSON", "LOCK", "", token, `lock`, "", 400, "?"},
		{"write under another's lock", "POST", "?ID=two", token, state, "", 423, lockOne},
		{"write without the lock's id", "POST", "", token, state, "", 423, lockOne},
		{"write by a plan", "POST", "?ID=one", plan, state, "", 403, "?"},
		{"write", "POST", "?ID=one", token, state, md5Of(state), 200, ""},
		{"damaged write", "POST", "?ID=one", token, state, md5Of("other"), 400, "?"},
		{"damaged sum", "POST", "?ID=one", token, state, "%%", 400, "?"},
		{"half a write", "POST", "?ID=one", token, state[:10], "", 400, "?"},
		{"empty write", "POST", "?ID=one", token, "", "", 400, "?"},
		{"too large", "POST", "?ID=one", token, `"` + strings.Repeat("x", 1000) + `"`, "", 413, "?"},
		{"read", "GET", "", token, "", "", 200, state},
		{"read by a plan", "GET", "", plan, "", "", 200, state},
		{"unlock by another", "UNLOCK", "", plan, lockTwo, "", 423, lockOne},
		{"unlock by another, who knows the id", "UNLOCK", "", plan, lockOne, "", 423, lockOne},
		{"unlock without an id by another", "UNLOCK", "", plan, "", "", 400, "?"},
		{"unlock without an id", "UNLOCK", "", token, "", "", 400, "?"},
		{"unlock", "UNLOCK", "", token, lockOne, "", 200, ""},
		{"lock by a plan", "LOCK", "", plan, lockTwo, "", 200, lockTwo},
		{"unlock by a plan", "UNLOCK", "", plan, lockTwo, "", 200, ""},
		{"tofu's force-unlock", "UNLOCK", "", plan, `{"ID":"two"}`, "", 200, ""},
	} {
		headers := []string{}
		if step.md5 != "" {
			headers = []string{"Content-MD5", step.md5}
		}
		got := request(t, step.method, url+step.query, step.token, step.body, headers...)
		if got.status != step.want || step.wantBody != "?" && got.body != step.wantBody {
			t.Errorf("%s: %d %q, want %d %q", step.name, got.status, got.body, step.want, step.wantBody)
		}
		if step.name == "read" && (got.header.Get("Content-MD5") != md5Of(state) || got.header.Get("Holdfast-State-Version") != "1") {
			t.Errorf("read: headers %v, want the sum and the version", got.header)
		}
	}
}

// TestStateOfAnAttemptThatIsOver: refused, but not lost.
func TestStateOfAnAttemptThatIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld()
	token := w.start(applyRun("run-1"))
	url := serve(t, newServer(t, w).Agents()) + "/agent/v1/state/clusters/prod-eu"
	if got := request(t, "LOCK", url, token, lockOne); got.status != 200 {
		t.Fatalf("lock = %d %s", got.status, got.body)
	}
	w.end("run-1", holdfast.RunInterrupted)

	if got := request(t, "POST", url+"?ID=one", token, `{"serial":7}`); got.status != 409 {
		t.Errorf("write = %d %s, want 409", got.status, got.body)
	}
	w.look(func() {
		if len(w.quarantine) != 1 || string(w.quarantine[0].Data) != `{"serial":7}` || w.quarantine[0].By.Fence != 10 {
			t.Errorf("quarantine holds %v, want the upload with its fence", w.quarantine)
		}
	})
	if got := request(t, "POST", url+"?ID=one", "run-1.1.guess", `{"serial":8}`); got.status != 401 {
		t.Errorf("write with a guessed token = %d, want 401", got.status)
	}
	for _, method := range []string{"GET", "LOCK"} {
		if got := request(t, method, url, token, lockOne); got.status != 409 {
			t.Errorf("%s = %d, want 409", method, got.status)
		}
	}
	if got := request(t, "UNLOCK", url, token, lockOne); got.status != 200 {
		t.Errorf("unlock = %d %s, want its own lock released", got.status, got.body)
	}
	w.look(func() {
		if len(w.quarantine) != 1 || len(w.locks) != 0 {
			t.Errorf("quarantine holds %d uploads, want 1; locks left: %v", len(w.quarantine), w.locks)
		}
	})
}

// terraform runs the real engine in dir against the state at url.
func terraform(t *testing.T, dir, url, password string, args ...string) (string, error) {
	t.Helper()
	name, err := exec.LookPath("terraform")
	if err != nil {
		name = "tofu"
	}
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1", "TF_HTTP_RETRY_MAX=0",
		"TF_HTTP_ADDRESS=" + url, "TF_HTTP_LOCK_ADDRESS=" + url, "TF_HTTP_UNLOCK_ADDRESS=" + url,
		"TF_HTTP_LOCK_METHOD=LOCK", "TF_HTTP_UNLOCK_METHOD=UNLOCK", "TF_HTTP_USERNAME=run", "TF_HTTP_PASSWORD=" + password,
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestRealEngine(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts an engine")
	}
	_, err := exec.LookPath("terraform")
	if err != nil {
		_, err = exec.LookPath("tofu")
	}
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("neither terraform nor tofu is on PATH")
		}
		t.Skip("neither terraform nor tofu is on PATH: the state backend is not tried with a real engine")
	}
	w := newWorld()
	apply, plan := w.start(applyRun("run-1")), w.start(planRun("run-2"))
	url := serve(t, newServer(t, w).Agents()) + "/agent/v1/state/clusters/prod-eu"
	dir := t.TempDir()
	code := `terraform {
  backend "http" {}
}
resource "terraform_data" "one" { input = "first" }
output "one" { value = terraform_data.one.output }
`
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	must := func(password string, args ...string) string {
		t.Helper()
		out, err := terraform(t, dir, url, password, args...)
		if err != nil {
			t.Fatalf("terraform %v: %v\n%s", args, err, out)
		}
		return out
	}
	must(plan, "init", "-input=false", "-no-color")
	must(plan, "plan", "-input=false", "-no-color", "-out=p")
	w.look(func() {
		if w.locked != 1 || len(w.locks) != 0 {
			t.Errorf("plan locked %d times and left %v", w.locked, w.locks)
		}
	})

	// The plan's credential cannot write what it planned.
	out, err := terraform(t, dir, url, plan, "apply", "-input=false", "-no-color", "p")
	w.look(func() {
		if err == nil || len(w.states) != 0 {
			t.Errorf("apply with a plan's credential: %v, states %v\n%s", err, w.states, out)
		}
		w.locks["clusters/prod-eu"] = statelock.StateLock{ID: "one", Who: "me@here", Info: []byte(lockOne)}
	})
	out, err = terraform(t, dir, url, apply, "apply", "-input=false", "-no-color", "-lock-timeout=0s", "-auto-approve")
	if err == nil || !strings.Contains(out, "ID=one") {
		t.Errorf("apply under another's lock: %v, want the holder named\n%s", err, out)
	}
	w.look(func() { delete(w.locks, "clusters/prod-eu") })

	must(apply, "apply", "-input=false", "-no-color", "-auto-approve")
	var stored struct {
		Outputs map[string]struct{ Value string }
	}
	w.look(func() {
		if err := json.Unmarshal(w.states["clusters/prod-eu"], &stored); err != nil || stored.Outputs["one"].Value != "first" {
			t.Errorf("stored state %s: %v, want the output", w.states["clusters/prod-eu"], err)
		}
	})
	if out := must(plan, "plan", "-input=false", "-no-color"); !strings.Contains(out, "No changes") {
		t.Errorf("plan after apply:\n%s\nwant no changes", out)
	}
	w.look(func() {
		if len(w.locks) != 0 {
			t.Errorf("locks left: %v", w.locks)
		}
	})
	w.end("run-1", holdfast.RunApplied)
	if out, err := terraform(t, dir, url, apply, "plan", "-input=false", "-no-color"); err == nil {
		t.Errorf("plan with the credential of a run that is over succeeded:\n%s", out)
	}
}

// TestStateToPush: a run that pushes a state that could not be saved gets that one as its own,
// and another run that puts a state right gets none.
func TestStateToPush(t *testing.T) {
	t.Parallel()
	for action, want := range map[holdfast.StateAction]int{holdfast.StatePush: http.StatusOK, holdfast.StateUnlock: http.StatusNotFound} {
		w := newWorld()
		run := applyRun("run-2")
		run.Kind, run.State = holdfast.RunState, &holdfast.StateJob{Action: action, Unsaved: holdfast.UnsavedState{Run: "run-1"}}
		token := w.start(run)
		w.artefacts["run-1/"+protocol.ArtefactErrored] = `{"serial":7}`
		url := serve(t, newServer(t, w).Agents()) + "/agent/v1/runs/run-2/artefacts/"
		got := request(t, "GET", url+protocol.ArtefactErrored, token, "")
		if got.status != want || want == http.StatusOK && got.body != `{"serial":7}` {
			t.Errorf("%s: its state = %d %q, want %d", action, got.status, got.body, want)
		}
		if got := request(t, "GET", url+protocol.ArtefactOutputs, token, ""); got.status != http.StatusNotFound {
			t.Errorf("%s: its outputs = %d %q", action, got.status, got.body)
		}
	}
}
