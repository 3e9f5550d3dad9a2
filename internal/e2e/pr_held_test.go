package e2e_test

import (
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
	"github.com/holdfast-dev/holdfast/runner/folders"
)

// dependingModule is a root module whose plan depends on something outside of
// Git: whether a file is there.
func dependingModule(name, path string) files {
	return moduleFile(name, `
resource "terraform_data" "outside" {
  input = fileexists("`+path+`") ? "there" : "not there"
}
`)
}

func depending(name, path string) files {
	return join(document(name), dependingModule(name, path))
}

// A plan that is not what was reviewed is held. A command applies exactly that
// plan, and nothing else: not before the merge, and not when a newer one is
// there.
func TestPlanDiffersAfterMerge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()

	pr := w.fleet().open(depending("alpha", w.path("outside")))
	pr.untilPlanned("2 to create")
	early := pr.say(dev, "/holdfast apply")
	pr.untilReply("Refused", "not merged yet")
	pr.untilReacted(early, holdfast.ReactionRefused)

	w.write("outside", "", 0o644)
	pr.merge()
	w.untilWaiting("alpha", "PlanChanged")
	w.fleet().untilStatus(pr.merged, holdfast.ContextApply, holdfast.StatusFailure, "PlanChanged", "alpha")
	pr.untilComment("**PlanChanged**", "/holdfast apply")
	if n := w.countCalls("apply alpha"); n != 0 {
		t.Fatalf("the engine has applied %d times, want never", n)
	}

	// What was seen is applied: the apply plans once, itself, and comes to the same.
	plans := w.countCalls("plan alpha")
	w.untilShown("alpha")
	command := pr.say(dev, "/holdfast apply")
	pr.untilReacted(command, holdfast.ReactionDone)
	pr.untilApplied("2 created")
	pr.untilComment("and applied")
	if n := w.countCalls("apply alpha"); n != 1 {
		t.Errorf("the engine has applied %d times, want once", n)
	}
	if n := w.countCalls("plan alpha"); n != plans+1 {
		t.Errorf("the engine has planned %d times more, want once", n-plans)
	}
	w.untilWaiting("alpha", "")
}

// A command means the plan and the head that were shown when it was written.
func TestCommandIsRefusedWhenWhatWasSeenHasMoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	beta := w.fleet().open(cluster("beta", "nodes: 1"))
	alpha := w.fleet().open(depending("alpha", w.path("outside")))
	alpha.untilPlanned("2 to create")
	beta.untilPlanned("1 to create")
	w.write("outside", "", 0o644)
	alpha.merge()
	alpha.untilComment("**PlanChanged**")

	// From now on comments stay as they are.
	w.hub.Fail(1000, "PATCH /repos/{owner}/{repo}/issues/comments", githubserver.BadGateway)

	again := alpha.say(dev, "/holdfast plan")
	alpha.untilReacted(again, holdfast.ReactionDone)
	w.until("there is a newer plan", func() (bool, string) {
		run := w.runs("alpha")[0]
		return run.Kind == holdfast.RunPlan && run.PullRequest.IsZero() && run.Status == holdfast.RunPlanned,
			string(run.Kind) + " " + string(run.Status)
	})
	stale := alpha.say(dev, "/holdfast apply")
	alpha.untilReply("Refused", "alpha")
	alpha.untilReacted(stale, holdfast.ReactionRefused)

	// The head moves after the plan that people see, and is merged at once.
	beta.push(cluster("beta", "nodes: 7"))
	beta.merge()
	w.until("beta waits", func() (bool, string) {
		reason := w.record("beta").Waiting
		return reason == "Unreviewed", string(reason)
	})
	stale = beta.say(dev, "/holdfast apply")
	beta.untilReply("Refused", "look at it again")
	beta.untilReacted(stale, holdfast.ReactionRefused)
	for _, name := range []string{"apply alpha", "apply beta"} {
		if n := w.countCalls(name); n != 0 {
			t.Errorf("the engine was called %d times to %s, want never", n, name)
		}
	}
}

// What comes to the branch without a pull request is planned and waits for a
// person; the commit says so.
func TestDirectPushWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	sha := w.fleet().push(cluster("alpha", "nodes: 2"))
	w.untilWaiting("alpha", "Unreviewed")
	w.fleet().untilStatus(sha, holdfast.ContextApply, holdfast.StatusPending, "Unreviewed", "alpha")
	if n := w.countCalls("apply alpha"); n != 0 {
		t.Fatalf("the engine has applied %d times, want never", n)
	}
	if out, stderr, code := w.cli("apply", "alpha"); code != 0 {
		t.Fatalf("apply alpha: code %d: %s%s", code, out, stderr)
	}
	w.fleet().untilStatus(sha, holdfast.ContextApply, holdfast.StatusSuccess, "2 created")
	w.untilWaiting("alpha", "")
}

// A server that has lost its database over a fleet that runs applies nothing:
// what is as Git says is adopted, what is not waits for a person.
func TestFreshDatabaseOverRunningFleet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write("states/.keep", "", 0o644)
	if err := os.Chmod(w.path("states"), 0o777); err != nil {
		t.Fatal(err)
	}
	inFile := func(name, nodes string) files {
		return join(document(name, "variables: {nodes: "+nodes+"}"), moduleFile(name, `
terraform {
  backend "local" { path = "`+w.path("states", name)+`" }
}
`))
	}
	w.start()
	pr := w.fleet().open(join(inFile("alpha", "1"), inFile("beta", "1")))
	pr.untilPlanned("2 clusters: 2 to create")
	pr.merge()
	pr.untilApplied("2 created")
	applies := w.countCalls("apply alpha") + w.countCalls("apply beta")

	w.stop()
	w.fleet().commit(document("beta", "variables: {nodes: 3}"))
	if err := folders.Remove(t.Context(), w.path("data")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"alpha", "beta"} { // to plan, another user than the one that applied locks the file
		if err := os.Chmod(w.path("states", name), 0o666); err != nil { //nolint:gosec // see above
			t.Fatal(err)
		}
	}
	w.start()
	w.untilWaiting("beta", "Unreviewed")
	w.until("alpha is adopted", func() (bool, string) {
		rec := w.record("alpha")
		return rec.Applied.Run != "" && rec.Waiting == "" && rec.Phase == holdfast.PhaseActive, string(rec.Waiting)
	})
	w.untilIdle()
	if n := w.countCalls("apply alpha") + w.countCalls("apply beta"); n != applies {
		t.Errorf("the engine has applied %d times more, want never", n-applies)
	}
}

// apply.requires and onMerge hold an apply until a person acts.
func TestApplyGates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"runs.max": 4})
	w.start()

	t.Run("approved by a command after the merge", func(t *testing.T) {
		pr := w.fleet().open(cluster("alpha", "nodes: 1", "apply: {requires: [approved]}"))
		pr.untilPlanned("1 to create")
		pr.merge()
		w.untilWaiting("alpha", "NotApproved")
		w.fleet().untilStatus(pr.merged, holdfast.ContextApply, holdfast.StatusPending, "NotApproved")
		own := pr.say(dev, "/holdfast approve")
		pr.untilReacted(own, holdfast.ReactionRefused)
		pr.say(lead, "/holdfast approve")
		pr.untilApplied("1 created")
	})
	t.Run("approved by a review before the merge", func(t *testing.T) {
		pr := w.fleet().open(cluster("beta", "nodes: 1", "apply: {requires: [approved, mergeable]}"))
		pr.untilPlanned("approval missing; 1 cluster: 1 to create")
		pr.untilComment("**Blocked by:** ⏳ approval missing", "| ⏳ | **approved** | nobody has approved it. Needed: an approving review or `/holdfast approve` from anyone with write permission, except dev",
			"| ✅ | **mergeable** |", "get what is required, then merge to apply")
		pr.review(stranger, "APPROVED") // counts for nothing
		pr.review(lead, "APPROVED")
		pr.untilComment("| ✅ | **approved** | lead approved in a review |", "**Next:** merge to apply")
		w.until("the status misses no approval", func() (bool, string) {
			status, _ := w.fleet().hub.LatestStatus(pr.head, holdfast.ContextPlan)
			return strings.HasPrefix(status.Description, "1 cluster: 1 to create"), status.Description
		})
		pr.merge()
		pr.untilApplied("1 created")
	})
	t.Run("manual", func(t *testing.T) {
		pr := w.fleet().open(cluster("gamma", "nodes: 1", "apply: {onMerge: false}"))
		pr.untilPlanned("1 to create")
		pr.untilComment("merge, then `/holdfast apply`")
		pr.merge()
		w.untilWaiting("gamma", "Manual")
		w.fleet().untilStatus(pr.merged, holdfast.ContextApply, holdfast.StatusPending, "Manual")
		if n := w.countCalls("apply gamma"); n != 0 {
			t.Fatalf("the engine has applied %d times, want never", n)
		}
		pr.untilComment("**Manual**")
		pr.say(dev, "/holdfast apply")
		pr.untilApplied("1 created")
	})
}

// What a merge brought can be reverted before it was applied, or before it was even
// planned. Whoever reads the pull requests sees their outcomes.
func TestMergeIsReverted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	create := w.fleet().open(cluster("alpha", "nodes: 1", "apply: {onMerge: false}"))
	create.untilPlanned("1 to create")
	create.merge()
	w.untilWaiting("alpha", "Manual")
	create.say(dev, "/holdfast apply")
	create.untilApplied("1 created")

	more := w.fleet().open(cluster("alpha", "nodes: 2", "apply: {onMerge: false}"))
	more.untilPlanned("1 to create")
	more.merge()
	w.untilWaiting("alpha", "Manual")
	more.untilComment("**Manual**")
	less := w.fleet().open(cluster("alpha", "nodes: 1", "apply: {onMerge: false}"))
	less.untilPlanned()
	less.merge()
	w.untilWaiting("alpha", "")
	less.untilApplied("nothing to apply")
	more.untilApplied("nothing to apply")
	more.untilComment("nothing to do")
	create.untilComment("and applied", "1 created")
	if n := w.countCalls("apply alpha"); n != 1 {
		t.Errorf("the engine has applied %d times, want once", n)
	}
}

// GitHub may still call a pull request open when its merge is on the branch
// already: what was reviewed is known all the same.
func TestMergeIsRecordedBeforeItIsReported(t *testing.T) {
	t.Parallel()
	for name, merge := range map[string]func(*pull){"merge": (*pull).merge, "squash": (*pull).squash, "rebase": (*pull).rebase} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			w.start()
			pr := w.fleet().open(join(cluster("alpha", "nodes: 1"), cluster("beta", "nodes: 1")))
			pr.push(cluster("beta", "nodes: 2"))
			pr.untilPlanned("2 clusters: 3 to create")

			// The branch moves first; a look at the pull request finds nothing in it.
			pr.beforeTold = func() {
				w.fleet().hub.SetDraft(pr.number, false) // any delivery that asks for a look
				w.until("it was looked at", func() (bool, string) {
					return len(w.pullRequest(pr.number).Clusters) == 0, "it has clusters"
				})
			}
			merge(pr)
			pr.untilApplied("applied 2 clusters: 3 created")
			pr.untilComment("Merged as", "3 created")
		})
	}
}

// A merge that comes before the plan is planned on the branch, and waits.
func TestMergeBeforePlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickToCancel)
	w.start()
	w.hold("plan", "")
	pr := w.fleet().open(cluster("alpha", "nodes: 1"))
	w.untilHeld("plan", "alpha")
	pr.merge()
	w.until("the plan of the pull request is given up", func() (bool, string) {
		runs := w.runs("alpha")
		return runs[len(runs)-1].Status == holdfast.RunCanceled, string(runs[len(runs)-1].Status)
	})
	w.release("plan", "")
	w.untilWaiting("alpha", "Unreviewed")
	w.fleet().untilStatus(pr.merged, holdfast.ContextApply, holdfast.StatusPending, "Unreviewed")
	w.fleet().untilStatus(pr.head, holdfast.ContextPlan, holdfast.StatusFailure)
	pr.untilComment("**Unreviewed**", "terraform_data.node[0]")
	w.untilShown("alpha")
	pr.say(dev, "/holdfast apply")
	pr.untilApplied("1 created")
}

// Two merges come before the first is applied. The second was reviewed as if the
// first were not there: what both would do now waits, and both are told.
func TestMergesComeTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"runs.max": 1})
	w.fleet().commit(cluster("alpha", "nodes: 1"))
	w.start()
	w.untilWaiting("alpha", "Unreviewed")
	first := w.fleet().open(document("alpha", "variables: {nodes: 2}"))
	second := w.fleet().open(moduleFile("alpha", `resource "terraform_data" "extra" {}`+"\n"))
	first.untilPlanned("2 to create")
	second.untilPlanned("2 to create")

	w.hold("plan", "busy") // the only run at once
	w.fleet().open(cluster("busy", "nodes: 1"))
	w.untilHeld("plan", "busy")
	first.merge()
	second.merge()
	w.until("one apply stands for both", func() (bool, string) {
		run := w.runs("alpha")[0]
		return run.Kind == holdfast.RunApply && len(run.Reviews) == 2, string(run.Kind)
	})
	w.release("plan", "busy")
	w.untilWaiting("alpha", "PlanChanged")
	for _, pr := range []*pull{first, second} {
		pr.untilComment("**PlanChanged**", "terraform_data.extra", "terraform_data.node[1]")
		w.fleet().untilStatus(pr.merged, holdfast.ContextApply, holdfast.StatusFailure, "PlanChanged")
	}
	w.untilShown("alpha")
	second.say(dev, "/holdfast apply")
	first.untilApplied("3 created")
	second.untilApplied("3 created")
	if n := w.countCalls("apply alpha"); n != 1 {
		t.Errorf("the engine has applied %d times, want once", n)
	}
}

// A push on top of a push that waits takes its place, and both say so.
func TestPushOnTopOfWaitingPush(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	first := w.fleet().push(cluster("alpha", "nodes: 1"))
	w.fleet().untilStatus(first, holdfast.ContextApply, holdfast.StatusPending, "Unreviewed")
	second := w.fleet().push(document("alpha", "variables: {nodes: 2}"))
	w.fleet().untilStatus(second, holdfast.ContextApply, holdfast.StatusPending, "Unreviewed")
	if _, stderr, code := w.cli("apply", "alpha"); code != 0 {
		t.Fatalf("apply: code %d: %s", code, stderr)
	}
	w.fleet().untilStatus(second, holdfast.ContextApply, holdfast.StatusSuccess, "2 created")
	w.fleet().untilStatus(first, holdfast.ContextApply, holdfast.StatusFailure, "a later commit took its place")
}
