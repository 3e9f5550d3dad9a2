package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler"
	"github.com/holdfast-dev/holdfast/statelock"
)

// freshAt are the files of a cluster whose state is in somebody else's bucket.
func freshAt(key string) map[string]string {
	return map[string]string{
		"clusters/fresh.yaml": document("fresh", "state: {type: s3, bucket: b, key: "+key+", region: r}"), "infra/fresh/main.tf": module(key),
	}
}

// claimAs hands the next run to an agent that executes these kinds of runs.
func (f *fleet) claimAs(kinds ...holdfast.RunKind) protocol.Assignment {
	f.t.Helper()
	a, err := f.r.Dispatcher().Claim(f.t.Context(), protocol.ClaimRequest{Agent: "agent-" + string(kinds[0]), Kinds: kinds})
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		f.t.Fatal(err)
	}
	return a
}

// foundLock is what foundLocked returns for a lock with that ID.
func foundLock(id string, made time.Time) protocol.Result {
	result := foundLocked(made)
	result.Failure.Detail = strings.Replace(result.Failure.Detail, "left-1", id, 1)
	return result
}

// TestUnlockOfAProposedCluster: the lock that the first plan of a cluster has left, which
// only a pull request has, is released with the pull request's code: as a plan, by whoever
// may plan, and after no living run. The plan that waits for it is made at once.
func TestUnlockOfAProposedCluster(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters(), func(opts *reconciler.Options) {
		opts.Limits.LockTimeout = time.Hour
		opts.Grants.Credentials = func(_ holdfast.Cluster, kind holdfast.RunKind) (protocol.Credentials, error) {
			return protocol.Credentials{Env: map[string]string{"APPLIES": strconv.FormatBool(kind.Writes())}}, nil
		}
	})
	f.adopt()
	f.open(1, freshAt("one"))
	died := f.claim()
	made := f.clock.Now()
	f.clock.Advance(time.Minute)
	if _, err := f.unlockBackend("fresh", "left-1", true); refusedWith(err) != "InProgress holdfast cancel "+died.Run {
		t.Errorf("a lock is released while a run is running: %v", err)
	}
	f.finish(died, protocol.Result{Status: holdfast.RunInterrupted, Reason: holdfast.ReasonAgentKilled})
	if _, err := f.unlockBackend("fresh", "left-1", true); refusedWith(err) != "NothingPlanned holdfast replan infra#1 -c fresh" {
		t.Errorf("a lock is released that no run has found: %v", err)
	}
	f.clock.Advance(time.Hour)
	f.finish(f.claim(), foundLocked(made))

	lock, err := f.backendLock("fresh")
	if err != nil || lock.ID != "left-1" || lock.Dead != died.Run {
		t.Errorf("BackendLock() = %+v, %v, want it left by an attempt of %s", lock, err, died.Run)
	}
	if _, err := f.unlockBackend("fresh", "other", true); refusedWith(err) != "StateLocked holdfast unlock fresh --lock left-1" {
		t.Errorf("another lock is released: %v", err)
	}
	job, err := f.unlockBackend("fresh", "left-1", false)
	f.must(err)
	plan, err := f.store.Run(t.Context(), died.Run)
	f.must(err)
	if job.Kind != holdfast.RunUnlock || job.PullRequest != plan.PullRequest || job.Revision != plan.Revision ||
		job.Bundle != plan.Bundle || job.StateLocation != plan.StateLocation || job.State.LockID != "left-1" {
		t.Errorf("the job is %+v of %s at %q, want it to have the code of %s", job.State, job.PullRequest, job.StateLocation, plan.ID)
	}
	if a := f.claimAs(holdfast.RunApply, holdfast.RunDestroy); a.Run != "" {
		t.Errorf("an agent for applies gets %s, code of a pull request", a.Run)
	}
	a := f.claimAs(holdfast.RunPlan, holdfast.RunDrift)
	if a.Run != job.ID || a.Env["APPLIES"] != "false" || a.State == nil || a.State.Action != holdfast.StateUnlock {
		t.Fatalf("an agent for plans gets %+v", a)
	}
	f.finish(a, protocol.Result{Status: holdfast.RunApplied})
	if a = f.claimAs(holdfast.RunPlan); a.Run != plan.ID {
		t.Fatalf("handed out is %q, want %q, which waits for the lock", a.Run, plan.ID)
	}
	f.finish(a, good(a))
	f.post()
	if got := f.forge.status(f.forge.get(1).Head, holdfast.ContextPlan); got != holdfast.StatusSuccess {
		t.Errorf("%s is %q in the end: %v", holdfast.ContextPlan, got, f.runs("fresh"))
	}
	if lock, err = f.backendLock("fresh"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("BackendLock() = %+v, %v, after it was released", lock, err)
	}
}

// TestUnlockSeesNoOtherRuns: who does not see the run whose code would release a lock learns
// nothing of that, and does not release it.
func TestUnlockSeesNoOtherRuns(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.open(1, freshAt("one"))
	f.executeAll(func(protocol.Assignment) protocol.Result { return foundLocked(noon) })
	for name, c := range map[string]struct {
		project string
		found   bool
	}{"of its project": {"p", true}, "of another": {"another", false}} {
		sees := func(_ context.Context, run holdfast.Run) (bool, error) { return run.Document.Project == c.project, nil }
		if lock, err := f.r.Rescue().BackendLock(t.Context(), "fresh", sees); (err == nil) != c.found || !c.found && !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("a token %s sees %+v, %v", name, lock, err)
		}
		ask := statelock.BackendUnlock{Cluster: "fresh", Lock: "left-1", Actor: "ana", Force: true, Sees: sees}
		if job, err := f.r.Rescue().UnlockBackend(t.Context(), ask); (err == nil) != c.found || !c.found && !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("a token %s releases it: %s, %v", name, job.ID, err)
		}
	}
	if job, err := f.unlockBackend("nobody", "left-1", true); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("the lock of a cluster that there is not: %s, %v", job.ID, err)
	}
}

// TestUnlockOfTwoPullRequests: each lock is released with the code that has found it.
func TestUnlockOfTwoPullRequests(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.open(1, freshAt("one"))
	f.open(2, freshAt("two"))
	plans := map[string]holdfast.Run{} // by the lock that they have found
	f.executeAll(func(a protocol.Assignment) protocol.Result {
		run, err := f.store.Run(t.Context(), a.Run)
		f.must(err)
		id := fmt.Sprintf("left-by-%d", run.PullRequest.Number)
		plans[id] = run
		return foundLock(id, f.clock.Now())
	})
	if len(plans) != 2 {
		t.Fatalf("there are plans of %v", plans)
	}
	for id, plan := range plans {
		job, err := f.unlockBackend("fresh", id, true)
		f.must(err)
		if job.PullRequest != plan.PullRequest || job.Revision != plan.Revision || job.Bundle != plan.Bundle || job.StateLocation != plan.StateLocation {
			t.Errorf("%s is released with code of %s at %q, want %s at %q", id, job.PullRequest, job.StateLocation, plan.PullRequest, plan.StateLocation)
		}
	}
}

// TestUnlockOfWhatTheBranchHad: the lock of a cluster that was on the tracked branch and never
// applied is released with that code, also when its document is gone.
func TestUnlockOfWhatTheBranchHad(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	maps.Copy(files, freshAt("one"))
	f := newFleet(t, files)
	f.look()
	f.executeAll(func(a protocol.Assignment) protocol.Result {
		if a.Cluster == "fresh" {
			return foundLocked(f.clock.Now())
		}
		return good(a)
	})
	plan := f.newest("fresh")
	unlock := func(when string) {
		t.Helper()
		job, err := f.unlockBackend("fresh", "left-1", true)
		if err != nil || job.Kind != holdfast.RunState || job.Bundle != plan.Bundle {
			t.Errorf("%s: the job is of kind %q and has the code of %+v, %v", when, job.Kind, job.State, err)
		}
	}
	unlock("before it is applied")
	f.repo.Commit(master, "remove", map[string]string{"clusters/fresh.yaml": gitserver.Delete})
	f.look()
	unlock("once it is removed")
}
