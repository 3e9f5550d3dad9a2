package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// A pull request is planned, merged and applied by three replicas. The one that leads is killed
// in the middle of the plan, and the next one in the middle of the apply; each time another
// one continues, and nothing is done twice.
func TestReplicasSucceedOneAnother(t *testing.T) {
	t.Parallel()
	s := newReplicas(t, 3, nil)
	w := s.w
	w.hold("plan", "alpha")
	pr := w.fleet().open(cluster("alpha", "nodes: 2"))
	w.untilHeld("plan", "alpha")
	first := s.untilLed(nil)
	began := time.Now()
	first.end(syscall.SIGKILL)
	second := s.untilLed(first)
	t.Logf("another replica leads %s after the first one was killed", time.Since(began).Round(100*time.Millisecond))
	w.release("plan", "alpha")
	pr.untilPlanned("1 cluster: 2 to create")

	w.hold("apply", "alpha")
	pr.merge()
	w.untilHeld("apply", "alpha")
	began = time.Now()
	second.end(syscall.SIGKILL)
	s.untilLed(second)
	t.Logf("the last replica leads %s after the second one was killed", time.Since(began).Round(100*time.Millisecond))
	w.release("apply", "alpha")
	pr.untilApplied("applied 1 cluster: 2 created")
	first.launch()
	second.launch()
	w.untilPhase("alpha", holdfast.PhaseActive)
	for call, want := range map[string]int{"plan alpha": 2, "apply alpha": 1} { // an apply plans, too
		if n := w.countCalls(call); n != want {
			t.Errorf("the engine was called %d times for %q, want %d", n, call, want)
		}
	}
	if runs := w.runs("alpha"); len(runs) != 2 {
		t.Errorf("there are %d runs, want a plan and an apply", len(runs))
	}
}

// A replica that is told to end hands over at once: the pull request that is opened next is
// planned although nobody else was told of anything, and a command is carried out once.
func TestReplicasHandOver(t *testing.T) {
	t.Parallel()
	s := newReplicas(t, 2, nil)
	w := s.w
	first := s.untilLed(nil)
	began := time.Now()
	if code := first.end(syscall.SIGTERM); code != 0 {
		t.Errorf("it ended with code %d", code)
	}
	ended := time.Since(began)
	s.untilLed(first)
	t.Logf("it ended after %s, and another replica leads after %s", ended.Round(10*time.Millisecond), time.Since(began).Round(10*time.Millisecond))
	pr := w.fleet().open(cluster("alpha", "nodes: 2"))
	pr.untilPlanned("1 cluster: 2 to create")
	first.launch()

	before := w.newest("alpha", holdfast.RunPlan)
	if out, errs, code := w.cli("replan", fmt.Sprintf("%s#%d", w.fleet().name, pr.number)); code != 0 {
		t.Fatalf("replan: code %d: %s%s", code, out, errs)
	}
	w.until("it is planned again", func() (bool, string) {
		run := w.newest("alpha", holdfast.RunPlan)
		return run.ID != before.ID && run.Status == holdfast.RunPlanned, string(run.Status)
	})
	comment := pr.say(lead, "/holdfast plan")
	pr.untilReacted(comment, holdfast.ReactionDone)
	w.untilIdle()
	if runs := w.runs("alpha"); len(runs) != 3 {
		t.Errorf("there are %d runs, want three plans", len(runs))
	}
}

// What one replica is told is seen at all others: events, logs, agents.
func TestReplicasSeeWhatOthersDo(t *testing.T) {
	t.Parallel()
	s := newReplicas(t, 3, nil)
	w := s.w
	balanced := w.api
	seen := make([]time.Time, len(s.all))
	var g sync.WaitGroup
	for i, r := range s.all {
		w.api, _, _ = r.addresses()
		stream := w.follow("")
		g.Go(func() {
			for {
				event, data, ok := stream.next()
				if !ok {
					return
				}
				if event == string(holdfast.ChangeRun) && strings.Contains(data, `"cluster":"alpha"`) {
					seen[i] = time.Now()
					return
				}
			}
		})
	}
	w.api = balanced
	w.hold("plan", "alpha")
	pr := w.fleet().open(cluster("alpha", "nodes: 2"))
	g.Wait()
	first, last := seen[0], seen[0]
	for _, at := range seen[1:] {
		if at.Before(first) {
			first = at
		}
		if at.After(last) {
			last = at
		}
	}
	t.Logf("the same event was seen within %s at all replicas", last.Sub(first).Round(time.Millisecond))

	w.untilHeld("plan", "alpha")
	run := w.newest("alpha", holdfast.RunPlan)
	logs := make([]string, len(s.all))
	ends := make([]time.Time, len(s.all))
	for i, r := range s.all {
		api, _, _ := r.addresses()
		g.Go(func() {
			_, logs[i] = w.get(api + "/api/v1/runs/" + run.ID + "/log?follow=true")
			ends[i] = time.Now()
		})
	}
	w.release("plan", "alpha")
	g.Wait()
	first, last = ends[0], ends[0]
	for i, log := range logs {
		if log == "" || log != logs[0] {
			t.Errorf("the log at replica %d is another one: %q and %q", i+1, log, logs[0])
		}
		if ends[i].Before(first) {
			first = ends[i]
		}
		if ends[i].After(last) {
			last = ends[i]
		}
	}
	t.Logf("the end of a log was seen within %s at all replicas", last.Sub(first).Round(time.Millisecond))
	pr.untilPlanned("1 cluster: 2 to create")
	for _, r := range s.all {
		w.api, _, _ = r.addresses()
		w.until(r.name+" knows both agents", func() (bool, string) {
			var agents struct {
				Items []struct {
					ID     string `json:"id"`
					Living bool   `json:"living"`
				}
			}
			w.getJSON("agents", nil, &agents)
			return len(agents.Items) == 2 && agents.Items[0].Living && agents.Items[1].Living, fmt.Sprint(agents.Items)
		})
		w.until(r.name+" knows who leads", func() (bool, string) {
			out, errs, _ := w.cli("get", "replicas")
			return strings.Count(out, w.fleet().name) == 1 && strings.Count(out, "(schedule)") == 1, out + errs
		})
	}
	w.api = balanced
}

// Replicas are killed, stopped for longer than their leases, and told to end, at random, while
// pull requests are planned, merged and applied and commands are given: nothing is lost, nothing
// is done twice, and each pull request ends with what is true.
func TestReplicasAtRandom(t *testing.T) {
	t.Parallel()
	s := newReplicas(t, 3, nil)
	seed, err := strconv.ParseUint(os.Getenv("HOLDFAST_E2E_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("HOLDFAST_E2E_SEED=%d makes the same choices again", seed)
	s.w.hub.SetQuota(1_000_000, 1_000_000, time.Now().Add(24*time.Hour))
	f := &fate{replicas: s, rng: rand.New(rand.NewPCG(seed, seed)), made: make(map[string]int)}
	rounds, commands := 0, 0
	for end := time.Now().Add(chaosTime(t)); time.Now().Before(end); rounds++ {
		name := []string{"alpha", "beta", "gamma"}[f.rng.IntN(3)]
		pr := s.w.fleet().open(cluster(name, fmt.Sprint("nodes: ", 2+rounds)))
		f.strike()
		pr.untilPlanned()
		if f.rng.IntN(3) == 0 {
			commands++
			comment := pr.say(lead, "/holdfast plan")
			f.strike()
			pr.untilReacted(comment, holdfast.ReactionDone)
			pr.untilPlanned()
		}
		s.w.until("our comment is known to be posted", func() (bool, string) {
			run := s.w.newest(name, holdfast.RunPlan)
			return run.PullRequest.Number == pr.number && !run.PostedAt.IsZero(), string(run.Status)
		})
		pr.merge()
		f.strike()
		pr.untilApplied()
	}
	f.over()
	s.w.untilIdle()
	applied := 0
	for _, name := range []string{"alpha", "beta", "gamma"} {
		revisions := make(map[holdfast.Revision]string)
		for _, run := range s.w.applies(name) {
			if run.Status != holdfast.RunApplied || run.Counts.Zero() {
				continue
			}
			applied++
			if other := revisions[run.Revision]; other != "" {
				t.Errorf("%s and %s have both applied %s of %s", other, run.ID, run.Revision.Short(), name)
			}
			revisions[run.Revision] = run.ID
		}
	}
	if applied != rounds {
		t.Errorf("%d changes were applied, want %d", applied, rounds)
	}
	for _, pr := range s.w.fleet().pulls {
		for _, where := range [][2]string{{pr.head, holdfast.ContextPlan}, {pr.merged, holdfast.ContextApply}} {
			status, _ := s.w.fleet().hub.LatestStatus(where[0], where[1])
			if status.State != string(holdfast.StatusSuccess) {
				t.Errorf("%s of pull request %d is %s in the end: %s", where[1], pr.number, status.State, status.Description)
			}
		}
		pr.untilComment("applied") // there is one comment of ours
	}
	t.Logf("%d pull requests, %d commands, %d applies; what has happened: %v", rounds, commands, applied, f.made)
}

// fate is what happens to replicas.
type fate struct {
	*replicas
	rng  *rand.Rand
	made map[string]int
	end  func() // ends what is happening; nil: nothing is
}

// strike has something happen to a replica, after what was happening is over.
func (f *fate) strike() {
	f.w.t.Helper()
	f.over()
	time.Sleep(time.Duration(f.rng.IntN(1500)) * time.Millisecond)
	victim := f.all[f.rng.IntN(len(f.all))]
	if f.rng.IntN(2) == 0 {
		if leads := f.leader(); leads != nil {
			victim = leads
		}
	}
	switch f.rng.IntN(4) {
	case 0:
		f.made["killed"]++
		victim.end(syscall.SIGKILL)
		f.end = victim.launch
	case 1:
		f.made["told to end"]++
		victim.end(syscall.SIGTERM)
		f.end = victim.launch
	case 2: // the balancer notices, as those do that ask for signs of life
		f.made["stopped"]++
		api, hooks, socket := victim.addresses()
		victim.attach("", "", "")
		_ = victim.cmd.Process.Signal(syscall.SIGSTOP)
		pause := time.Duration(1+f.rng.IntN(12)) * time.Second
		began := time.Now()
		f.end = func() {
			time.Sleep(pause - time.Since(began))
			_ = victim.cmd.Process.Signal(syscall.SIGCONT)
			select {
			case <-victim.exited: // others had the database without it
				victim.end(syscall.SIGTERM)
				victim.launch()
			case <-time.After(2 * time.Second):
				victim.attach(api, hooks, socket)
			}
		}
	default:
		f.made["nothing"]++
	}
}

// over ends what is happening.
func (f *fate) over() {
	f.w.t.Helper()
	if f.end != nil {
		f.end()
		f.end = nil
	}
}
