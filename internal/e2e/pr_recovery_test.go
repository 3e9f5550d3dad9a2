package e2e_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// A plan that fails for a transient cause is tried again, for all to see from the
// first time on.
func TestPassingTroubleIsRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"runs.retryDelay": "2s"})
	w.start()
	w.fail("plan", "alpha", "Error: Get \"https://example.com/\": dial tcp: i/o timeout")
	pr := w.fleet().open(cluster("alpha", "nodes: 1"))
	pr.untilComment("plan failed and will be retried", "attempt 2", "i/o timeout")
	w.fleet().untilStatus(pr.head, holdfast.ContextPlan, holdfast.StatusPending)
	w.succeed("plan", "alpha")
	pr.untilPlanned("1 to create")
	pr.untilComment("`alpha` changes")
	if strings.Contains(pr.comment(), "timeout") {
		t.Errorf("the comment still tells of the trouble:\n%s", pr.comment())
	}
}

// An apply that fails in the middle says what was done and what is left, and
// waits. What people then see and agree to is applied.
func TestApplyFailsInTheMiddle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	pr := w.fleet().open(join(document("alpha"), moduleFile("alpha", `
resource "terraform_data" "fragile" {
  input = terraform_data.node[0].id

  provisioner "local-exec" {
    command = "test -e `+w.path("outside")+` || { echo it broke in the middle >&2; exit 7; }"
  }
}
`)))
	pr.untilPlanned("2 to create")
	pr.merge()
	w.untilWaiting("alpha", "ApplyFailed")
	w.fleet().untilStatus(pr.merged, holdfast.ContextApply, holdfast.StatusFailure, "alpha")
	pr.untilComment("ApplyFailed", "terraform_data.fragile", "/holdfast apply")
	w.untilIdle()

	// Its plan file is no longer usable: what remains is planned and shown.
	w.write("outside", "", 0o644)
	w.untilShown("alpha")
	pr.say(dev, "/holdfast apply")
	pr.untilApplied()
	w.untilPhase("alpha", holdfast.PhaseActive)
	w.untilWaiting("alpha", "")
}

// A suspended cluster is left alone until it is resumed.
func TestSuspendedClusterWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.fleet().commit(cluster("alpha", "nodes: 1"))
	w.start()
	w.untilWaiting("alpha", "Unreviewed")
	if _, stderr, code := w.cli("suspend", "alpha"); code != 0 {
		t.Fatalf("suspend: code %d: %s", code, stderr)
	}
	pr := w.fleet().open(document("alpha", "variables: {nodes: 2}"))
	pr.untilPlanned("2 to create")
	pr.merge()
	w.untilWaiting("alpha", "Suspended")
	w.fleet().untilStatus(pr.merged, holdfast.ContextApply, holdfast.StatusPending, "Suspended")
	if n := w.countCalls("apply"); n != 0 {
		t.Fatalf("the engine has applied %d times, want never", n)
	}
	if _, stderr, code := w.cli("resume", "alpha"); code != 0 {
		t.Fatalf("resume: code %d: %s", code, stderr)
	}
	pr.untilApplied("2 created")
}

// A plan that has to wait for an apply says for whom, and at which position.
func TestPlanWaitsBehindApply(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickToCancel)
	w.start()
	first := w.fleet().open(cluster("alpha", "nodes: 1"))
	first.untilPlanned("1 to create")
	w.hold("apply", "alpha")
	first.merge()
	w.untilHeld("apply", "alpha")
	w.fleet().untilStatus(first.merged, holdfast.ContextApply, holdfast.StatusPending)

	second := w.fleet().open(document("alpha", "variables: {nodes: 3}"))
	second.untilComment("waits for", "(apply)", "1 run before it")
	if out, _, code := w.cli("unlock", "alpha"); code == 0 {
		t.Errorf("the lock of a living run was taken away: %s", out)
	}
	w.release("apply", "alpha")
	first.untilApplied("1 created")
	second.untilPlanned("2 to create")

	run := w.runs("alpha")[0].ID
	if out, stderr, code := w.cli("logs", run); code != 0 || !strings.Contains(out, "terraform_data.node[2]") {
		t.Errorf("logs: code %d, %q %q", code, out, stderr)
	}
	for _, args := range [][]string{
		{"get", "runs"},
		{"get", "pullrequests", "-o", "json"},
		{"describe", "cluster", "alpha"},
		{"describe", "pullrequest", "acme/fleet#2"},
		{"describe", "run", run},
	} {
		if out, stderr, code := w.cli(args...); code != 0 || !strings.Contains(out, "alpha") && args[1] != "pullrequests" {
			t.Errorf("%v: code %d, %q %q", args, code, out, stderr)
		}
	}
}
