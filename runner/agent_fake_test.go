package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/ownclient"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner"
	"github.com/holdfast-dev/holdfast/runner/attempt"
	"github.com/holdfast-dev/holdfast/runner/uplink"
)

// fakeServer speaks the server's side of the agent protocol from memory.
type fakeServer struct {
	url string

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at every change
	queue    []protocol.Assignment
	claims   []protocol.ClaimRequest
	waiting  int                     // claims that have not been answered, be it to an agent that is gone
	present  []protocol.ClaimRequest // agents that say that they are there
	beating  []protocol.Heartbeat
	down     bool                                              // every connection is broken off
	answer   func(w http.ResponseWriter, r *http.Request) bool // answers instead, if it returns true
	onLog    func(w http.ResponseWriter, r *http.Request) bool // the same for one log's chunks, which come one after the other
	body     []byte                                            // of the chunk that onLog looks at
	cancel   string                                            // of heartbeat replies
	mayApply bool
	beats    map[string]int
	steps    []string
	logs     map[string][]byte
	objects  map[string][]byte // artefacts by attempt and name, bundles by digest
	results  map[string]protocol.Result
	fenced   map[string]bool
	states   []string // POST bodies, in order
	locks    []string // "LOCK id" and "UNLOCK id", in order
	lock     []byte   // LockInfo of the holder
	events   []string // of all kinds, in order
}

func newFakeServer(t testing.TB) *fakeServer {
	t.Helper()
	f := &fakeServer{
		changed: make(chan struct{}), mayApply: true,
		beats: map[string]int{}, logs: map[string][]byte{}, objects: map[string][]byte{},
		results: map[string]protocol.Result{}, fenced: map[string]bool{},
	}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	t.Cleanup(func() { f.explain(t) })
	f.url = server.URL
	return f
}

// explain says, of a test that has failed, how runs ended and what they logged: a test that waits
// for something else does not see it.
func (f *fakeServer) explain(t testing.TB) {
	if !t.Failed() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, result := range f.results {
		t.Logf("%s ended: %s %s, failure %+v", id, result.Status, result.Reason, result.Failure)
	}
	for id, log := range f.logs {
		t.Logf("%s logged:\n%s", id, log)
	}
}

// overSocket makes f listen on a Unix socket too, and returns its URL.
func (f *fakeServer) overSocket(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: f, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return "unix://" + path
}

// set changes f and wakes who waits for a change.
func (f *fakeServer) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	close(f.changed)
	f.changed = make(chan struct{})
}

// patience is how long tests wait for what happens automatically. A busy machine may
// take minutes for what takes a second.
const patience = 10 * time.Minute

// until waits for a condition, which is looked at under f's lock.
func (f *fakeServer) until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	timeout := time.After(patience)
	for {
		f.mu.Lock()
		ok, changed := condition(), f.changed
		f.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("waited too long until %s", what)
		}
	}
}

func (f *fakeServer) isFenced(run string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fenced[run]
}

func (f *fakeServer) assign(assignments ...protocol.Assignment) {
	f.set(func() { f.queue = append(f.queue, assignments...) })
}

func (f *fakeServer) result(t testing.TB, run string) protocol.Result {
	t.Helper()
	f.until(t, "the result of "+run+" is there", func() bool { _, ok := f.results[run]; return ok })
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.results[run]
}

func (f *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	f.mu.Lock()
	down, answer := f.down, f.answer
	f.mu.Unlock()
	if down {
		panic(http.ErrAbortHandler)
	}
	if answer != nil && answer(w, r) {
		return
	}
	if f.onLog != nil && strings.HasSuffix(r.URL.Path, "/logs") {
		f.body = body
		if f.onLog(w, r) {
			return
		}
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/agent/v1/"), "/")
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case parts[0] == "claims":
		f.claim(w, r, token, body)
	case parts[0] == "presence":
		var req protocol.ClaimRequest
		_ = json.Unmarshal(body, &req)
		f.set(func() { f.present = append(f.present, req) })
		w.WriteHeader(http.StatusNoContent)
	case parts[0] == "bundles", len(parts) == 4 && parts[2] == "artefacts":
		f.get(w, parts[len(parts)-1])
	case parts[0] == "state":
		f.state(w, r, strings.TrimPrefix(token, "token-"), body)
	case parts[0] == "runs" && len(parts) >= 5:
		f.attempt(w, r, parts[1], parts[4:], token, body)
	default:
		refuse(w, http.StatusNotFound, "no such thing")
	}
}

func refuse(w http.ResponseWriter, status int, text string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": text})
}

func (f *fakeServer) claim(w http.ResponseWriter, r *http.Request, token string, body []byte) {
	var req protocol.ClaimRequest
	if err := json.Unmarshal(body, &req); err != nil || token != "agent-token" {
		refuse(w, http.StatusUnauthorized, "unknown token")
		return
	}
	f.set(func() { f.claims, f.waiting = append(f.claims, req), f.waiting+1 })
	defer f.set(func() { f.waiting-- })
	wait, cancel := context.WithTimeout(r.Context(), req.Wait)
	defer cancel()
	for {
		f.mu.Lock()
		down, changed := f.down, f.changed
		var assignment *protocol.Assignment
		if len(f.queue) > 0 && !down {
			assignment = &f.queue[0]
			f.queue = f.queue[1:]
		}
		f.mu.Unlock()
		switch {
		case down:
			panic(http.ErrAbortHandler)
		case assignment != nil:
			_ = json.NewEncoder(w).Encode(assignment)
			return
		}
		select {
		case <-changed:
		case <-wait.Done():
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
}

func (f *fakeServer) get(w http.ResponseWriter, name string) {
	f.mu.Lock()
	data, ok := f.objects[name]
	f.mu.Unlock()
	if !ok {
		refuse(w, http.StatusNotFound, "not found")
		return
	}
	_, _ = w.Write(data)
}

func (f *fakeServer) attempt(w http.ResponseWriter, r *http.Request, run string, what []string, token string, body []byte) {
	f.mu.Lock()
	fenced := f.fenced[run]
	f.mu.Unlock()
	switch {
	case token != "token-"+run:
		refuse(w, http.StatusUnauthorized, "unknown token")
		return
	case fenced:
		refuse(w, http.StatusConflict, "fenced off")
		return
	}
	switch what[0] {
	case "heartbeat":
		var beat protocol.Heartbeat
		_ = json.Unmarshal(body, &beat)
		var reply protocol.HeartbeatReply
		f.set(func() {
			f.beats[run]++
			f.beating = append(f.beating, beat)
			f.steps = append(f.steps, beat.Step)
			reply = protocol.HeartbeatReply{Cancel: holdfast.Reason(f.cancel), MayApply: f.mayApply}
		})
		_ = json.NewEncoder(w).Encode(reply)
	case "logs":
		if len(what) > 1 && what[1] == "mask" {
			var mask protocol.LogMask
			_ = json.Unmarshal(body, &mask)
			f.set(func() {
				for _, span := range mask.Spans {
					for i := span.From; i < min(span.To, int64(len(f.logs[run]))); i++ {
						f.logs[run][i] = '*'
					}
				}
				f.events = append(f.events, "mask")
			})
			w.WriteHeader(http.StatusNoContent)
			return
		}
		offset, _ := strconv.ParseInt(r.URL.Query().Get("offset"), 10, 64)
		var next int64
		f.set(func() {
			if have := int64(len(f.logs[run])); offset <= have && offset+int64(len(body)) > have {
				f.logs[run] = append(f.logs[run], body[have-offset:]...)
			}
			next = int64(len(f.logs[run]))
		})
		_, _ = fmt.Fprintf(w, `{"next": %d}`, next)
	case "artefacts":
		f.set(func() {
			f.objects[run+"/"+what[1]] = body
			f.events = append(f.events, "artefact "+what[1])
		})
		w.WriteHeader(http.StatusNoContent)
	case "result":
		var result protocol.Result
		_ = json.Unmarshal(body, &result)
		f.set(func() {
			f.results[run] = result
			f.events = append(f.events, "result "+run)
		})
		w.WriteHeader(http.StatusNoContent)
	}
}

func (f *fakeServer) state(w http.ResponseWriter, r *http.Request, run string, body []byte) {
	var info struct{ ID string }
	_ = json.Unmarshal(body, &info)
	f.mu.Lock()
	fenced, holder, states := f.fenced[run], f.lock, f.states
	f.mu.Unlock()
	if fenced {
		refuse(w, http.StatusConflict, "fenced off")
		return
	}
	switch r.Method {
	case http.MethodGet:
		if len(states) == 0 {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		_, _ = io.WriteString(w, states[len(states)-1])
	case http.MethodPost:
		f.set(func() {
			f.states = append(f.states, string(body))
			f.events = append(f.events, "state "+r.URL.Query().Get("ID"))
		})
	case "LOCK":
		if holder != nil {
			w.WriteHeader(http.StatusLocked)
			_, _ = w.Write(holder)
			return
		}
		f.set(func() { f.lock = body; f.locks = append(f.locks, "LOCK "+info.ID) })
	case "UNLOCK":
		f.set(func() {
			f.lock = nil
			f.locks = append(f.locks, "UNLOCK "+info.ID)
			f.events = append(f.events, "unlock")
		})
	}
}

// fakeExecutor executes attempts by a function.
type fakeExecutor struct {
	dir string
	run func(ctx context.Context, a protocol.Assignment, s runner.Session) protocol.Result
}

func (e fakeExecutor) Execute(ctx context.Context, a protocol.Assignment, s runner.Session) protocol.Result {
	return e.run(ctx, a, s)
}

func (e fakeExecutor) WorkspaceDir(ref holdfast.AttemptRef) string {
	return filepath.Join(e.dir, "workspaces", ref.Run)
}

// assignment returns an attempt with a lease so long that it is not lost.
func assignment(run string, kind holdfast.RunKind) protocol.Assignment {
	return protocol.Assignment{
		AttemptRef: holdfast.AttemptRef{Run: run, Attempt: 1, Fence: 7},
		Token:      "token-" + run, Kind: kind, Cluster: "prod-eu", Lease: time.Minute,
		Deadline:      time.Now().Add(time.Hour),
		AssignedState: protocol.AssignedState{OwnState: true, StateLocation: "holdfast/prod-eu"},
	}
}

// startAgent runs an agent until the test ends or stop is called, which returns
// what Run did.
func startAgent(t testing.TB, opts runner.AgentOptions) (agent *runner.Agent, stop func() error) {
	t.Helper()
	return startAgentOn(t, uplink.MachineDisk{}, opts)
}

// startAgentOn does so on a disk.
func startAgentOn(t testing.TB, disk uplink.Disk, opts runner.AgentOptions) (agent *runner.Agent, stop func() error) {
	t.Helper()
	if opts.About.ID == "" {
		opts.About.ID = "agent-1"
	}
	if opts.Server.Token == "" {
		opts.Server.Token = "agent-token"
	}
	if os.Getenv("AGENT_TEST_LOG") != "" {
		opts.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	agent, err := runner.NewAgent(opts)
	if err != nil {
		t.Fatal(err)
	}
	agent.SetPresentEvery(20 * time.Millisecond)
	agent.SetDisk(disk)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		agent.Interrupt()
		_ = stop()
	})
	return agent, stop
}

// stateRequest sends what an engine's http backend does.
func stateRequest(t testing.TB, s runner.Session, method, query, body string) (int, string) {
	t.Helper()
	addr, user, password := s.StateAddress()
	if w, ok := s.(attempt.StateWriter); ok && method == http.MethodPost {
		addr, user, password = w.WriteAddress()
	}
	return requestAs(t, method, addr+query, user, password, body)
}

func requestAs(t testing.TB, method, url, user, password, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	req.SetBasicAuth(user, password)
	res, err := ownclient.Client.Do(req)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return res.StatusCode, string(data)
}

func isEmpty(t testing.TB, dir string) bool {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(entries) == 0
}
