package e2e_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// badEngine puts a script before one command of the real engine, which it finds
// as $engine.
func (w *world) badEngine(command, script string) {
	w.t.Helper()
	for _, name := range []string{"tofu", "terraform"} {
		if real, err := realEngine(name); err == nil {
			w.write("engine/"+name, fmt.Sprintf("#!/bin/sh\nengine=%s\nif [ \"$1\" = %s ]; then\n%s\nfi\nexec $engine \"$@\"\n",
				real, command, script), 0o755)
		}
	}
}

// An engine that prints without end fills neither memory nor disk, and its run
// ends as if it had been quiet.
func TestEngineThatFloods(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.badEngine("plan", `yes "there is no end to what I have to say" | head -c 100000000; echo the end`)
	w.start()
	pr := w.fleet().open(cluster("alpha", "nodes: 1"))
	pr.untilPlanned("1 to create")
	run := w.newest("alpha", holdfast.RunPlan)
	if size := len(w.logOf(run.ID)); size < 1<<20 || size > 70<<20 {
		t.Errorf("the log has %d bytes, want much, but not all of 100 MB", size)
	}
	for name, pid := range map[string]int{"server": w.server.Process.Pid, "agent": w.agentPID(holdfast.RunPlan)} {
		if peak := peakMemory(t, pid); peak > 400<<20 && !hasRaceDetector() {
			t.Errorf("the %s used %d MB", name, peak>>20)
		}
	}
}

// An engine that hangs is interrupted at its deadline, then killed with all
// that it had started, and the pull request says so.
func TestEngineThatHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"runs.timeout": "1s", "engines.grace": "500ms", "runs.retries": 0})
	w.badEngine("plan", `trap "" INT TERM; echo I am thinking; sleep 600; sleep 600`)
	w.start()
	pr := w.fleet().open(cluster("alpha", "nodes: 1"))
	run := w.untilRun("alpha", holdfast.RunPlan, holdfast.RunErrored)
	if run.Reason != holdfast.ReasonTimeout {
		t.Errorf("the run ended for %s: %+v", run.Reason, run.Failure)
	}
	w.fleet().untilStatus(pr.head, holdfast.ContextPlan, holdfast.StatusFailure)
	pr.untilComment("the deadline passed, after ", "runs.timeout")
	w.until("nothing of the engine is left", func() (bool, string) {
		left := slices.DeleteFunc(w.leftBehind(), func(pid int) bool { return slices.Contains(w.agentPIDs(), pid) })
		return len(left) == 0, fmt.Sprint(left)
	})
}

// What an engine leaves behind that has gone mad is an error in clear words.
func TestEngineThatTalksGarbage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ command, script, says string }{
		"show is not JSON":  {"show", `echo "%PDF-1.4 garbage"; exit 0`, "plan JSON"},
		"show is nothing":   {"show", `exit 0`, "plan JSON"},
		"plan is killed":    {"plan", `kill -SEGV $$`, "plan"},
		"plan makes none":   {"plan", `exit 2`, "plan"},
		"init fails oddly":  {"init", `printf '\377\376\000\033[31m'; exit 93`, "init"},
		"another state one": {"show", `echo '{"format_version":"99.0"}'; exit 0`, "99.0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, settings{"runs.retries": 0})
			w.badEngine(test.command, test.script)
			w.start()
			pr := w.fleet().open(cluster("alpha", "nodes: 1"))
			w.fleet().untilStatus(pr.head, holdfast.ContextPlan, holdfast.StatusFailure)
			pr.untilComment("alpha", test.says)
			if run := w.newest("alpha", holdfast.RunPlan); run.Failure == nil || run.Failure.Summary == "" {
				t.Errorf("the run has no failure to show: %+v", run)
			}
		})
	}
}

// An engine that could not save its state leaves it in a file: that becomes the
// newest state before anything is planned again.
func TestEngineThatLeavesItsStateBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.witness("work")
	w.badEngine("apply", fmt.Sprintf(`$engine "$@" || exit 1
$engine state pull >pulled
serial=$(sed -n 's/.*"serial": *\([0-9]*\),.*/\1/p' pulled)
sed 's/"serial": *[0-9]*,/"serial": '$((serial+7))',/' pulled >errored.tfstate
rm pulled; echo $((serial+7)) >%s
echo 'Error: Failed to save state' >&2; exit 1`, w.path("witness/serial")))
	w.start()
	pr := w.fleet().open(cluster("alpha", "nodes: 1"))
	pr.untilPlanned("1 to create")
	pr.merge()
	w.until("the state that was left behind is the newest", func() (bool, string) {
		rec := w.record("alpha")
		least, err := strconv.ParseInt(w.said("serial"), 10, 64)
		return err == nil && rec.StateSerial >= least, fmt.Sprintf("serial %d, want %d", rec.StateSerial, least)
	})
	pr.untilApplied() // it had done everything but to save its state
	if first := w.applies("alpha")[0]; first.Status != holdfast.RunErrored || !first.Begun || first.Failure == nil ||
		!strings.Contains(first.Failure.Summary+first.Failure.Detail+fmt.Sprint(first.Failure.Diagnostics), "save state") {
		t.Errorf("the apply is %s: %+v", first.Status, first.Failure)
	}
}
