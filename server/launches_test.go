package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/agentkey"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler/launch"
	"github.com/holdfast-dev/holdfast/runner/uplink"
	"github.com/holdfast-dev/holdfast/runnerspec"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/launchdesk"
)

// yard is the runner east as both sides see it: what the server has of it, and the cluster in
// which its Jobs are.
type yard struct {
	mu     sync.Mutex
	queue  []string
	runs   map[string]holdfast.Run
	shown  map[string]bool // tickets that were made
	jobs   map[string]protocol.Launched
	starts map[string]int // Jobs that were made
	beats  int
}

func (y *yard) ClaimLaunch(context.Context, string, string) (holdfast.Run, string, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if len(y.queue) == 0 {
		return holdfast.Run{}, "", holdfast.ErrNotFound
	}
	id := y.queue[0]
	y.queue = y.queue[1:]
	run := holdfast.Run{ID: id, Status: holdfast.RunRunning, Kind: holdfast.RunPlan, Runner: "east"}
	run.Attempt, run.Fence, run.Agent = 1, 3, "east/"+id+"-1"
	y.runs[id] = run
	return run, "ticket of " + id, nil
}

func (y *yard) Ticket(_ context.Context, _ string, ref holdfast.AttemptRef) (string, error) {
	return "ticket of " + ref.Run, nil
}

func (y *yard) Freed() <-chan struct{} { return nil }

func (y *yard) LaunchedAttempts(context.Context, string) ([]protocol.Ticket, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	var list []protocol.Ticket
	for _, run := range y.runs {
		list = append(list, protocol.Ticket{AttemptRef: run.Ref(), Agent: run.Agent, CreatedAt: now})
	}
	return list, nil
}

func (y *yard) Heartbeat(context.Context, holdfast.AttemptRef, protocol.Heartbeat) (protocol.HeartbeatReply, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.beats++
	return protocol.HeartbeatReply{}, nil
}

func (y *yard) NoteLaunch(context.Context, holdfast.AttemptRef, holdfast.Reason, string) error {
	return nil
}

func (y *yard) EndUnstarted(context.Context, holdfast.AttemptRef, holdfast.Reason, string, bool) error {
	return holdfast.ErrLocked
}

func (y *yard) EndDead(context.Context, holdfast.AttemptRef, holdfast.Reason, string) error {
	return holdfast.ErrFenced
}

func (y *yard) Run(_ context.Context, id string) (holdfast.Run, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	run, ok := y.runs[id]
	if !ok {
		return run, holdfast.ErrNotFound
	}
	return run, nil
}

func (y *yard) Brief(context.Context, string) (holdfast.RunBrief, error) {
	return holdfast.RunBrief{}, holdfast.ErrNotFound
}

// Start makes the Job of an attempt, which a cluster makes once.
func (y *yard) Start(_ context.Context, l protocol.Launch) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	if l.Ticket != "ticket of "+l.Run {
		return fmt.Errorf("ticket %q of %s", l.Ticket, l.Run)
	}
	y.shown[l.Run] = true
	if _, there := y.jobs[l.Run]; !there {
		y.jobs[l.Run] = protocol.Launched{Run: l.Run, Attempt: l.Attempt, Name: "job-" + l.Run, Begun: true}
		y.starts[l.Run]++
	}
	return nil
}

func (y *yard) Stop(context.Context, holdfast.AttemptRef) error { return nil }

func (y *yard) Launched(context.Context) ([]protocol.Launched, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	var list []protocol.Launched
	for _, job := range y.jobs {
		list = append(list, job)
	}
	return list, nil
}

func (y *yard) Changed() <-chan struct{} { return nil }

// TestTwoLaunchersOfOneRunner: two agents launch the runs of one runner, over a network that
// loses every third answer. Each run has one Job in the end, and what was claimed by an answer
// that got lost is started all the same.
func TestTwoLaunchersOfOneRunner(t *testing.T) {
	t.Parallel()
	key, public := newAgentKey(t)
	y := &yard{runs: map[string]holdfast.Run{}, shown: map[string]bool{}, jobs: map[string]protocol.Launched{}, starts: map[string]int{}}
	for i := range 30 {
		y.queue = append(y.queue, fmt.Sprintf("run-%02d", i))
	}
	base := serve(t, newServer(t, newWorld(), func(o *server.Options) {
		o.Agents.Keys = server.Keys{
			Address: agentsURL,
			Runners: &documents{list: map[string]runnerspec.Runner{"east": {Name: "east", Type: runnerspec.KubernetesAgent, Keys: []string{public}}}},
		}
		o.Agents.Launches = launchdesk.New(launchdesk.Options{
			Launches: y, Runs: y, Now: func() time.Time { return now },
			Settings: func(context.Context, runnerspec.Runner) (protocol.LaunchSettings, error) {
				return protocol.LaunchSettings{}, nil
			},
			Limits: func(holdfast.Cluster) holdfast.RunLimits { return holdfast.RunLimits{} },
		})
	}).Agents())
	losing := losingProxy(t, base)
	var launchers []*launch.Launcher
	for _, id := range []string{"east/one", "east/two"} {
		launchers = append(launchers, newLauncher(t, losing, key, id, y))
	}
	for looks := 0; ; looks++ {
		var work sync.WaitGroup
		for _, l := range launchers {
			work.Go(func() { _ = l.Look(t.Context()) }) // some of its requests are not answered
		}
		work.Wait()
		y.mu.Lock()
		jobs, queued := len(y.jobs), len(y.queue)
		y.mu.Unlock()
		if jobs == 30 && queued == 0 {
			break
		}
		if looks > 300 {
			t.Fatalf("%d Jobs, %d runs in the queue", jobs, queued)
		}
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	for run, n := range y.starts {
		if n != 1 {
			t.Errorf("%s has %d Jobs", run, n)
		}
	}
	if y.beats == 0 {
		t.Error("no attempt that waits was kept")
	}
}

type runsBy func(ctx context.Context, id string) (holdfast.Run, error)

func (r runsBy) Run(ctx context.Context, id string) (holdfast.Run, error) { return r(ctx, id) }

func newLauncher(t *testing.T, base string, key agentkey.Key, id string, y *yard) *launch.Launcher {
	t.Helper()
	signer, err := agentkey.New(key, id, agentsURL, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	client, err := uplink.NewClient(base, signer.Token, "")
	if err != nil {
		t.Fatal(err)
	}
	launches := uplink.NewLaunches(client)
	l, err := launch.New(launch.Options{
		Runner: runnerspec.Runner{Name: "east"}, Jobs: y, Dispatcher: launches, Runs: runsBy(launches.RunOf),
		Settings: launch.Settings{Replica: id, Agent: id},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// losingProxy passes requests on, and of every third one loses the answer.
func losingProxy(t *testing.T, base string) string {
	t.Helper()
	target, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	var count atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = func(r *http.Response) error {
		if !strings.Contains(r.Request.URL.Path, "/launches/attempts") && count.Add(1)%3 == 0 {
			return fmt.Errorf("the answer is lost")
		}
		return nil
	}
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	srv := httptest.NewServer(proxy)
	t.Cleanup(srv.Close)
	return srv.URL
}

// What a launcher asks for while the server cannot be reached changes nothing here, and is asked
// for again.
func TestLauncherWithoutAServer(t *testing.T) {
	t.Parallel()
	key, _ := newAgentKey(t)
	y := &yard{jobs: map[string]protocol.Launched{"run-1": {Run: "run-1", Attempt: 1, Name: "job-run-1", Begun: true}}, starts: map[string]int{}}
	l := newLauncher(t, "http://127.0.0.1:1", key, "east/one", y)
	for range 3 {
		if err := l.Look(t.Context()); err == nil {
			t.Error("a look without a server was good")
		}
	}
	if list, _ := y.Launched(t.Context()); len(list) != 1 || !slices.ContainsFunc(list, func(l protocol.Launched) bool { return l.Run == "run-1" }) {
		t.Errorf("what was started is now %+v", list)
	}
}
