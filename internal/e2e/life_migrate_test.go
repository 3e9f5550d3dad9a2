package e2e_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/internal/testenv/objectserver"
)

// turnstile is in front of a store of states, and keeps the one waiting that makes a request of
// which the number is said.
type turnstile struct {
	store http.Handler

	mu      sync.Mutex
	method  string        // of the requests that count; empty: all
	left    int           // requests until then; negative: nobody waits
	reached chan struct{} // closed when somebody waits
	opened  chan struct{} // closed when whoever waits may pass
}

// stop has the request wait that is made after so many others.
func (s *turnstile) stop(left int) (reached <-chan struct{}) { return s.stopAt("", left) }

// stopAt has the request of a method wait that is made after so many others of it.
func (s *turnstile) stopAt(method string, left int) (reached <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.method, s.left, s.reached, s.opened = method, left, make(chan struct{}), make(chan struct{})
	return s.reached
}

// open lets pass who waits.
func (s *turnstile) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.opened)
}

func (s *turnstile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body) // otherwise nobody notices that the client dies
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.mu.Lock()
	waits, opened := false, s.opened
	if s.method == "" || s.method == r.Method {
		waits = s.left == 0
		s.left--
	}
	if waits {
		close(s.reached)
	}
	s.mu.Unlock()
	if waits {
		select {
		case <-r.Context().Done(): // its client is dead
			return
		case <-opened:
		}
	}
	s.store.ServeHTTP(w, r)
}

// atTurnstile has the clients of a store come through a turnstile.
func atTurnstile(w *world, store *stateStore) *turnstile {
	s := &turnstile{store: store, left: -1}
	front := httptest.NewServer(s)
	w.t.Cleanup(front.Close)
	store.URL = front.URL
	return s
}

// migrate queues a migration and returns its run.
func (w *world) migrate(cluster string) string {
	w.t.Helper()
	run, _, _ := strings.Cut(w.do("state migrate "+cluster, "moves the state of "+cluster), " ")
	return run
}

// ofRun waits until a run has ended, and returns it.
func (w *world) ofRun(id string) (run v1.Run) {
	w.t.Helper()
	w.until("run "+id+" has ended", func() (bool, string) {
		run = v1.Run{}
		ok := w.getJSON("runs/"+id, nil, &run)
		return ok && run.Status.Done(), string(run.Status)
	})
	return run
}

// TestMigrationIsKilled: a pull request names another state, which is refused until that is
// migrated. The agent is killed while the migration asks for the new place: the next attempt
// begins again. In the end everything is at the new place, and the next change is applied there.
func TestMigrationIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"runs.lockTimeout": "0s"})
	store := newStateStore(w)
	gate := atTurnstile(w, store)
	w.start()
	pr := w.fleet().open(join(document("alpha"), moduleFile("alpha", "")))
	pr.untilPlanned("1 to create")
	pr.merge()
	pr.untilApplied()

	moves := w.fleet().open(document("alpha", store.backend("alpha")))
	moves.untilComment("StateWouldMove", "its state is clusters/alpha and would be http:address=", "holdfast state migrate")
	moves.merge()
	w.untilWaiting("alpha", holdfast.ReasonStateWouldMove)
	if out, stderr, code := w.cli("apply", "alpha"); code == 0 {
		t.Errorf("an apply is asked for: %d %s%s", code, out, stderr)
	}
	w.do("state migrate alpha --dry-run", "would move from clusters/alpha to http:address=")
	reached := gate.stop(0)
	id := w.migrate("alpha")
	w.until("the migration asks for the new place", func() (bool, string) {
		select {
		case <-reached:
			return true, ""
		default:
			return false, "it does not"
		}
	})
	w.killAgent(holdfast.RunApply)
	if run := w.ofRun(id); run.Status != holdfast.RunApplied || run.Attempt != 2 {
		t.Fatalf("after its agent was killed, the migration is %s, attempt %d: %+v\n%s", run.Status, run.Attempt, run.Failure, w.logOf(id))
	}
	w.untilWaiting("alpha", "")
	w.untilIdle()
	if out, stderr, code := w.cli("state", "migrate", "alpha"); code == 0 || !strings.Contains(stderr, "where it is to be") {
		t.Errorf("another migration: %d %s%s", code, out, stderr)
	}
	before := store.state("alpha")
	more := w.fleet().open(document("alpha", "variables: {nodes: 2}", store.backend("alpha")))
	more.untilPlanned("1 to create")
	more.merge()
	more.untilApplied()
	if after := store.state("alpha"); after == before || !strings.Contains(after, `"index_key": 1`) {
		t.Errorf("the change is not in the new place:\n%s", after)
	}
}

// TestMigrationIsKilledWithALock: the agent is killed while its engine holds the lock of the new
// place, before each of its writes there and before the lock is released. The next attempt finds
// the lock of a dead one, which a command releases; the migration then ends well, and so it does
// when the server is killed in the middle, which the agent does not mind.
func TestMigrationIsKilledWithALock(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"runs.lockTimeout": "0s"})
	store := newStateStore(w)
	gate := atTurnstile(w, store)
	w.start()
	moments := map[string]struct {
		method string
		left   int
		server bool
	}{
		"first":    {"POST", 0, false},
		"second":   {"POST", 1, false},
		"released": {"UNLOCK", 1, false},
		"proven":   {"UNLOCK", 2, false},
		"served":   {"POST", 1, true},
	}
	var made, moved files
	for name := range moments {
		made, moved = join(made, document(name), moduleFile(name, "")), join(moved, document(name, store.backend(name)))
	}
	pr := w.fleet().open(made)
	pr.untilPlanned("5 to create")
	pr.merge()
	pr.untilApplied()
	moves := w.fleet().open(moved)
	moves.untilComment("StateWouldMove")
	moves.merge()
	for name, at := range moments {
		w.untilWaiting(name, holdfast.ReasonStateWouldMove)
		reached := gate.stopAt(at.method, at.left)
		id := w.migrate(name)
		w.until(name+": it is in the middle", func() (bool, string) {
			select {
			case <-reached:
				return true, ""
			default:
				return false, w.logOf(id)
			}
		})
		if at.server {
			w.crash()
			w.launch()
			gate.open()
		} else {
			w.killAgent(holdfast.RunApply)
		}
		run := w.ofRun(id)
		if lock := store.heldBy(name); lock != "" {
			if run.Status == holdfast.RunApplied || run.Reason != holdfast.CauseStateLocked {
				t.Errorf("%s: with a lock at the new place the migration is %s %s: %+v", name, run.Status, run.Reason, run.Failure)
			}
			w.do("unlock "+name+" --lock "+lock+" --force", "") // Terraform does not say who holds a lock of this backend
			w.until(name+": the lock is released", func() (bool, string) { return store.heldBy(name) == "", w.serverLog() })
			w.untilIdle()
			run = w.ofRun(w.migrate(name))
		}
		if run.Status != holdfast.RunApplied {
			t.Fatalf("%s: the migration is %s: %+v\n%s", name, run.Status, run.Failure, w.logOf(run.ID))
		}
		wrong := slices.DeleteFunc(slices.Clone(store.faults()), func(fault string) bool { // an empty state comes before the first one
			return strings.HasSuffix(fault, ": serial 1 was followed by 1")
		})
		if len(wrong) > 0 || store.heldBy(name) != "" || !strings.Contains(store.state(name), `"terraform_data"`) {
			t.Errorf("%s: %v, the lock is %q, the state %s", name, wrong, store.heldBy(name), store.state(name))
		}
		w.untilWaiting(name, "")
		w.untilIdle()
		w.do("describe cluster "+name+" -o json", "http:address="+store.URL+"/"+name)
	}
}

// TestStatesOfARunnersStorage: a runner keeps the states of its environment in a bucket, which
// the engines reach with their own credentials. An edit of that storage is refused at its line,
// a refresh to a runner with another bucket until the state is migrated; then the environment
// moves, and the next change is applied from there.
func TestStatesOfARunnersStorage(t *testing.T) {
	t.Parallel()
	w := emptyWorld(t, settings{"server.agents.tokens": []any{
		map[string]any{"name": "edge", "token": map[string]any{"file": "edge-token"}, "kinds": []string{"plan", "drift", "apply", "destroy"}, "runner": "edge"},
		map[string]any{"name": "far", "token": map[string]any{"file": "far-token"}, "kinds": []string{"plan", "drift", "apply", "destroy"}, "runner": "far"},
	}})
	store := objectserver.StartGCS(t)
	w.t.Cleanup(w.end) // before the store ends
	_, endpoint, _ := strings.Cut(store.MakeBucket("one"), "endpoint=")
	store.MakeBucket("two")
	w.write("gcs-key", store.Secret, 0o600)
	w.set(settings{"credentials": []any{map[string]any{
		"environment": "staging", "secrets": map[string]any{"GOOGLE_CREDENTIALS": map[string]any{"file": "gcs-key"}},
		"env": map[string]any{"GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT": endpoint + "/storage/v1/"},
	}}})
	w.addRepo("acme/fleet", settings{"allow": []any{
		map[string]any{"kinds": []string{"Cluster"}},
		map[string]any{"kinds": []string{"Runner", "RunnerRule"}, "paths": []string{"runners/**"}, "runners": []string{"edge", "far"}},
	}})
	w.write("edge-token", "the token of agents at the edge", 0o600)
	w.write("far-token", "the token of agents far away", 0o600)
	w.fleet().commit(join(files{
		"runners/edge.yaml":    runnerFile("edge", "storage: {type: gcs, bucket: one, prefix: states}"),
		"runners/far.yaml":     runnerFile("far", "storage: {type: gcs, bucket: two}"),
		"runners/staging.yaml": ruleFile("edge"),
	}))
	users, _ := slotUsers(t)
	w.start()
	w.elsewhere("edge/1", "edge", "edge-token", users)
	pr := w.fleet().open(inStaging("beta", "nodes: 1"))
	pr.untilPlanned("1 to create")
	pr.merge()
	pr.untilApplied()
	in := func(bucket string) string { return strings.Join(store.Files(bucket), " ") }
	if got := in("one"); !strings.HasSuffix(got, "one/states/shop/staging/beta/default.tfstate") {
		t.Errorf("in the bucket are %s", got)
	}

	edit := w.fleet().open(files{"runners/edge.yaml": runnerFile("edge", "storage: {type: gcs, bucket: two}")})
	edit.untilComment("runners/edge.yaml:6", "StateWouldMove", "the state of beta is gcs:bucket=one,prefix=states/shop/staging/beta and would be gcs:bucket=two,prefix=shop/staging/beta")
	edit.close()

	moves := w.fleet().open(files{"runners/staging.yaml": ruleFile("far")})
	moves.untilComment("`shop/staging` from `edge` to `far`")
	moves.merge()
	w.until("the rule has changed", func() (bool, string) {
		out, _, _ := w.cli("describe", "runner", "far")
		return strings.Contains(out, "staging"), out
	})
	w.untilIdle()
	for _, how := range [][]string{{"--dry-run"}, nil} {
		if _, stderr, code := w.cli(append([]string{"refresh", "runner", "shop/staging"}, how...)...); code == 0 || !strings.Contains(stderr, "gcs:bucket=two") {
			t.Errorf("a refresh ends with %d: %s", code, stderr)
		}
	}
	if run := w.ofRun(w.migrate("beta")); run.Status != holdfast.RunApplied || run.Agent != "edge/1" {
		t.Fatalf("the migration is %s, by %s: %+v\n%s", run.Status, run.Agent, run.Failure, w.logOf(run.ID))
	}
	if was, is := in("one"), in("two"); !strings.HasSuffix(is, "two/shop/staging/beta/default.tfstate") || !strings.HasSuffix(was, "one/states/shop/staging/beta/default.tfstate") {
		t.Errorf("in the buckets are %s and %s", was, is)
	}
	w.untilIdle()
	w.do("refresh runner shop/staging", "has moved from runner edge to far")
	w.elsewhere("far/1", "far", "far-token", users+10)
	more := w.fleet().open(inStaging("beta", "nodes: 2"))
	more.untilPlanned("1 to create")
	more.merge()
	more.untilApplied()
	w.do("describe cluster beta -o json", "gcs:bucket=two,prefix=shop/staging/beta")
}
