package runner_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/ownclient"
	"github.com/holdfast-dev/holdfast/protocol"
)

// bucket is an object store that keeps to If-None-Match, which the engines' locks in S3
// depend on.
type bucket struct {
	t   *testing.T
	url string
}

const stateKey = "prod-eu/terraform.tfstate"

// newBucket starts an object store, behind what front makes of it.
func newBucket(t *testing.T, front func(http.Handler) http.Handler) bucket {
	t.Helper()
	store := s3mem.New()
	if err := store.CreateBucket("states"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(front(gofakes3.New(store).Server()))
	t.Cleanup(server.Close)
	return bucket{t, server.URL}
}

// code is a root module whose state is there, under a lock.
func (b bucket) code(rest string) map[string]string {
	return map[string]string{"main.tf": fmt.Sprintf(`terraform {
  backend "s3" {
    bucket                      = "states"
    key                         = %q
    region                      = "us-east-1"
    use_lockfile                = true
    endpoints                   = { s3 = %q }
    access_key                  = "a"
    secret_key                  = "b"
    use_path_style              = true
    skip_credentials_validation = true
    skip_metadata_api_check     = true
    skip_region_validation      = true
    skip_requesting_account_id  = true
    skip_s3_checksum            = true
    max_retries                 = 1
  }
}
%s`, stateKey, b.url, rest)}
}

// has reports whether there is an object.
func (b bucket) has(key string) bool {
	b.t.Helper()
	return b.ask(http.MethodHead, key, "", false) == http.StatusOK
}

// remove takes an object away, if it is there.
func (b bucket) remove(key string) {
	b.t.Helper()
	if status := b.ask(http.MethodDelete, key, "", false); status != http.StatusNoContent && status != http.StatusNotFound {
		b.t.Fatalf("%s was not removed: %d", key, status)
	}
}

func (b bucket) ask(method, key, body string, unlessThere bool) (status int) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.url+"/states/"+key, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if unlessThere {
		req.Header.Set("If-None-Match", "*")
	}
	res, err := ownclient.Client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode
}

// TestLocksInS3: who holds the lock of a state in S3 keeps others out, an apply of ours
// among them; a run releases a lock that was left behind, and no other.
func TestLocksInS3(t *testing.T) {
	t.Parallel()
	realEngine(t)
	b := newBucket(t, func(store http.Handler) http.Handler { return store })
	made := filepath.Join(t.TempDir(), "go-on")
	files := b.code(fmt.Sprintf("resource \"terraform_data\" \"x\" {\n  provisioner \"local-exec\" { command = \"touch %[1]s; until [ -e %[2]s ]; do sleep 0.1; done\" }\n}\n",
		filepath.Join(filepath.Dir(made), "begun"), made))
	e, _ := newRealExecutor(t)
	at := new(time.Duration) // what is locked is not waited for
	run := func(id string, kind holdfast.RunKind, change func(*protocol.Assignment)) (protocol.Result, *memorySession) {
		s := newMemorySession(files)
		s.deny = kind == holdfast.RunUnlock // as of all that may not apply
		a := engineAssignment(id, kind)
		a.OwnState, a.LockTimeout = false, at
		if change != nil {
			change(&a)
		}
		return e.Execute(t.Context(), a, s), s
	}
	refused := func(id, lock string) {
		t.Helper()
		got, s := run(id, holdfast.RunPlan, nil)
		wantStatus(t, got, holdfast.RunErrored, holdfast.CauseStateLocked, s)
		if text := got.Failure.Summary + got.Failure.Detail; !got.Failure.Transient || !strings.Contains(text, lock) {
			t.Errorf("transient %v, the failure does not name the lock %q: %s", got.Failure.Transient, lock, text)
		}
	}

	const left = "7a3f2b1c-0000-4000-8000-123456789abc"
	info := fmt.Sprintf(`{"ID":%q,"Operation":"OperationTypeApply","Info":"","Who":"ann@laptop","Version":"1.11.4","Created":"2026-03-01T12:00:00Z","Path":"states/%s"}`, left, stateKey)
	for _, kind := range []holdfast.RunKind{holdfast.RunState, holdfast.RunUnlock} {
		if status := b.ask(http.MethodPut, stateKey+".tflock", info, true); status != http.StatusOK {
			t.Fatalf("the lock was answered %d", status)
		}
		if status := b.ask(http.MethodPut, stateKey+".tflock", info, true); status != http.StatusPreconditionFailed {
			t.Fatalf("a second lock was answered %d: the store proves nothing", status)
		}
		refused("locked-"+string(kind), left)
		release := func(id, lock string) (protocol.Result, *memorySession) {
			return run(id+string(kind), kind, func(a *protocol.Assignment) {
				a.State = &holdfast.StateJob{Action: holdfast.StateUnlock, LockID: lock}
			})
		}
		got, s := release("other-", strings.Replace(left, "7a3f", "0000", 1))
		wantStatus(t, got, holdfast.RunErrored, holdfast.CauseStateBackend, s)
		if !b.has(stateKey + ".tflock") {
			t.Errorf("another lock was released by a run of kind %s", kind)
		}
		got, s = release("run-", left)
		wantStatus(t, got, holdfast.RunApplied, "", s)
		if b.has(stateKey + ".tflock") {
			t.Errorf("the lock is still there after a run of kind %s", kind)
		}
		got, s = release("gone-", left)
		wantStatus(t, got, holdfast.RunErrored, holdfast.CauseStateBackend, s)
		if !strings.Contains(got.Failure.Hint, "may be gone already") {
			t.Errorf("the hint at a lock that is gone: %s", got.Failure.Hint)
		}
	}

	planned, s := run("run-3", holdfast.RunPlan, nil)
	wantStatus(t, planned, holdfast.RunPlanned, "", s)
	ended, begun := make(chan struct{}), filepath.Join(filepath.Dir(made), "begun")
	var applied protocol.Result
	var log *memorySession
	go func() {
		defer close(ended)
		applied, log = run("run-4", holdfast.RunApply, func(a *protocol.Assignment) { a.Reviews = review("run-3", planned) })
	}()
	untilFile(t, begun) // the provisioner is at work, and the engine that applies has the lock
	refused("run-5", "Lock Info")
	if err := os.WriteFile(made, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-ended
	wantStatus(t, applied, holdfast.RunApplied, "", log)
	if b.has(stateKey+".tflock") || !b.has(stateKey) {
		t.Error("after the apply there is a lock, or no state")
	}
}
