package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// quick leases let a death be noticed soon.
var quick = settings{"runs.lease": "4s"}

// The server is killed during an apply: that continues, the next server finds
// the agent at work, and the result is told once.
func TestServerIsKilledDuringApply(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.start()
	pr := w.fleet().open(worker("alpha", "1", w.gated("work")))
	pr.untilPlanned("2 to create")
	pr.merge()
	w.untilSaid("work", "start")
	agent := w.agentPID(holdfast.RunApply)

	w.crash()
	w.openGate("work") // the apply ends while nobody listens
	w.untilSaid("work", "start stop")
	w.start()

	pr.untilApplied("2 created")
	if got := w.agentPID(holdfast.RunApply); got != agent {
		t.Errorf("agent %d was followed by %d, want it adopted", agent, got)
	}
	if applies := w.applies("alpha"); len(applies) != 1 || applies[0].Attempt != 1 {
		t.Errorf("applies: %+v, want one of one attempt", applies)
	}
	if rec := w.record("alpha"); rec.StateSerial == 0 || rec.Waiting != "" {
		t.Errorf("state serial %d, waiting %q: want a stored state and no wait", rec.StateSerial, rec.Waiting)
	}
	pr.untilComment("applied")
	w.untilSaid("work", "start stop")
}

// untilHeldAsItMayExist waits until the apply of alpha that continues a dead one is held,
// says why and what to do, and has changed nothing.
func (w *world) untilHeldAsItMayExist(pr *pull) {
	w.t.Helper()
	w.untilWaiting("alpha", holdfast.ReasonMayExist)
	pr.untilComment("MayExist", "may exist already", "terraform_data.work", "import existing ones into the state, or remove them", "/holdfast apply")
	w.fleet().untilStatus(pr.merged, holdfast.ContextApply, holdfast.StatusFailure, "MayExist", "alpha")
	w.untilShown("alpha")
	if got := w.said("work"); got != "start" {
		w.t.Errorf("the script said %q, want it not started again", got)
	}
	held := w.newest("alpha", holdfast.RunApply)
	if held.Status != holdfast.RunPlanned || held.Reason != holdfast.ReasonMayExist || held.Begun || !strings.Contains(held.Detail, "terraform_data.work") {
		w.t.Errorf("the apply that continues is %s (%s, begun %t): %s", held.Status, held.Reason, held.Begun, held.Detail)
	}
}

// The agent is killed during an apply: its engine dies with it, another agent is
// started, the report says what may be unrecorded, and the apply is held, as it would
// create again what may exist already. A person's word lets it continue.
func TestAgentIsKilledDuringApply(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.start()
	pr := w.fleet().open(worker("alpha", "1", w.gated("work")))
	pr.untilPlanned("2 to create")
	pr.merge()
	w.untilSaid("work", "start")
	agent := w.agentPID(holdfast.RunApply)

	w.killAgent(holdfast.RunApply)
	w.untilHeldAsItMayExist(pr)
	pr.say(dev, "/holdfast apply")
	w.untilSaid("work", "start start")
	if got := w.agentPID(holdfast.RunApply); got == agent || got == 0 {
		t.Errorf("agent %d was followed by %d, want another one", agent, got)
	}
	w.openGate("work")
	pr.untilApplied()

	applies := w.applies("alpha")
	if len(applies) != 3 {
		t.Fatalf("%d applies, want 3: %+v", len(applies), applies)
	}
	died, held, next := applies[0], applies[1], applies[2]
	if died.Status != holdfast.RunInterrupted || !died.Begun {
		t.Errorf("the killed apply is %s (begun %t), want interrupted", died.Status, died.Begun)
	}
	if died.Failure == nil || !slices.Contains(died.Failure.Unrecorded, "terraform_data.work") {
		t.Errorf("the killed apply's failure is %+v, want terraform_data.work to be unrecorded", died.Failure)
	}
	if !held.Resume || next.Status != holdfast.RunApplied || next.Resume || next.Shown != held.ID {
		t.Errorf("the next apply resumes: %t; the last one is %s (resumes %t) and shows %q, want it applied as it was asked for", held.Resume, next.Status, next.Resume, next.Shown)
	}
	w.untilSaid("work", "start start stop")
}

// The agent is killed while its engine destroys something: that is nothing which could
// come to be twice, and the apply continues automatically.
func TestAgentIsKilledDuringDestruction(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.start()
	script := w.gated("work")
	nodes := func(n int) files {
		return join(document("alpha", fmt.Sprintf("variables: {nodes: %d, script: %q}", n, script)), files{"infra/alpha/main.tf": `
variable "nodes" {
  type = number
}

variable "script" {
  type = string
}

resource "terraform_data" "work" {
  count = var.nodes
  input = var.script

  provisioner "local-exec" {
    when    = destroy
    command = self.input
  }
}
`})
	}
	first := w.fleet().open(nodes(1))
	first.untilPlanned("1 to create")
	first.merge()
	first.untilApplied("1 created")
	pr := w.fleet().open(nodes(0))
	pr.untilPlanned("1 to destroy")
	pr.merge()
	w.untilSaid("work", "start")

	w.killAgent(holdfast.RunApply)
	w.untilSaid("work", "start start")
	w.openGate("work")
	pr.untilApplied()
	applies := w.applies("alpha")
	died, next := applies[len(applies)-2], applies[len(applies)-1]
	if died.Status != holdfast.RunInterrupted || died.Failure == nil || !slices.Contains(died.Failure.Unrecorded, "terraform_data.work[0]") {
		t.Errorf("the killed apply is %s, its failure %+v", died.Status, died.Failure)
	}
	if next.Status != holdfast.RunApplied || !next.Resume {
		t.Errorf("the next apply is %s (resumes %t), want applied", next.Status, next.Resume)
	}
	w.untilSaid("work", "start start stop")
}

// Somebody kills the engine during an apply: the agent lives, tells the truth, and
// creates nothing again before a person says so.
func TestEngineIsKilledDuringApply(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.start()
	pr := w.fleet().open(worker("alpha", "1", w.gated("work")))
	pr.untilPlanned("2 to create")
	pr.merge()
	w.untilSaid("work", "start")
	agent := w.agentPID(holdfast.RunApply)

	engines := w.engines()
	if len(engines) != 1 {
		t.Fatalf("engines: %v, want one", engines)
	}
	if err := syscall.Kill(engines[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.untilHeldAsItMayExist(pr)
	w.openGate("work")
	pr.say(dev, "/holdfast apply")
	pr.untilApplied()

	if got := w.agentPID(holdfast.RunApply); got != agent {
		t.Errorf("agent %d was followed by %d, want the same", agent, got)
	}
	died := w.applies("alpha")[0]
	if died.Status != holdfast.RunInterrupted || died.Failure == nil ||
		!slices.Contains(died.Failure.Unrecorded, "terraform_data.work") {
		t.Errorf("the killed apply is %s, its failure %+v", died.Status, died.Failure)
	}
	if said := w.said("work"); strings.Contains(said, "overlap") {
		t.Errorf("the script was run twice at once: %s", said)
	}
}

// The server is killed during a plan: the agent makes it to its end.
func TestServerIsKilledDuringPlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.start()
	w.hold("plan", "alpha")
	pr := w.fleet().open(cluster("alpha", "nodes: 2"))
	w.untilHeld("plan", "alpha")

	w.crash()
	w.release("plan", "alpha")
	w.start()
	pr.untilPlanned("2 to create")
	pr.merge()
	pr.untilApplied("2 created")
}

// The agent dies when all is applied and nobody has heard of it: the next run finds
// nothing to do, and what is told is that it was applied.
func TestAgentIsKilledAfterApply(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"runs.lease": "4s", "runs.retryDelay": "100ms"})
	w.start()
	pr := w.fleet().open(cluster("alpha", "nodes: 2"))
	pr.untilPlanned("2 to create")
	w.hold("after-apply", "alpha")
	pr.merge()
	w.untilHeld("after-apply", "alpha")
	w.killAgent(holdfast.RunApply)
	w.release("after-apply", "alpha")
	pr.untilApplied("applied 1 cluster")
	pr.untilComment("and applied", "applied: the interrupted run had completed it")
	if n := w.countCalls("apply alpha"); n != 1 {
		t.Errorf("the engine has applied %d times, want once", n)
	}
}
