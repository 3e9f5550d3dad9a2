package reconciler_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
	"github.com/holdfast-dev/holdfast/statelock"
)

// TestBackendLock: the lock that a dead apply has left in a backend of somebody
// else's is released by an agent, and no other without force.
func TestBackendLock(t *testing.T) {
	t.Parallel()
	f := newFleet(t, foreignState())
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(good)
	f.merge(1, byMerge)
	dead := f.claim()
	made := f.clock.Now()
	f.clock.Advance(time.Minute)
	f.finish(dead, protocol.Result{Status: holdfast.RunInterrupted, Reason: holdfast.ReasonAgentKilled, Applying: true})
	if _, err := f.backendLock("prod"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("BackendLock() before anybody came upon one = %v", err)
	}
	lockedBy := func(created time.Time) protocol.Assignment {
		f.clock.Advance(time.Hour)
		f.settle()
		f.api("alice", holdfast.VerbPlan, "prod")
		a := f.claim()
		if a.Run == "" {
			t.Fatalf("nothing is handed out: %v", f.runs("prod"))
		}
		f.finish(a, protocol.Result{Status: holdfast.RunErrored, Reason: "StateLocked", Failure: &holdfast.Failure{
			Step: "plan", Summary: "Error acquiring the state lock", Cause: "StateLocked",
			Detail: fmt.Sprintf("Lock Info:\n  ID:        left-1\n  Who:       holdfast@vm\n  Created:   %s\n", created.UTC().Format("2006-01-02 15:04:05.999999999 -0700 MST")),
		}})
		return a
	}
	unlock := func(id string, force bool) error {
		_, err := f.unlockBackend("prod", id, force)
		return err
	}
	lockedBy(f.clock.Now().Add(30 * time.Minute)) // long after it died
	lock, err := f.backendLock("prod")
	if err != nil || lock.ID != "left-1" || lock.Who != "holdfast@vm" || lock.Dead != "" {
		t.Errorf("BackendLock() = %+v, %v", lock, err)
	}
	if err := unlock("left-1", false); refusedWith(err) != "StateLocked holdfast unlock prod --lock left-1 --force" {
		t.Errorf("a lock that may be a living engine's is released: %v", err)
	}
	lockedBy(made)
	if lock, err = f.backendLock("prod"); err != nil || lock.Dead != dead.Run {
		t.Errorf("BackendLock() = %+v, %v, want it left by %s", lock, err, dead.Run)
	}
	if err := unlock("other", false); refusedWith(err) != "StateLocked holdfast unlock prod --lock left-1" {
		t.Errorf("another lock is released: %v", err)
	}
	f.must(unlock("left-1", false))
	a := f.claim()
	if a.Kind != holdfast.RunState || a.State.Action != holdfast.StateUnlock || a.State.LockID != "left-1" {
		t.Fatalf("handed out is %+v", a)
	}
	if err := unlock("left-1", true); refusedWith(err) != "InProgress holdfast logs "+a.Run+" --follow" {
		t.Errorf("a lock is released while a run releases it: %v", err)
	}
	f.finish(a, protocol.Result{Status: holdfast.RunErrored, Reason: holdfast.CauseCredentials, Failure: &holdfast.Failure{
		Step: "unlock", Summary: "no valid credential sources found", Cause: holdfast.CauseCredentials,
	}})

	// It is not released by a run that could not, and there for one that comes after.
	f.open(2, map[string]string{"infra/prod/main.tf": module("three")})
	f.executeAll(func(a protocol.Assignment) protocol.Result {
		return protocol.Result{Status: holdfast.RunErrored, Reason: holdfast.CauseNoEngine, Failure: &holdfast.Failure{
			Step: "prepare", Summary: "no engine fits", Cause: holdfast.CauseNoEngine,
		}}
	})
	if lock, err = f.backendLock("prod"); err != nil || lock.ID != "left-1" || lock.Dead != dead.Run {
		t.Errorf("BackendLock() = %+v, %v, want it still left by %s", lock, err, dead.Run)
	}
	f.must(unlock("left-1", false))
	a = f.claim()
	f.finish(a, protocol.Result{Status: holdfast.RunApplied})
	if run, err := f.store.Run(t.Context(), a.Run); err != nil || run.Status != holdfast.RunApplied {
		t.Errorf("the unlock ended %s %+v, %v", run.Status, run.Failure, err)
	}
	if lock, err = f.backendLock("prod"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("BackendLock() = %+v, %v, after it was released", lock, err)
	}
}

// TestReleasedLock: a run that waits for the lock of a backend is handed out as soon as
// an agent has released that, and not when the pause is over. A failed release wakes
// nobody, and other pauses last.
func TestReleasedLock(t *testing.T) {
	t.Parallel()
	f := newFleet(t, foreignState(), func(opts *reconciler.Options) { opts.Limits.LockTimeout = time.Hour })
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.open(2, map[string]string{"infra/prod/main.tf": module("three")})
	refused := protocol.Result{Status: holdfast.RunErrored, Reason: holdfast.CauseStateLocked, Failure: &holdfast.Failure{
		Step: "plan", Summary: "Error acquiring the state lock", Cause: holdfast.CauseStateLocked, Transient: true,
		Detail: "Lock Info:\n  ID:        left-1\n  Who:       holdfast@vm\n",
	}}
	locked := f.claim()
	f.finish(locked, refused)
	throttled := f.claim()
	f.finish(throttled, transient(throttled))
	release := func(result protocol.Result) {
		t.Helper()
		job, err := f.unlockBackend("prod", "left-1", true)
		f.must(err)
		a := f.claim()
		if a.Run != job.ID {
			t.Fatalf("handed out is %+v", a)
		}
		f.finish(a, result)
	}
	release(protocol.Result{Status: holdfast.RunErrored, Reason: holdfast.CauseEngineFailed, Failure: &holdfast.Failure{Summary: "no such lock", Cause: holdfast.CauseEngineFailed}})
	if a := f.claim(); a.Run != "" {
		t.Fatalf("%s is handed out after a release that failed", a.Run)
	}
	release(protocol.Result{Status: holdfast.RunApplied})
	a := f.claim()
	if a.Run != locked.Run {
		t.Errorf("handed out is %q, want %q, which waits for the lock", a.Run, locked.Run)
	}

	// While it tries again, the release of another lock is refused, and that of this one
	// waits for its attempt.
	if _, err := f.unlockBackend("prod", "left-2", true); refusedWith(err) != "InProgress holdfast cancel "+a.Run {
		t.Errorf("a lock that the run may hold is released: %v", err)
	}
	job, err := f.unlockBackend("prod", "left-1", true)
	f.must(err)
	if other := f.claim(a.AttemptRef); other.Run != "" {
		t.Fatalf("%s is handed out beside %s", other.Run, a.Run)
	}
	f.finish(a, refused)
	if a = f.claim(); a.Run != job.ID {
		t.Fatalf("handed out is %q, want %q, which releases the lock", a.Run, job.ID)
	}
	f.finish(a, protocol.Result{Status: holdfast.RunApplied})
	if a = f.claim(); a.Run != locked.Run {
		t.Errorf("handed out is %q, want %q once its lock is released", a.Run, locked.Run)
	}
	f.finish(a, good(a))
	if a := f.claim(); a.Run != "" {
		t.Errorf("%s is handed out, whose pause has nothing to do with the lock", a.Run)
	}
}

// TestLockOfAnEarlierAttempt: the lock that an attempt has left which died is known to be
// Holdfast's own while its run is tried again, and waits for it.
func TestLockOfAnEarlierAttempt(t *testing.T) {
	t.Parallel()
	f := newFleet(t, foreignState(), func(opts *reconciler.Options) { opts.Limits.LockTimeout = time.Hour })
	f.adopt()
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	a := f.claim()
	made := f.clock.Now()
	f.clock.Advance(time.Minute)
	f.finish(a, protocol.Result{Status: holdfast.RunInterrupted, Reason: holdfast.ReasonAgentKilled})
	f.clock.Advance(time.Hour)
	again := f.claim()
	if again.Run != a.Run || again.Attempt != 2 {
		t.Fatalf("handed out is %+v, want the second attempt of %s", again.AttemptRef, a.Run)
	}
	f.finish(again, foundLocked(made))
	if run, err := f.store.Run(t.Context(), a.Run); err != nil || run.Status != holdfast.RunRetrying {
		t.Fatalf("the run is %s, %v", run.Status, err)
	}
	f.api("alice", holdfast.VerbPlan, "prod")
	branch := f.claim()
	f.finish(branch, foundLocked(made))
	lock, err := f.backendLock("prod")
	if err != nil || lock.Dead != a.Run || lock.Run != branch.Run {
		t.Errorf("BackendLock() = %+v, %v, want it left by an attempt of %s", lock, err, a.Run)
	}
	if _, err := f.unlockBackend("prod", "left-1", false); err != nil {
		t.Errorf("the lock is not released: %v", err)
	}
}

// foundLocked is the result of a run that came upon the lock left-1, made at that time.
func foundLocked(made time.Time) protocol.Result {
	return protocol.Result{Status: holdfast.RunErrored, Reason: holdfast.CauseStateLocked, Failure: &holdfast.Failure{
		Step: "plan", Summary: "Error acquiring the state lock", Cause: holdfast.CauseStateLocked, Transient: true,
		Detail: fmt.Sprintf("Lock Info:\n  ID:        left-1\n  Created:   %s\n", made.UTC().Format("2006-01-02 15:04:05.999999999 -0700 MST")),
	}}
}

// TestUnlockOfAPullRequest: the run that releases a lock of the tracked branch's state has
// the credentials for applies. It never has the root module, the document or the state of a
// pull request, and what a pull request's plan says of that lock makes nobody believe that
// it is ours. A lock of another state is released with the code that has that, as a plan.
func TestUnlockOfAPullRequest(t *testing.T) {
	t.Parallel()
	f := newFleet(t, foreignState())
	f.adopt()
	applied := f.newest("prod")
	f.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(good)
	f.merge(1, byMerge)
	dead := f.claim()
	made := f.clock.Now()
	f.clock.Advance(time.Minute)
	f.finish(dead, protocol.Result{Status: holdfast.RunInterrupted, Reason: holdfast.ReasonAgentKilled, Applying: true})
	f.executeAll(good)
	unlock := func(cluster string, force bool) (holdfast.Run, error) {
		return f.unlockBackend(cluster, "left-1", force)
	}

	f.open(2, map[string]string{
		"infra/prod/main.tf":  module("evil"),
		"clusters/prod.yaml":  strings.Replace(document("prod"), "spec:", "spec:\n  limits: {cpu: 1}", 1),
		"clusters/other.yaml": document("other"), "infra/other/main.tf": module("evil"), "infra/other/backend.tf": foreignState()["infra/prod/backend.tf"],
	})
	f.executeAll(func(a protocol.Assignment) protocol.Result {
		return foundLocked(made)
	})
	plan := f.newest("prod")
	lock, err := f.backendLock("prod")
	if err != nil || lock.Run != plan.ID || plan.PullRequest.Number != 2 || lock.Dead != "" {
		t.Fatalf("BackendLock() = %+v, %v, want it seen by the plan of the pull request, and left by nobody", lock, err)
	}
	if _, err := unlock("prod", false); refusedWith(err) != "StateLocked holdfast replan prod" {
		t.Errorf("a lock that only a pull request has seen is released: %v", err)
	}
	if _, err := unlock("other", true); !errors.Is(err, holdfast.ErrNotFound) { // its state is prod's: nobody plans it
		t.Errorf("a cluster is unlocked that was never planned: %v", err)
	}
	job, err := unlock("prod", true)
	f.must(err)
	switch {
	case job.Bundle == plan.Bundle || job.Document.Limits != applied.Document.Limits:
		t.Errorf("the job has the code of the pull request: %+v", job.RunSpec)
	case job.StateLocation != applied.StateLocation || !job.PullRequest.IsZero():
		t.Errorf("the job is of %s, at %q", job.PullRequest, job.StateLocation)
	}
	f.execute(good)

	f.api("alice", holdfast.VerbPlan, "prod")
	f.execute(func(protocol.Assignment) protocol.Result { return foundLocked(made) })
	f.push(2, map[string]string{"infra/prod/main.tf": module("three")})
	f.executeAll(func(a protocol.Assignment) protocol.Result { return foundLocked(made) })
	if lock, err = f.backendLock("prod"); err != nil || lock.Dead != dead.Run {
		t.Errorf("BackendLock() = %+v, %v, want it left by %s, as a run of the tracked branch has seen it, too", lock, err, dead.Run)
	}

	f.open(3, map[string]string{"infra/prod/backend.tf": strings.Replace(foreignState()["infra/prod/backend.tf"], `"k"`, `"mine"`, 1)})
	if a := f.claim(); a.Run != "" { // which would have its code find locks of another state
		t.Errorf("a %s of %s is handed out, with the state at %s", a.Kind, a.Cluster, a.StateLocation)
	}
}

// TestDestroyWaitsForALock: a destroy that was refused the lock of its backend is tried
// again; Git, which asked for it, still does.
func TestDestroyWaitsForALock(t *testing.T) {
	t.Parallel()
	f := newFleet(t, foreignState(), func(opts *reconciler.Options) { opts.Limits.LockTimeout = time.Hour })
	f.adopt()
	f.open(1, map[string]string{"clusters/prod.yaml": gitserver.Delete})
	f.executeAll(withEngine)
	f.merge(1, byMerge)
	destroy := f.claim()
	if destroy.Kind != holdfast.RunDestroy {
		t.Fatalf("the merge leads to a %q", destroy.Kind)
	}
	f.finish(destroy, protocol.Result{Status: holdfast.RunErrored, Reason: holdfast.CauseStateLocked, Failure: &holdfast.Failure{
		Step: "plan", Summary: "Error acquiring the state lock", Cause: holdfast.CauseStateLocked, Transient: true,
	}})
	f.look()
	if rec := f.cluster("prod"); rec.Waiting != holdfast.CauseStateLocked {
		t.Errorf("prod waits for %q (%s)", rec.Waiting, rec.WaitingDetail)
	}
	f.clock.Advance(time.Minute)
	if again := f.claim(); again.Run != destroy.Run || again.Attempt != 2 {
		t.Errorf("handed out is attempt %d of %q, want the second of %s: %v", again.Attempt, again.Run, destroy.Run, f.runs("prod"))
	}
}

// backendLock is what an API token of all projects sees of a lock, and unlockBackend has
// such a one release it.
func (f *fleet) backendLock(cluster string) (statelock.BackendLock, error) {
	return f.r.Rescue().BackendLock(f.t.Context(), cluster, nil)
}

func (f *fleet) unlockBackend(cluster, id string, force bool) (holdfast.Run, error) {
	return f.r.Rescue().UnlockBackend(f.t.Context(), statelock.BackendUnlock{Cluster: cluster, Lock: id, Actor: "ana", Force: force})
}

// forcedUnlock returns the run that releases a lock, whoever holds it.
func (f *fleet) forcedUnlock(cluster, id string) holdfast.Run {
	f.t.Helper()
	job, err := f.unlockBackend(cluster, id, true)
	f.must(err)
	return job
}

// refusedWith returns the reason and the command of a refusal.
func refusedWith(err error) string {
	var refused *holdfast.RefusedError
	if !errors.As(err, &refused) {
		return fmt.Sprintf("not refused: %v", err)
	}
	return string(refused.Reason) + " " + refused.Command
}
