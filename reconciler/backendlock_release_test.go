package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
	"github.com/holdfast-dev/holdfast/statelock"
)

// release claims a release of a lock, and ends it.
func (f *fleet) release(job holdfast.Run, result protocol.Result) {
	f.t.Helper()
	a := f.claim()
	if a.Run != job.ID {
		f.t.Fatalf("handed out is %q, want the release %q: %v", a.Run, job.ID, f.runs(job.Cluster))
	}
	f.finish(a, result)
}

// noSuchLock is the result of a release that finds no lock.
var noSuchLock = protocol.Result{Status: holdfast.RunErrored, Reason: holdfast.CauseStateBackend, Failure: &holdfast.Failure{
	Step: "unlock", Summary: "Failed to unlock state: no such lock", Cause: holdfast.CauseStateBackend,
}}

// TestPlansAfterARelease: a plan that gave up waiting for a lock is made again once that is
// released, and once only. A release that failed has nothing made.
func TestPlansAfterARelease(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters()) // without a wait for locks
	f.adopt()
	locked := func(protocol.Assignment) protocol.Result { return foundLocked(noon) }
	f.open(1, freshAt("one"))
	f.executeAll(locked)
	head := f.forge.get(1).Head
	if got := f.forge.status(head, holdfast.ContextPlan); got == holdfast.StatusPending || got == holdfast.StatusSuccess {
		t.Fatalf("%s is %q, want the plan to have given up: %v", holdfast.ContextPlan, got, f.runs("fresh"))
	}
	job, err := f.unlockBackend("fresh", "left-1", true)
	f.must(err)
	f.release(job, noSuchLock)
	f.expectRuns("fresh", "plan errored StateLocked", "unlock errored StateBackend")

	job, err = f.unlockBackend("fresh", "left-1", true)
	f.must(err)
	f.release(job, protocol.Result{Status: holdfast.RunApplied})
	f.expectRuns("fresh", "plan errored StateLocked", "unlock errored StateBackend", "unlock applied", "plan queued Requested")
	f.executeAll(locked)
	f.expectRuns("fresh", "plan errored StateLocked", "unlock errored StateBackend", "unlock applied", "plan errored StateLocked")

	job, err = f.unlockBackend("fresh", "left-1", true)
	f.must(err)
	f.release(job, protocol.Result{Status: holdfast.RunApplied})
	f.executeAll(good)
	if got := f.forge.status(head, holdfast.ContextPlan); got != holdfast.StatusSuccess {
		t.Errorf("%s is %q in the end: %v", holdfast.ContextPlan, got, f.runs("fresh"))
	}
}

// TestPlansAfterAReleaseOnTheBranch: so is one of the tracked branch, which nobody has
// reviewed.
func TestPlansAfterAReleaseOnTheBranch(t *testing.T) {
	t.Parallel()
	f := newFleet(t, foreignState())
	f.look()
	f.executeAll(func(a protocol.Assignment) protocol.Result {
		if a.Cluster == "prod" {
			return foundLocked(noon)
		}
		return good(a)
	})
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonPlanFailed {
		t.Fatalf("prod waits for %q: %v", rec.Waiting, f.runs("prod"))
	}
	job, err := f.unlockBackend("prod", "left-1", true)
	f.must(err)
	f.release(job, protocol.Result{Status: holdfast.RunApplied})
	f.executeAll(good)
	f.expectRuns("prod", "plan errored StateLocked", "state applied", "plan planned")
	if rec := f.cluster("prod"); rec.Waiting != holdfast.ReasonUnreviewed {
		t.Errorf("prod waits for %q once it is planned", rec.Waiting)
	}
}

// TestUnlockTwice: who asks for a release that is queued gets that one. One whose agent dies
// is tried again. Meanwhile, and when it fails in the end, the pull request's status is that of
// its plan, and the lock is known.
func TestUnlockTwice(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters(), func(opts *reconciler.Options) { opts.Limits.LockTimeout = time.Hour })
	f.adopt()
	f.open(1, freshAt("one"))
	plan := f.claim()
	f.finish(plan, foundLocked(noon))
	job := f.forcedUnlock("fresh", "left-1")
	if again := f.forcedUnlock("fresh", "left-1"); again.ID != job.ID {
		t.Errorf("a second release is queued: %v", f.runs("fresh"))
	}
	f.release(job, protocol.Result{Status: holdfast.RunInterrupted, Reason: holdfast.ReasonAgentKilled})
	f.expectRuns("fresh", "plan retrying StateLocked", "unlock retrying AgentKilled")
	if again := f.forcedUnlock("fresh", "left-1"); again.ID != job.ID {
		t.Errorf("a second release is queued while the first is to be tried again: %v", f.runs("fresh"))
	}
	f.clock.Advance(10 * time.Minute)
	f.release(job, noSuchLock)
	f.post()
	if got := f.forge.status(f.forge.get(1).Head, holdfast.ContextPlan); got != holdfast.StatusPending {
		t.Errorf("%s is %q after a release that failed: %v", holdfast.ContextPlan, got, f.runs("fresh"))
	}
	if lock, err := f.backendLock("fresh"); err != nil || lock.ID != "left-1" {
		t.Errorf("BackendLock() = %+v, %v, after a release that failed", lock, err)
	}
	if again := f.forcedUnlock("fresh", "left-1"); again.ID == job.ID {
		t.Errorf("%s has ended, and is to release the lock", job.ID)
	}
}

// TestUnlockAfterItsPullRequest: a release outlives the pull request whose code it has, and
// can be asked for after that: nobody else could release the lock.
func TestUnlockAfterItsPullRequest(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters(), func(opts *reconciler.Options) { opts.Limits.LockTimeout = time.Hour })
	f.adopt()
	f.open(1, freshAt("one"))
	f.finish(f.claim(), foundLocked(noon))
	job := f.forcedUnlock("fresh", "left-1")
	f.change(1, func(pr *holdfast.PullRequest) { pr.State = holdfast.PullRequestClosed })
	f.expectRuns("fresh", "plan canceled Closed", "unlock queued Requested")
	f.release(job, noSuchLock)
	f.release(f.forcedUnlock("fresh", "left-1"), protocol.Result{Status: holdfast.RunApplied})
	if a := f.claim(); a.Run != "" {
		t.Errorf("%s is handed out for a pull request that is closed: %v", a.Run, f.runs("fresh"))
	}
}

// TestUnlockOfOneIDInTwoStates: a pull request that names another state is not planned, so that
// its code prints the ID of no lock. That of the tracked branch's state is released, with the
// tracked branch's code.
func TestUnlockOfOneIDInTwoStates(t *testing.T) {
	t.Parallel()
	f := newFleet(t, foreignState())
	f.adopt()
	f.api("alice", holdfast.VerbPlan, "prod")
	dead := f.claim()
	made := f.clock.Now()
	f.clock.Advance(time.Minute)
	f.finish(dead, protocol.Result{Status: holdfast.RunErrored, Reason: holdfast.CauseStateBackend, Failure: &holdfast.Failure{
		Step: "plan", Summary: "the backend is away", Cause: holdfast.CauseStateBackend,
	}})
	f.api("alice", holdfast.VerbPlan, "prod")
	found := f.execute(func(protocol.Assignment) protocol.Result { return foundLocked(made) })
	f.open(1, map[string]string{"infra/prod/backend.tf": strings.Replace(foreignState()["infra/prod/backend.tf"], `"k"`, `"mine"`, 1)})
	f.executeAll(func(protocol.Assignment) protocol.Result { return foundLocked(f.clock.Now()) })
	if run := f.newest("prod"); run.PullRequest.Number != 0 {
		t.Fatalf("the pull request has the run %+v", run.RunSpec)
	}
	job, err := f.unlockBackend("prod", "left-1", false)
	if err != nil || job.Kind != holdfast.RunState || !job.PullRequest.IsZero() || job.StateLocation != found.StateLocation {
		t.Errorf("the lock is released by a %q run of %s at %q, %v", job.Kind, job.PullRequest, job.StateLocation, err)
	}
}

// TestUnlockNamesNoOtherRuns: who does not see a run that is running does not hear of it: where
// they see no lock either, there is nothing.
func TestUnlockNamesNoOtherRuns(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.open(1, freshAt("one"))
	f.executeAll(func(protocol.Assignment) protocol.Result { return foundLocked(noon) })
	f.open(2, freshAt("one"))
	running := f.claim()
	unlock := func(number int) error {
		sees := func(_ context.Context, run holdfast.Run) (bool, error) { return run.PullRequest.Number == number, nil }
		_, err := f.r.Rescue().UnlockBackend(t.Context(), statelock.BackendUnlock{
			Cluster: "fresh", Lock: "left-1", Actor: "ana", Force: true, Sees: sees,
		})
		return err
	}
	if err := unlock(1); refusedWith(err) != "InProgress " || strings.Contains(err.Error(), running.Run) {
		t.Errorf("who sees the lock alone hears %v", err)
	}
	if err := unlock(2); refusedWith(err) != "InProgress holdfast cancel "+running.Run {
		t.Errorf("who sees the run hears %v", err)
	}
	if err := unlock(3); !errors.Is(err, holdfast.ErrNotFound) || strings.Contains(err.Error(), running.Run) {
		t.Errorf("who sees neither hears %v", err)
	}
}

// TestUnlockWhileAnotherStateIsPlanned: a run that has another state cannot hold the lock, and
// does not keep anybody from releasing that.
func TestUnlockWhileAnotherStateIsPlanned(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.open(1, freshAt("one"))
	f.executeAll(func(protocol.Assignment) protocol.Result { return foundLocked(noon) })
	f.open(2, freshAt("two"))
	running := f.claim()
	job, err := f.unlockBackend("fresh", "left-1", true)
	f.must(err)
	if a := f.claim(running.AttemptRef); a.Run != job.ID {
		t.Errorf("handed out is %q, want the release %s: %v", a.Run, job.ID, f.runs("fresh"))
	}
	if _, err := f.unlockBackend("fresh", "left-2", true); refusedWith(err) != "InProgress holdfast logs "+job.ID+" --follow" {
		t.Errorf("a lock that nobody has found is released while runs are running: %v", err)
	}
}

// TestReleaseWakesAll: however many runs wait for a lock, all may be claimed once it is
// released.
func TestReleaseWakesAll(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters(), func(opts *reconciler.Options) { opts.Limits.LockTimeout = time.Hour })
	f.adopt()
	f.open(1, freshAt("one"))
	f.finish(f.claim(), foundLocked(noon))
	first := f.newest("fresh")
	const others = 101
	for i := range others {
		other := first
		other.ID, other.CreatedAt = fmt.Sprintf("run-0-%03d", i), first.CreatedAt.Add(-time.Hour)
		other.NotBefore = f.clock.Now().Add(time.Hour)
		f.must(f.store.CreateRun(t.Context(), other))
	}
	job, err := f.unlockBackend("fresh", "left-1", true)
	f.must(err)
	f.release(job, protocol.Result{Status: holdfast.RunApplied})
	runs, err := f.store.Runs(t.Context(), holdfast.RunFilter{Cluster: "fresh", Statuses: []holdfast.RunStatus{holdfast.RunRetrying}, Limit: 1000})
	f.must(err)
	now := f.clock.Now()
	if len(runs) != others+1 || slices.ContainsFunc(runs, func(run holdfast.Run) bool { return run.NotBefore.After(now) }) {
		t.Errorf("%d runs wait, and some of them still for the end of their pause", len(runs))
	}
}

// TestReleaseMakesNoRoom: a release is over soon, and changes nothing that a suspension is
// there for. It steps back neither for that nor for an apply of its cluster.
func TestReleaseMakesNoRoom(t *testing.T) {
	t.Parallel()
	f := newFleet(t, foreignState())
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(good)
	f.open(2, map[string]string{"infra/prod/backend.tf": strings.Replace(foreignState()["infra/prod/backend.tf"], `"k"`, `"mine"`, 1)})
	f.executeAll(func(protocol.Assignment) protocol.Result { return foundLock("mine-1", noon) })
	job, err := f.unlockBackend("prod", "mine-1", true)
	f.must(err)
	f.suspend("prod", true, "ana", "")
	f.settle()
	a := f.claim()
	if a.Run != job.ID {
		t.Fatalf("handed out is %q, want the release %q: %v", a.Run, job.ID, f.runs("prod"))
	}
	f.suspend("prod", false, "ana", "")
	f.merge(1, byMerge)
	if runs := f.runs("prod"); !slices.Contains(runs, "apply queued Merged") {
		t.Fatalf("the merge has led to %v", runs)
	}
	if job, err = f.store.Run(t.Context(), job.ID); err != nil || job.Kind != holdfast.RunState || job.Cancel != "" || job.Status != holdfast.RunRunning {
		t.Errorf("the release is %s, and is to stop for %q, %v", job.Status, job.Cancel, err)
	}
}
