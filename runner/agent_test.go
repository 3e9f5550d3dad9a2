package runner_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner"
)

func TestAgentBringsARunToItsEnd(t *testing.T) {
	t.Parallel()
	server, dir := newFakeServer(t), t.TempDir()
	server.objects["sha256:abc"] = []byte("a bundle")
	_, stop := startAgent(t, runner.AgentOptions{
		Server: runner.Server{URL: server.overSocket(t)}, Dir: dir,
		Executor: fakeExecutor{run: func(ctx context.Context, a protocol.Assignment, s runner.Session) protocol.Result {
			s.Step("prepare")
			r, err := s.Bundle(ctx, "sha256:abc")
			if err != nil {
				t.Error(err)
				return protocol.Result{Status: holdfast.RunErrored}
			}
			defer r.Close()
			bundle, _ := io.ReadAll(r)
			_, _ = fmt.Fprintf(s.Log(), "got %s\n", bundle)
			if _, err := s.StoredArtefact(ctx, "run-0", "plan"); !errors.Is(err, holdfast.ErrNotFound) {
				t.Errorf("StoredArtefact = %v, want ErrNotFound", err)
			}
			if err := s.PutArtefact(ctx, "document", strings.NewReader("{}")); err != nil {
				t.Error(err)
			}
			if err := s.PutArtefact(ctx, "../plan", strings.NewReader("{}")); err == nil {
				t.Error("PutArtefact took a name that leads elsewhere")
			}
			large := strings.NewReader(strings.Repeat("x", int(protocol.ArtefactLimit(protocol.ArtefactInput))+1))
			if err := s.PutArtefact(ctx, protocol.ArtefactInput, large); err == nil || !strings.Contains(err.Error(), "too large") {
				t.Errorf("PutArtefact of more than the limit = %v", err)
			}
			if s.MayApply() {
				t.Error("MayApply of a plan = true")
			}
			return protocol.Result{Status: holdfast.RunPlanned}
		}},
	})
	server.assign(assignment("run-1", holdfast.RunPlan))
	result := server.result(t, "run-1")
	if result.Status != holdfast.RunPlanned || result.Fence != 7 {
		t.Errorf("result = %+v", result)
	}
	server.mu.Lock()
	log, artefact, claim := string(server.logs["run-1"]), string(server.objects["run-1/document"]), server.claims[0]
	server.mu.Unlock()
	if log != "got a bundle\n" || artefact != "{}" {
		t.Errorf("log %q, artefact %q", log, artefact)
	}
	if claim.Agent != "agent-1" || claim.Platform == "" || len(claim.Executing) != 0 {
		t.Errorf("claim = %+v", claim)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if !isEmpty(t, filepath.Join(dir, "attempts")) || !isEmpty(t, filepath.Join(dir, "quarantine")) {
		t.Error("the delivered attempt left something behind")
	}
}

func TestNewAgentNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	good := runner.AgentOptions{About: runner.About{ID: "a"}, Server: runner.Server{URL: "https://holdfast.example", Token: "t"}, Dir: "d", Executor: fakeExecutor{}}
	tests := map[string]struct {
		change func(*runner.AgentOptions)
		want   string
	}{
		"complete":           {func(*runner.AgentOptions) {}, ""},
		"no id":              {func(o *runner.AgentOptions) { o.About.ID = "" }, "no agent id"},
		"no server":          {func(o *runner.AgentOptions) { o.Server.URL = "" }, "no server"},
		"no token":           {func(o *runner.AgentOptions) { o.Server.Token = "" }, "no token"},
		"no folder":          {func(o *runner.AgentOptions) { o.Dir = "" }, "no folder"},
		"no executor":        {func(o *runner.AgentOptions) { o.Executor = nil }, "no executor"},
		"negative slots":     {func(o *runner.AgentOptions) { o.Claims.Slots = -1 }, "-1 slots"},
		"plain http":         {func(o *runner.AgentOptions) { o.Server.URL = "http://holdfast.example" }, "loopback"},
		"plain http to self": {func(o *runner.AgentOptions) { o.Server.URL = "http://127.0.0.1:80" }, ""},
		"no scheme":          {func(o *runner.AgentOptions) { o.Server.URL = "holdfast.example" }, "want unix:"},
		"no socket":          {func(o *runner.AgentOptions) { o.Server.URL = "unix://" }, "want unix:"},
		"secret in URL":      {func(o *runner.AgentOptions) { o.Server.URL = "ftp://u:hunter22@h" }, "xxxxx"},
		"no such CA file":    {func(o *runner.AgentOptions) { o.Server.CAFile = "/nonexistent" }, "certificate authorities"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := good
			tt.change(&opts)
			_, err := runner.NewAgent(opts)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("NewAgent = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestSecondAgentOfAFolderIsRefused(t *testing.T) {
	t.Parallel()
	server, dir := newFakeServer(t), t.TempDir()
	_, stop := startAgent(t, runner.AgentOptions{Server: runner.Server{URL: server.url}, Dir: dir, Executor: fakeExecutor{}})
	server.until(t, "the first agent claims", func() bool { return len(server.claims) > 0 })

	second, err := runner.NewAgent(runner.AgentOptions{About: runner.About{ID: "agent-2"}, Server: runner.Server{URL: server.url, Token: "agent-token"}, Dir: dir, Executor: fakeExecutor{}})
	if err != nil {
		t.Fatal(err)
	}
	err = second.Run(t.Context())
	if !errors.Is(err, holdfast.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("second Run = %v, want ErrLocked with the first one's process id", err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	_, stop = startAgent(t, runner.AgentOptions{About: runner.About{ID: "agent-3"}, Server: runner.Server{URL: server.url}, Dir: dir, Executor: fakeExecutor{}})
	server.until(t, "the third agent claims", func() bool {
		return slices.ContainsFunc(server.claims, func(c protocol.ClaimRequest) bool { return c.Agent == "agent-3" })
	})
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// untilStopped waits for the attempt's end by its context, and maps the cause.
func untilStopped(ctx context.Context, _ protocol.Assignment, _ runner.Session) protocol.Result {
	<-ctx.Done()
	var stop *runner.StopError
	if !errors.As(context.Cause(ctx), &stop) {
		return protocol.Result{Status: holdfast.RunErrored, Detail: fmt.Sprint(context.Cause(ctx))}
	}
	return protocol.Result{Status: holdfast.RunCanceled, Reason: stop.Reason, Detail: stop.Detail}
}

func TestAttemptIsStopped(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		kind   holdfast.RunKind
		change func(*protocol.Assignment)
		act    func(*fakeServer) // once the attempt beats
		want   holdfast.Reason
	}{
		"by the server's word": {
			kind: holdfast.RunApply,
			act:  func(f *fakeServer) { f.cancel = "a newer head" },
			want: holdfast.ReasonCanceled,
		},
		"by its deadline": {
			kind:   holdfast.RunApply,
			change: func(a *protocol.Assignment) { a.Deadline = time.Now().Add(-time.Minute) },
			want:   holdfast.ReasonTimeout,
		},
		"by the end of its lease": {
			kind:   holdfast.RunPlan,
			change: func(a *protocol.Assignment) { a.Lease = 300 * time.Millisecond },
			act: func(f *fakeServer) {
				f.answer = func(w http.ResponseWriter, r *http.Request) bool {
					beat := strings.HasSuffix(r.URL.Path, "/heartbeat")
					if beat {
						w.WriteHeader(http.StatusBadGateway)
					}
					return beat
				}
			},
			want: holdfast.ReasonLeaseLost,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newFakeServer(t)
			_, _ = startAgent(t, runner.AgentOptions{Server: runner.Server{URL: server.url}, Dir: t.TempDir(), Executor: fakeExecutor{run: untilStopped}})
			a := assignment("run-1", tt.kind)
			a.Lease = 3 * time.Second // it must hold on a busy machine
			if tt.change != nil {
				tt.change(&a)
			}
			server.assign(a)
			if tt.act != nil {
				server.until(t, "the attempt beats", func() bool { return server.beats["run-1"] > 0 })
				server.set(func() { tt.act(server) })
			}
			if result := server.result(t, "run-1"); result.Reason != tt.want {
				t.Errorf("result = %+v, want reason %s", result, tt.want)
			}
		})
	}
}

func TestFencedAttemptStopsAndLeavesNothingToTheServer(t *testing.T) {
	t.Parallel()
	server, dir := newFakeServer(t), t.TempDir()
	reason := make(chan string, 1)
	_, stop := startAgent(t, runner.AgentOptions{Server: runner.Server{URL: server.url}, Dir: dir, Executor: fakeExecutor{
		run: func(ctx context.Context, a protocol.Assignment, s runner.Session) protocol.Result {
			result := untilStopped(ctx, a, s)
			reason <- string(result.Reason)
			return result
		},
	}})
	a := assignment("run-1", holdfast.RunApply)
	a.Lease = 300 * time.Millisecond
	server.set(func() { server.fenced["run-1"] = true })
	server.assign(a)
	if got := <-reason; got != string(holdfast.ReasonLeaseLost) {
		t.Errorf("reason = %s", got)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "quarantine", "run-1-1", "result.json")); err != nil {
		t.Errorf("the refused result is not in quarantine: %v", err)
	}
	if len(server.results) > 0 || !isEmpty(t, filepath.Join(dir, "attempts")) {
		t.Error("a fenced attempt wrote, or is still to be delivered")
	}
}

func TestApplyBeginsOnlyWithAGoodLease(t *testing.T) {
	t.Parallel()
	server := newFakeServer(t)
	asked := make(chan chan bool)
	_, _ = startAgent(t, runner.AgentOptions{Server: runner.Server{URL: server.url}, Dir: t.TempDir(), Executor: fakeExecutor{
		run: func(ctx context.Context, _ protocol.Assignment, s runner.Session) protocol.Result {
			for answer := range asked {
				answer <- s.MayApply() && ctx.Err() == nil
			}
			return protocol.Result{Status: holdfast.RunApplied}
		},
	}})
	mayApply := func() bool {
		answer := make(chan bool)
		asked <- answer
		return <-answer
	}
	eventually := func(want bool) {
		t.Helper()
		server.until(t, fmt.Sprintf("MayApply is %t", want), func() bool {
			if mayApply() == want {
				return true
			}
			go server.set(func() {}) // look again
			return false
		})
	}
	server.set(func() { server.mayApply = false })
	a := assignment("run-1", holdfast.RunApply)
	a.Lease = 300 * time.Millisecond
	server.assign(a)
	server.until(t, "the attempt beats", func() bool { return server.beats["run-1"] > 1 })
	if mayApply() {
		t.Error("MayApply = true although the server said no")
	}
	// The server goes away for more than a lease, and comes back.
	server.set(func() { server.down, server.mayApply = true, true })
	if mayApply() {
		t.Error("MayApply = true although no server said yes")
	}
	server.set(func() { server.down = false })
	eventually(true)
	// A begun apply continues without a server.
	server.set(func() { server.down = true })
	time.Sleep(a.Lease) // the lease must be lost
	if !mayApply() {
		t.Error("a begun apply was stopped by a lost lease")
	}
	server.set(func() { server.down = false })
	close(asked)
	if result := server.result(t, "run-1"); result.Status != holdfast.RunApplied {
		t.Errorf("result = %+v", result)
	}
}

func TestLostLeaseKeepsAnApplyFromBeginning(t *testing.T) {
	t.Parallel()
	server := newFakeServer(t)
	got := make(chan bool, 1)
	lost := make(chan struct{})
	_, _ = startAgent(t, runner.AgentOptions{Server: runner.Server{URL: server.url}, Dir: t.TempDir(), Executor: fakeExecutor{
		run: func(ctx context.Context, _ protocol.Assignment, s runner.Session) protocol.Result {
			<-lost
			got <- s.MayApply() || ctx.Err() != nil
			return protocol.Result{Status: holdfast.RunInterrupted}
		},
	}})
	a := assignment("run-1", holdfast.RunApply)
	a.Lease = 300 * time.Millisecond
	server.assign(a)
	server.until(t, "the attempt beats", func() bool { return server.beats["run-1"] > 0 })
	server.set(func() { server.down = true })
	time.Sleep(a.Lease) // the lease must be lost
	close(lost)
	if <-got {
		t.Error("the apply might have begun, or its planning was canceled")
	}
	server.set(func() { server.down = false })
	server.result(t, "run-1")
}

func TestClockJumpsStopNothing(t *testing.T) {
	t.Parallel()
	server := newFakeServer(t)
	var jump atomic.Int64
	began := make(chan struct{})
	release := make(chan struct{})
	_, _ = startAgent(t, runner.AgentOptions{
		Server: runner.Server{URL: server.url}, Dir: t.TempDir(),
		Now: func() time.Time { return time.Now().Add(time.Duration(jump.Load())) },
		Executor: fakeExecutor{run: func(ctx context.Context, _ protocol.Assignment, s runner.Session) protocol.Result {
			close(began)
			<-release
			if ctx.Err() != nil {
				return protocol.Result{Status: holdfast.RunCanceled}
			}
			return protocol.Result{Status: holdfast.RunPlanned}
		}},
	})
	jump.Store(int64(10 * 365 * 24 * time.Hour)) // beyond every deadline
	a := assignment("run-1", holdfast.RunPlan)
	a.Lease = 3 * time.Second // it must hold on a busy machine
	server.assign(a)
	<-began
	jump.Store(int64(-24 * time.Hour))
	beats := 0
	server.until(t, "the attempt beats on", func() bool { beats = server.beats["run-1"]; return beats > 3 })
	close(release)
	if result := server.result(t, "run-1"); result.Status != holdfast.RunPlanned {
		t.Errorf("result = %+v", result)
	}
}

func TestApplyDoesNotTrustALeaseOverAClockJump(t *testing.T) {
	t.Parallel()
	server := newFakeServer(t)
	var jump atomic.Int64
	jump.Store(int64(-100 * time.Hour)) // a wrong clock alone is not a problem
	_, _ = startAgent(t, runner.AgentOptions{
		Server: runner.Server{URL: server.url}, Dir: t.TempDir(),
		Now: func() time.Time { return time.Now().Add(time.Duration(jump.Load())) },
		Executor: fakeExecutor{run: func(ctx context.Context, _ protocol.Assignment, s runner.Session) protocol.Result {
			beats := 0
			server.until(t, "the attempt beats", func() bool { beats = server.beats["run-1"]; return beats > 0 })
			jump.Store(0) // as after a machine was suspended
			if s.MayApply() {
				t.Error("MayApply = true although the machine may have slept for longer than its lease")
			}
			for !s.MayApply() && ctx.Err() == nil {
				time.Sleep(time.Millisecond) // until the server has said so again
			}
			return protocol.Result{Status: holdfast.RunApplied}
		}},
	})
	a := assignment("run-1", holdfast.RunApply)
	a.Lease = 3 * time.Second
	server.assign(a)
	server.result(t, "run-1")
	server.mu.Lock()
	defer server.mu.Unlock()
	if server.beats["run-1"] < 2 {
		t.Error("the server was not asked again")
	}
}

func TestManyAttemptsAtOnce(t *testing.T) {
	t.Parallel()
	const n = 8
	server, dir := newFakeServer(t), t.TempDir()
	together := make(chan struct{})
	var running atomic.Int32
	_, stop := startAgent(t, runner.AgentOptions{Server: runner.Server{URL: server.url}, Dir: dir, Claims: runner.Claims{Slots: n}, Executor: fakeExecutor{
		run: func(ctx context.Context, a protocol.Assignment, s runner.Session) protocol.Result {
			if running.Add(1) == n {
				close(together)
			}
			<-together
			for i := range 50 {
				s.Step(fmt.Sprint("step ", i%3))
				_, _ = fmt.Fprintf(s.Log(), "%s line %d\n", a.Run, i)
			}
			if err := s.PutArtefact(ctx, protocol.ArtefactOutputs, strings.NewReader(a.Run)); err != nil {
				t.Error(err)
			}
			if status, _ := stateRequest(t, s, "POST", "?ID=x", a.Run); status != http.StatusOK {
				t.Errorf("POST state = %d", status)
			}
			return protocol.Result{Status: holdfast.RunApplied}
		},
	}})
	for i := range n + 3 {
		a := assignment(fmt.Sprint("run-", i), holdfast.RunApply)
		a.Lease = time.Second
		server.assign(a)
	}
	for i := range n + 3 {
		run := fmt.Sprint("run-", i)
		server.result(t, run)
		server.mu.Lock()
		lines := strings.Count(string(server.logs[run]), run+" line")
		if string(server.objects[run+"/"+protocol.ArtefactOutputs]) != run || lines != 50 {
			t.Errorf("%s: artefact %q, %d lines", run, server.objects[run+"/"+protocol.ArtefactOutputs], lines)
		}
		server.mu.Unlock()
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if !isEmpty(t, filepath.Join(dir, "attempts")) {
		t.Error("delivered attempts left something behind")
	}
}
