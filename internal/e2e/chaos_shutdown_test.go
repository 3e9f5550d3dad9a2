package e2e_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// An apply that runs when the server is asked to stop is brought to its end,
// and nothing new is begun.
func TestRunsFinishWithinTheGrace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	pr := w.fleet().open(worker("alpha", "1", w.gated("work")))
	pr.untilPlanned("2 to create")
	pr.merge()
	w.untilSaid("work", "start")

	w.terminate()
	w.untilLogged("server is stopping")
	w.fleet().open(cluster("beta", "nodes: 1"))
	w.openGate("work")
	if code := w.ended(); code != 0 {
		t.Errorf("the server ended with code %d, want 0", code)
	}
	if got := w.said("work"); got != "start stop" {
		t.Errorf("the script said %q, want it ended before the server", got)
	}
	if got := w.countCalls("plan beta"); got != 0 {
		t.Errorf("beta was planned %d times by a server that stops", got)
	}

	w.start()
	pr.untilApplied("2 created")
	if applies := w.applies("alpha"); len(applies) != 1 || applies[0].Attempt != 1 {
		t.Errorf("applies: %+v, want one of one attempt", applies)
	}
}

// A plan that is being made when the server is asked to stop is made, and told: its
// comment and its status are there before the server has ended.
func TestPlansAreReportedWithinTheGrace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	w.hold("plan", "alpha")
	pr := w.fleet().open(cluster("alpha", "nodes: 1"))
	w.untilHeld("plan", "alpha")

	w.terminate()
	w.untilLogged("server is stopping")
	w.release("plan", "alpha")
	if code := w.ended(); code != 0 {
		t.Errorf("the server ended with code %d, want 0", code)
	}
	if body := pr.comment(); !strings.Contains(body, "1 to create") {
		t.Errorf("the comment, when the server has ended:\n%s", body)
	}
	if status, _ := pr.r.hub.LatestStatus(pr.head, holdfast.ContextPlan); status.State != "success" {
		t.Errorf("the status, when the server has ended: %+v", status)
	}
}

// What does not finish within the grace is interrupted: the outcome is
// recorded before the server ends. The engine has left a half-made resource,
// which nobody has agreed to replace: a person has the last word.
func TestRunsAreInterruptedAfterTheGrace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"server.grace": "100ms"})
	w.start()
	pr := w.fleet().open(worker("alpha", "1", w.gated("work")))
	pr.untilPlanned("2 to create")
	pr.merge()
	w.untilSaid("work", "start")

	w.terminate()
	if code := w.ended(); code != 0 {
		t.Errorf("the server ended with code %d, want 0", code)
	}
	if pids := w.leftBehind(); len(pids) > 0 {
		t.Errorf("processes %v were left behind", pids)
	}

	w.set(settings{"agent.off": true}) // what is recorded is the former server's doing
	w.start()
	applies := w.applies("alpha") // the oldest first; a second one may be queued by now
	if len(applies) == 0 || applies[0].Status != holdfast.RunInterrupted || !applies[0].Begun || applies[0].Failure == nil {
		t.Errorf("applies: %+v, want an interrupted one", applies)
	}
	if len(applies) > 1 && applies[1].Attempt != 0 {
		t.Errorf("applies: %+v, want none executed without an agent", applies)
	}
	if code := w.stop(); code != 0 {
		t.Errorf("the server ended with code %d, want 0", code)
	}

	w.openGate("work")
	w.set(settings{"agent.off": false})
	w.start()
	w.untilWaiting("alpha", "MayExist") // its replacement would create it again
	pr.untilComment("terraform_data.work", "tainted")
	w.untilShown("alpha")
	pr.say(dev, "/holdfast apply")
	pr.untilApplied()
	if said := w.said("work"); said != "start start stop" {
		t.Errorf("the script said %q", said)
	}
}

// A second server on the same folder refuses to start and says why; the first
// one does not notice.
func TestSecondServerOnTheSameFolderIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()

	var out bytes.Buffer
	second := exec.Command(binary, "serve", "--config", w.path("holdfast.yaml"))
	second.Dir, second.Stdout, second.Stderr = w.dir, &out, &out
	if err := second.Run(); err == nil || second.ProcessState.ExitCode() != 1 {
		t.Errorf("the second server ended with %v, want status 1", err)
	}
	if want := fmt.Sprintf("in use by pid %d", w.server.Process.Pid); !strings.Contains(out.String(), want) {
		t.Errorf("the second server does not say what is wrong:\n%s", &out)
	}
	pr := w.fleet().open(cluster("alpha", "nodes: 1"))
	pr.untilPlanned("1 to create")
}
