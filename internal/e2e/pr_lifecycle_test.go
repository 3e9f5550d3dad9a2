package e2e_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// quickToCancel lets agents hear sooner that a run is no longer wanted: they
// ask at a sixth of the lease.
var quickToCancel = settings{"runs.lease": "6s"}

// A pull request is planned; its merge, however it was done, is applied.
func TestPullRequestIsPlannedAndItsMergeApplied(t *testing.T) {
	t.Parallel()
	for name, merge := range map[string]func(*pull){
		"merge": (*pull).merge, "squash": (*pull).squash, "rebase": (*pull).rebase,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			switch name {
			case "merge":
				w.useRedis()
			case "squash":
				w.useApp()
			}
			w.start()

			pr := w.fleet().open(cluster("alpha", "nodes: 1"))
			pr.push(cluster("alpha", "nodes: 2"))
			w.fleet().push(files{"README.md": "The base continues.\n"})
			pr.untilPlanned("1 cluster: 2 to create")
			pr.untilComment("`alpha` changes", "terraform_data.node[1]", "merge to apply")

			merge(pr)
			pr.untilApplied("applied 1 cluster: 2 created")
			pr.untilComment("Merged as", "and applied", "2 created")
			if n := w.countCalls("apply alpha"); n != 1 {
				t.Errorf("the engine has applied %d times, want once", n)
			}
			if rec := w.untilPhase("alpha", holdfast.PhaseActive); rec.Applied.Revision != holdfast.Revision(pr.merged) {
				t.Errorf("alpha is applied at %q, want %q", rec.Applied.Revision, pr.merged)
			}
			if out, stderr, code := w.cli("get", "clusters"); code != 0 {
				t.Errorf("get clusters: code %d: %s%s", code, out, stderr)
			}
		})
	}
}

// An apply goes before the plans of the same cluster: one that is being made
// steps back, and is made after it.
func TestApplyGoesBeforePlans(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickToCancel)
	w.useRedis()
	w.fleet().commit(cluster("alpha", "nodes: 1"))
	w.start()
	w.untilWaiting("alpha", "Unreviewed")

	w.hold("plan", "alpha")
	pr := w.fleet().open(document("alpha", "variables: {nodes: 3}"))
	w.untilHeld("plan", "alpha")
	if out, stderr, code := w.cli("apply", "alpha"); code != 0 {
		t.Fatalf("apply alpha: code %d: %s%s", code, out, stderr)
	}
	w.until("the plan steps back", func() (bool, string) {
		for _, run := range w.runs("alpha") {
			if run.PullRequest.Number == pr.number {
				return run.Status == holdfast.RunQueued && run.Reason == "Preempted", string(run.Status) + string(" "+run.Reason)
			}
		}
		return false, "no run"
	})
	w.release("plan", "alpha")

	// One of the three nodes is there by then.
	pr.untilPlanned("2 to create")
	if n := w.countCalls("apply alpha"); n != 1 {
		t.Errorf("the engine has applied %d times, want once", n)
	}
}

// Pull requests that change different files of one cluster do not conflict; the
// one that is left is planned again after the other's apply.
func TestPullRequestIsPlannedAgainAfterAnothersApply(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.fleet().commit(cluster("alpha", "nodes: 1"))
	w.start()
	w.untilWaiting("alpha", "Unreviewed")

	first := w.fleet().open(document("alpha", "variables: {nodes: 2}"))
	second := w.fleet().open(moduleFile("alpha", `resource "terraform_data" "extra" {}`+"\n"))
	first.untilPlanned("2 to create")
	second.untilPlanned("2 to create")

	first.merge()
	first.untilApplied("2 created")
	second.untilPlanned("1 to create")
	second.untilComment("planned again", "applied by #1", "terraform_data.extra")
	second.merge()
	second.untilApplied("1 created")
	first.untilComment("and applied", "2 created")
}

// When the head moves during a plan, that plan is given up: the newest head ends
// with a true status, and the old one never looks good.
func TestHeadMovesDuringPlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickToCancel)
	w.start()

	w.hold("plan", "alpha")
	pr := w.fleet().open(cluster("alpha", "nodes: 1"))
	old := pr.head
	w.untilHeld("plan", "alpha")
	pr.push(cluster("alpha", "nodes: 3"))
	w.until("the plan of the old head is given up", func() (bool, string) {
		runs := w.runs("alpha")
		last := runs[len(runs)-1]
		return last.Status == holdfast.RunCanceled, string(last.Status)
	})
	w.release("plan", "alpha")

	pr.untilPlanned("3 to create")
	if w.fleet().everSaid(old, holdfast.ContextPlan, holdfast.StatusSuccess) {
		t.Error("the old head was said to be good")
	}
	w.untilIdle()
	if n := w.countCalls("plan alpha"); n != 2 {
		t.Errorf("the engine has planned %d times, want twice", n)
	}
}

// A base that moves matters to a pull request only if it changes what merging
// gives for its clusters.
func TestBaseMoves(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.fleet().commit(cluster("alpha", "nodes: 1"))
	w.start()
	w.untilWaiting("alpha", "Unreviewed")
	pr := w.fleet().open(document("alpha", "variables: {nodes: 2}"))
	pr.untilPlanned("2 to create")
	plans := w.countCalls("plan alpha")

	w.fleet().push(join(files{"README.md": "Nothing that this cluster reads.\n"}, cluster("beta", "nodes: 1")))
	w.untilWaiting("beta", "Unreviewed") // the push is taken in
	w.untilIdle()
	if n := w.countCalls("plan alpha"); n != plans {
		t.Errorf("the engine has planned %d times more, want none", n-plans)
	}

	w.fleet().push(moduleFile("alpha", `resource "terraform_data" "new" {}`+"\n"))
	pr.untilPlanned("3 to create")
	pr.untilComment("terraform_data.new")
	pr.merge()
	pr.untilApplied("3 created")
}

// A conflict with the base is said as such, and is over when it is resolved.
func TestConflictWithBase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.fleet().commit(cluster("alpha", "nodes: 1"))
	w.start()
	pr := w.fleet().open(document("alpha", "variables: {nodes: 2}"))
	pr.untilPlanned("2 to create")

	w.fleet().push(document("alpha", "variables: {nodes: 5}"))
	w.fleet().untilStatus(pr.head, holdfast.ContextPlan, holdfast.StatusFailure, "cannot be merged")
	pr.untilComment("Nothing is planned", "cannot be merged")

	pr.rewrite(document("alpha", "variables: {nodes: 4}"))
	pr.untilPlanned("4 to create")
}

// Closing a pull request ends its plans; opening it again plans it again.
func TestClosedPullRequestIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickToCancel)
	w.start()
	w.hold("plan", "alpha")
	pr := w.fleet().open(cluster("alpha", "nodes: 1"))
	w.untilHeld("plan", "alpha")
	pr.close()
	w.until("the plan is canceled", func() (bool, string) {
		run := w.runs("alpha")[0]
		return run.Status == holdfast.RunCanceled && run.Reason == "Closed", string(run.Status) + string(" "+run.Reason)
	})
	w.release("plan", "alpha")

	pr.reopen()
	pr.untilPlanned("1 to create")
}
