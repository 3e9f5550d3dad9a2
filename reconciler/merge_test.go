package reconciler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/protocol"
)

// reviewed returns a fleet with pull request 1, which changes prod and whose
// plan has been posted.
func reviewed(t *testing.T, spec ...string) *fleet {
	t.Helper()
	files := twoClusters()
	files["clusters/prod.yaml"] = document("prod", spec...)
	f := newFleet(t, files)
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(good)
	f.expectRuns("prod", "plan no_changes", "plan planned")
	return f
}

func TestWhatWasReviewedIsApplied(t *testing.T) {
	t.Parallel()
	ways := map[string]func(*gitserver.Repo, holdfast.PullRequest) string{"merge": byMerge, "squash": bySquash}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := reviewed(t)
			plan := f.newest("prod")
			f.merge(1, way)
			run := f.newest("prod")
			want := []holdfast.Review{{
				PullRequest: onePR, Run: plan.ID, InputDigest: plan.InputDigest, Fingerprint: plan.Fingerprint, PlanDigest: plan.PlanDigest,
			}}
			if run.Kind != holdfast.RunApply || run.Status != holdfast.RunQueued || !slices.Equal(run.Reviews, want) {
				t.Fatalf("the newest run is %s %s with reviews %+v, want an apply of %+v", run.Kind, run.Status, run.Reviews, want)
			}
			f.executeAll(good)
			if rec := f.cluster("prod"); rec.Applied.Run != run.ID || rec.Waiting != "" || rec.Phase != holdfast.PhaseActive {
				t.Errorf("the record after the apply: %+v", rec)
			}
			f.look()
			f.expectRuns("prod", "plan no_changes", "plan planned", "apply applied")
		})
	}
}

func TestWhatCountsAsReviewed(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		between func(*fleet) // after the plan has ended, before the merge is noticed
		want    string
	}{
		"posted before the merge": {func(f *fleet) { f.mergeUnnoticed(1, byMerge) }, "apply queued Merged"},
		"posted after the merge": {func(f *fleet) {
			pr := f.forge.get(1)
			f.mergeUnnoticed(1, byMerge)
			merged := f.forge.get(1)
			merged.MergedAt = noon.Add(-time.Hour)
			f.forge.set(merged)
			_ = pr
		}, "plan queued Unreviewed"},
		"another head was merged": {func(f *fleet) {
			pr := f.forge.get(1)
			pr.Head = holdfast.Revision(f.repo.Commit(pr.Branch, "more", map[string]string{"infra/prod/main.tf": module("three")}))
			f.forge.set(pr)
			f.mergeUnnoticed(1, byMerge)
		}, "plan queued Unreviewed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := reviewed(t)
			tt.between(f)
			f.look()
			f.expectRuns("prod", "plan no_changes", "plan planned", tt.want)
		})
	}
}

func TestUnpostedPlanIsNotReviewed(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.execute(planned) // nothing is posted
	f.merge(1, byMerge)
	f.expectRuns("prod", "plan no_changes", "plan planned", "plan queued Unreviewed")
	f.executeAll(good)
	if got := f.cluster("prod").Waiting; got != holdfast.ReasonUnreviewed {
		t.Errorf("it waits for %q", got)
	}
}

func TestAnotherPlanThanReviewedIsHeld(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.merge(1, byMerge)
	f.execute(func(a protocol.Assignment) protocol.Result {
		if len(a.Reviews) != 1 || a.Reviews[0].PullRequest != onePR {
			t.Errorf("the apply is compared with %+v", a.Reviews)
		}
		result := planned(a)
		result.Reason = holdfast.ReasonPlanChanged
		return result
	})
	f.post()
	if got := f.cluster("prod").Waiting; got != holdfast.ReasonPlanChanged {
		t.Fatalf("it waits for %q", got)
	}
	held := f.newest("prod")

	f.command(1, "alice", "/holdfast apply")
	run := f.newest("prod")
	if run.Kind != holdfast.RunApply || run.Shown != held.ID || run.Actor != "alice" {
		t.Fatalf("the newest run is %+v, want an apply of the plan of %s", run, held.ID)
	}
	f.executeAll(good)
	if got := f.cluster("prod").Applied.Run; got != run.ID {
		t.Errorf("applied is %s", got)
	}
}

// TestHeldMergeReadsAsAppliedAtOnce: a comment that says that a merge is held does not
// say so for any longer once it is applied, though the next word of progress is not due.
func TestHeldMergeReadsAsAppliedAtOnce(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.merge(1, byMerge)
	f.execute(func(a protocol.Assignment) protocol.Result {
		result := planned(a)
		result.Reason = holdfast.ReasonPlanChanged
		return result
	})
	f.post()
	if comment := f.forge.comment(1); !strings.Contains(comment, "**PlanChanged**") {
		t.Fatalf("its comment says:\n%s", comment)
	}
	f.command(1, "alice", "/holdfast apply")
	applying := f.claim()
	f.settle()
	f.post()
	if comment := f.forge.comment(1); applying.Kind != holdfast.RunApply || strings.Contains(comment, "held") || !strings.Contains(comment, "applying") {
		t.Errorf("while it is applied its comment says:\n%s", comment)
	}
}

func TestFailedApplyIsPlannedAgainAndWaits(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.merge(1, byMerge)
	f.execute(failing)
	f.expectRuns("prod", "plan no_changes", "plan planned", "apply errored EngineFailed", "plan queued ApplyFailed")
	f.executeAll(good)
	rec := f.cluster("prod")
	if rec.Waiting != holdfast.ReasonApplyFailed || rec.Phase != holdfast.PhaseFailed {
		t.Errorf("it waits for %q, %s", rec.Waiting, rec.Phase)
	}
	f.look()
	f.r.Resume(t.Context())
	f.settle()
	if got := f.newest("prod"); got.Kind != holdfast.RunPlan {
		t.Error("it was applied again by itself")
	}
}

func TestTransientFailureIsRetried(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.merge(1, byMerge)
	f.execute(transient)
	if got := f.newest("prod"); got.Status != holdfast.RunErrored {
		t.Fatalf("it went on without a break: %s %s", got.Kind, got.Status)
	}
	f.clock.Advance(time.Minute)
	f.ask("prod")
	run := f.execute(func(a protocol.Assignment) protocol.Result {
		if !a.Resume || len(a.Reviews) != 1 {
			t.Errorf("resume %t, reviews %+v", a.Resume, a.Reviews)
		}
		return good(a)
	})
	if got := f.cluster("prod").Applied.Run; got != run.ID {
		t.Errorf("applied is %q", got)
	}
}

// dies executes an apply whose agent is killed: what was being created then is not
// recorded, and other changes were completed.
func (f *fleet) dies(unrecorded []string, completed ...string) {
	f.t.Helper()
	f.execute(func(a protocol.Assignment) protocol.Result {
		result := transient(a)
		result.Status, result.Reason = holdfast.RunInterrupted, holdfast.ReasonAgentKilled
		result.Failure.Unrecorded, result.Failure.Completed = unrecorded, completed
		return result
	})
}

// What a dead apply may have created is told to the one that continues it, and what
// that finds holds the cluster until a person says so.
func TestWhatMayExistWaitsForAPerson(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.merge(1, byMerge)
	f.dies([]string{"a.work"}, "a.before: created", "a.other: updated")
	f.clock.Advance(time.Minute)
	f.ask("prod")
	f.execute(func(a protocol.Assignment) protocol.Result {
		want := protocol.AssignedResume{Resume: true, MayExist: []string{"a.before", "a.work"}}
		if diff := cmp.Diff(want, a.AssignedResume); diff != "" {
			t.Errorf("the agent is told (-want +got):\n%s", diff)
		}
		result := planned(a)
		result.Reason, result.Detail = holdfast.ReasonMayExist, "may exist already: a.work"
		return result
	})
	f.look()
	f.clock.Advance(time.Hour)
	f.r.Resume(t.Context())
	f.settle()
	held := f.newest("prod")
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonMayExist || rec.WaitingDetail != held.Detail || rec.Phase != holdfast.PhaseFailed || held.Status != holdfast.RunPlanned {
		t.Fatalf("it is %s and waits for %q (%s); the newest run is %s", rec.Phase, rec.Waiting, rec.WaitingDetail, held.Status)
	}
	f.api("alice", holdfast.VerbApply, "prod")
	f.execute(func(a protocol.Assignment) protocol.Result {
		if a.Resume || len(a.MayExist) > 0 || a.AnyMayExist {
			t.Errorf("what a person has asked for is held again: %+v", a.AssignedResume)
		}
		return good(a)
	})
	if rec := f.cluster("prod"); rec.Waiting != "" || rec.Applied.Run != f.newest("prod").ID {
		t.Errorf("it waits for %q, applied is %s", rec.Waiting, rec.Applied.Run)
	}
}

// What a dead apply may have created holds the merges that follow, too: their plans say
// that it is created, and were perhaps made before.
func TestWhatMayExistHoldsTheNextMerge(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.open(2, map[string]string{"infra/prod/other.tf": module("other")})
	f.executeAll(good)
	f.merge(1, byMerge)
	f.dies([]string{"a.work"})
	hold := func(resume bool) {
		t.Helper()
		f.execute(func(a protocol.Assignment) protocol.Result {
			want := protocol.AssignedResume{Resume: resume, MayExist: []string{"a.work"}}
			if diff := cmp.Diff(want, a.AssignedResume); diff != "" || a.Kind != holdfast.RunApply {
				t.Errorf("the agent of a %s is given (-want +got):\n%s", a.Kind, diff)
			}
			result := planned(a)
			result.Reason, result.Detail = holdfast.ReasonMayExist, "may exist already: a.work"
			return result
		})
	}
	f.clock.Advance(time.Minute)
	f.ask("prod")
	hold(true)
	f.executeAll(good) // the plan of the other one
	f.merge(2, byMerge)
	hold(false)
	f.look()
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonMayExist {
		t.Fatalf("it waits for %q (%s): %v", rec.Waiting, rec.WaitingDetail, f.runs("prod"))
	}
	f.api("alice", holdfast.VerbApply, "prod")
	f.execute(func(a protocol.Assignment) protocol.Result {
		if len(a.MayExist) > 0 {
			t.Errorf("what a person has asked for is held again: %+v", a.AssignedResume)
		}
		return good(a)
	})
	if rec := f.cluster("prod"); rec.Waiting != "" || rec.Applied.Run != f.newest("prod").ID {
		t.Errorf("it waits for %q, applied is %s", rec.Waiting, rec.Applied.Run)
	}
}

func TestTakingBackAFailedApplyIsApplied(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.merge(1, byMerge)
	f.execute(failing)
	f.executeAll(good)
	f.open(2, map[string]string{"infra/prod/main.tf": module("one")})
	f.executeAll(good)
	f.merge(2, byMerge)
	run := f.newest("prod")
	if run.Kind != holdfast.RunApply || run.Reason != holdfast.ReasonMerged {
		t.Errorf("the newest run is %s (%s), want the apply of what was merged", run.Kind, run.Reason)
	}
}

func TestBothPullRequestsArePlannedAndTheLoserAgain(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.open(2, map[string]string{"infra/prod/more.tf": module("more")})
	f.executeAll(good)
	f.merge(1, byMerge)
	f.executeAll(good)
	runs, err := f.store.Runs(t.Context(), holdfast.RunFilter{PullRequest: &holdfast.PullRequestRef{Repo: infra, Number: 2}})
	f.must(err)
	if len(runs) < 2 || runs[0].Status != holdfast.RunPlanned || runs[0].AppliedRun != f.cluster("prod").Applied.Run {
		t.Fatalf("the loser's plans are %+v", runs)
	}
	f.merge(2, byMerge)
	f.executeAll(good)
	if rec := f.cluster("prod"); rec.Waiting != "" || rec.Applied.SourceDigest != rec.Desired.SourceDigest {
		t.Errorf("after both merges: %+v", rec)
	}
}

func TestSeveralMergesAtOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.open(2, map[string]string{"infra/prod/more.tf": module("more")})
	f.executeAll(good)
	f.mergeUnnoticed(2, byMerge) // the higher number first
	f.mergeUnnoticed(1, byMerge)
	f.look()
	run := f.newest("prod")
	if run.Kind != holdfast.RunApply || len(run.Reviews) != 2 || run.Reviews[0].PullRequest.Number != 1 {
		t.Errorf("the newest run is %s with reviews %+v, want both, the last merge first", run.Kind, run.Reviews)
	}
}

func TestMergesThatWait(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spec    string
		reason  holdfast.Reason
		command string
	}{
		"manual":       {"apply: {onMerge: false}", holdfast.ReasonManual, "/holdfast apply"},
		"not approved": {"apply: {requires: [approved]}", holdfast.ReasonNotApproved, "/holdfast approve"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := reviewed(t, tt.spec)
			f.merge(1, byMerge)
			if got := f.cluster("prod").Waiting; got != tt.reason {
				t.Fatalf("it waits for %q, want %q", got, tt.reason)
			}
			f.command(1, "eve", tt.command)
			if got := f.newest("prod"); got.Kind != holdfast.RunPlan {
				t.Fatal("it was applied for somebody who may not write")
			}
			f.command(1, "alice", tt.command)
			if got := f.newest("prod"); got.Kind != holdfast.RunApply || got.Status != holdfast.RunQueued {
				t.Errorf("the newest run is %s %s", got.Kind, got.Status)
			}
		})
	}
}

func TestApplyDoesNotBypassApproval(t *testing.T) {
	t.Parallel()
	f := reviewed(t, "apply: {requires: [approved]}")
	f.merge(1, byMerge)
	c := f.command(1, "alice", "/holdfast apply")
	if got := f.newest("prod"); got.Kind != holdfast.RunPlan || c.Status != holdfast.CommandRefused {
		t.Errorf("the command was %s, the newest run is %s", c.Status, got.Kind)
	}
}

func TestUnaskedPlanYieldsToTheMerge(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	// The push is seen before the code host tells of the merge.
	f.repo.Merge(master, f.forge.get(1).Branch)
	f.look()
	if got := f.newest("prod"); got.Kind != holdfast.RunPlan || got.Reason != holdfast.ReasonUnreviewed {
		t.Fatalf("the newest run is %s %s", got.Kind, got.Reason)
	}
	pr := f.forge.get(1)
	pr.State, pr.MergedAt, pr.MergeCommit = holdfast.PullRequestMerged, f.clock.Now(), holdfast.Revision(f.repo.Rev(master))
	f.forge.set(pr)
	f.lookAt(1)
	f.expectRuns("prod", "plan no_changes", "plan planned", "plan canceled Superseded", "apply queued Merged")
}

// TestClockThatIsSetBack: runs are told apart by their order, whatever the clock
// says.
func TestClockThatIsSetBack(t *testing.T) {
	t.Parallel()
	f := reviewed(t)
	f.clock.Advance(-time.Hour)
	f.push(1, map[string]string{"infra/prod/main.tf": module("three")})
	f.executeAll(good)
	f.ask("prod")
	want := []string{"plan no_changes", "plan planned", "plan planned"}
	f.expectRuns("prod", want...)
	f.repo.Commit(master, "push", map[string]string{"infra/prod/main.tf": module("four")})
	f.look()
	f.executeAll(good)
	f.look()
	if got := f.cluster("prod").Waiting; got != holdfast.ReasonUnreviewed {
		t.Errorf("it waits for %q", got)
	}
	if got := len(f.runs("prod")); got > 5 {
		t.Errorf("%d runs were made", got)
	}
}

// ask asks for a cluster of the tracked branch.
func (f *fleet) ask(cluster string) {
	f.t.Helper()
	_, err := f.r.Reconciled(f.t.Context(), holdfast.Request{Cluster: cluster})
	f.must(err)
	f.settle()
}

// command has a comment's command stored and carried out.
func (f *fleet) command(number int, author, body string) holdfast.Command {
	f.t.Helper()
	comment := f.forge.says(number, author, body)
	var last holdfast.Command
	for _, last = range commandsOf(comment) {
		_, err := f.store.StoreCommand(f.t.Context(), last)
		f.must(err)
	}
	f.r.Obey(f.t.Context())
	f.settle()
	f.post()
	done, err := f.store.Command(f.t.Context(), last.ID)
	f.must(err)
	return done
}
