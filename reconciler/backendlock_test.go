package reconciler_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
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
	f.finish(dead, holdfast.Result{Status: holdfast.RunInterrupted, Reason: holdfast.ReasonAgentKilled, Applying: true})
	if _, err := f.r.Rescue().BackendLock(t.Context(), "prod"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("BackendLock() before anybody came upon one = %v", err)
	}
	lockedBy := func(created time.Time) holdfast.Assignment {
		f.clock.Advance(time.Hour)
		f.settle()
		f.api("alice", holdfast.VerbPlan, "prod")
		a := f.claim()
		if a.Run == "" {
			t.Fatalf("nothing is handed out: %v", f.runs("prod"))
		}
		f.finish(a, holdfast.Result{Status: holdfast.RunErrored, Reason: "StateLocked", Failure: &holdfast.Failure{
			Step: "plan", Summary: "Error acquiring the state lock", Cause: "StateLocked",
			Detail: fmt.Sprintf("Lock Info:\n  ID:        left-1\n  Who:       holdfast@vm\n  Created:   %s\n", created.UTC().Format("2006-01-02 15:04:05.999999999 -0700 MST")),
		}})
		return a
	}
	unlock := func(id string, force bool) error {
		_, err := f.r.Rescue().UnlockBackend(t.Context(), "prod", id, "ana", force)
		return err
	}
	lockedBy(f.clock.Now().Add(30 * time.Minute)) // long after it died
	lock, err := f.r.Rescue().BackendLock(t.Context(), "prod")
	if err != nil || lock.ID != "left-1" || lock.Who != "holdfast@vm" || lock.Dead != "" {
		t.Errorf("BackendLock() = %+v, %v", lock, err)
	}
	if err := unlock("left-1", false); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("a lock that may be a living engine's is released: %v", err)
	}
	lockedBy(made)
	if lock, err = f.r.Rescue().BackendLock(t.Context(), "prod"); err != nil || lock.Dead != dead.Run {
		t.Errorf("BackendLock() = %+v, %v, want it left by %s", lock, err, dead.Run)
	}
	if err := unlock("other", false); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("another lock is released: %v", err)
	}
	f.must(unlock("left-1", false))
	a := f.claim()
	if a.Kind != holdfast.RunState || a.State.Action != holdfast.StateUnlock || a.State.LockID != "left-1" {
		t.Fatalf("handed out is %+v", a)
	}
	if err := unlock("left-1", true); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("a lock is released while a run is running: %v", err)
	}
	f.finish(a, holdfast.Result{Status: holdfast.RunApplied})
	if run, err := f.store.Run(t.Context(), a.Run); err != nil || run.Status != holdfast.RunApplied {
		t.Errorf("the unlock ended %s %+v, %v", run.Status, run.Failure, err)
	}
}
