package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// Redis forgets everything during an apply: that continues, and the cluster is
// still nobody else's.
func TestRedisIsRestartedDuringApply(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	redis := w.useRedis()
	w.start()
	pr := w.fleet().open(worker("alpha", "1", w.gated("work")))
	pr.untilPlanned("2 to create")
	pr.merge()
	w.untilSaid("work", "start")

	redis.Restart()
	// Another pull request wants the cluster: it has to wait for its turn.
	other := w.fleet().open(worker("alpha", "2", w.timed("work", "0")))
	w.until("the plan of the other pull request is queued", func() (bool, string) {
		run := w.newest("alpha", holdfast.RunPlan)
		return run.PullRequest.Number == other.number, string(run.Status)
	})
	w.openGate("work")
	pr.untilApplied("2 created")
	other.untilPlanned()
	if applies := w.applies("alpha"); len(applies) != 1 || applies[0].Attempt != 1 {
		t.Errorf("applies: %+v, want one of one attempt", applies)
	}
	if said := w.said("work"); said != "start stop" {
		t.Errorf("the script said %q, want it to run once", said)
	}
}

// Redis is gone for a while: what has begun continues and is told, nothing new is
// granted, and once it is back everything happens automatically.
func TestRedisIsGoneForAWhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	redis := w.useRedis()
	w.start()
	pr := w.fleet().open(worker("alpha", "1", w.gated("work")))
	pr.untilPlanned("2 to create")
	pr.merge()
	w.untilSaid("work", "start")

	redis.Stop()
	w.untilLogged("lock was not renewed")
	other := w.fleet().open(cluster("beta", "nodes: 1"))
	w.openGate("work")
	pr.untilApplied("2 created") // told while Redis is gone
	w.untilRun("beta", holdfast.RunPlan, holdfast.RunQueued)
	w.until("an agent is told why it gets no run", func() (bool, string) {
		log := w.agentLog()
		return strings.Contains(log, "claim was not answered"), log
	})
	if got := w.countCalls("plan beta"); got != 0 {
		t.Errorf("beta was planned %d times without a lock", got)
	}
	w.untilReady("a warning of Redis", func(body string) bool { return strings.Contains(body, "Redis is out of reach") })

	redis.Restart()
	other.untilPlanned("1 to create")
	w.untilReady("no warning of Redis", func(body string) bool { return !strings.Contains(body, "Redis") })
	if log := w.log.all(); strings.Contains(log, "\nredis: ") {
		t.Error("the Redis client prints to the server's log by itself")
	}
}

// untilReady waits until the server, which is ready, answers so.
func (w *world) untilReady(what string, ok func(body string) bool) {
	w.t.Helper()
	w.until(what, func() (bool, string) {
		status, body := w.get(w.api + "/readyz")
		return status == http.StatusOK && ok(body), body
	})
}
