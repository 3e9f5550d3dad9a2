package e2e_test

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
)

// A merge that failed stays one when another pull request mends it, and that one
// never shows what was waited for before. A head that others came after gets a
// last status.
func TestWhatHappenedStaysTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	w.fail("apply", "alpha", "Error: Invalid value for variable")
	first := w.fleet().open(cluster("alpha", "nodes: 1"))
	first.untilPlanned("1 to create")
	first.merge()
	w.untilWaiting("alpha", "ApplyFailed")
	w.fleet().untilStatus(first.merged, holdfast.ContextApply, holdfast.StatusFailure, "alpha")
	w.succeed("apply", "alpha")
	w.untilIdle()

	w.hold("plan", "alpha")
	second := w.fleet().open(document("alpha", "variables: {nodes: 2}"))
	older := second.head
	w.fleet().untilStatus(older, holdfast.ContextPlan, holdfast.StatusPending)
	second.push(document("alpha", "variables: {nodes: 3}"))
	w.fleet().untilStatus(older, holdfast.ContextPlan, holdfast.StatusError, "superseded by "+second.head[:7])
	w.release("plan", "alpha")
	second.untilPlanned("3 to create")
	second.merge()
	second.untilApplied("3 created")

	by := fmt.Sprintf("superseded by #%d", second.number)
	first.untilComment("Invalid value for variable", by)
	w.fleet().untilStatus(first.merged, holdfast.ContextApply, holdfast.StatusFailure, by)
	if w.fleet().everSaid(second.merged, holdfast.ContextApply, holdfast.StatusFailure) {
		t.Error("the merge that mended it was told to have failed")
	}
}

// A comment that GitHub refuses shows no plan: its status is an error, and is
// green when the comment is there.
func TestAPlanThatIsRefusedIsNotGreen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	w.hub.Fail(3, "POST /repos/{owner}/{repo}/issues/{number}/comments", githubserver.Forbidden)
	pr := w.fleet().open(cluster("alpha", "nodes: 1"))
	w.fleet().untilStatus(pr.head, holdfast.ContextPlan, holdfast.StatusError, "the plan cannot be shown")
	if w.fleet().everSaid(pr.head, holdfast.ContextPlan, holdfast.StatusSuccess) {
		t.Error("the status was green, and nobody could see the plan")
	}
	pr.say(dev, "/holdfast plan")
	pr.untilPlanned("1 to create")
}
