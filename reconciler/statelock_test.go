//go:build !race

package reconciler_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/statelock"
)

// TestCrashesWithTheStateLocked has an apply's agent die while its engine holds
// the state's lock, and the server at each of its writes from then on: the next
// attempt gets the lock.
func TestCrashesWithTheStateLocked(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("begins again at every write")
	}
	base := newFleet(t, twoClusters())
	base.adopt()
	base.open(1, map[string]string{"infra/prod/main.tf": module("two")})
	base.executeAll(good)
	base.merge(1, byMerge)
	begun := base.claim()
	base.must(base.store.LockState(t.Context(), "clusters/prod", statelock.StateLock{ID: "dead", Who: "engine", By: begun.AttemptRef}))
	base.must(base.store.Close())
	writes := lockedCrash(base.copied(), begun, -1)
	if writes < 4 {
		t.Fatalf("the story has %d writes only", writes)
	}
	for n := range writes {
		lockedCrash(base.copied(), begun, n)
	}
}

func lockedCrash(f *fleet, begun protocol.Assignment, left int) (writes int) {
	f.t.Helper()
	c := &crashing{fleet: f, done: map[holdfast.AttemptRef]protocol.Result{}, made: map[string]bool{}}
	locked := map[holdfast.AttemptRef]bool{}
	c.before = func(a protocol.Assignment) {
		if !strings.HasPrefix(a.StateLocation, "clusters/prod") || locked[a.AttemptRef] {
			return
		}
		locked[a.AttemptRef] = true
		err := f.store.LockState(f.t.Context(), a.StateLocation, statelock.StateLock{ID: a.Run, Who: "engine", By: a.AttemptRef})
		if err != nil && !errors.Is(err, holdfast.ErrFenced) {
			f.t.Errorf("after a crash at write %d, %s, the next attempt does not get the state's lock: %v", left, c.store.last, err)
		}
	}
	c.begin(left)
	first := c.store
	for steps, idle := 0, 0; idle < 3; steps++ {
		if idle++; !c.step() {
			idle = 0
		}
		if steps > 60 {
			f.t.Fatalf("it never comes to rest after a crash at %s: %v", first.last, c.runs("prod"))
		}
	}
	dead, err := f.store.Run(f.t.Context(), begun.Run)
	f.must(err)
	if len(locked) == 0 || dead.Status != holdfast.RunInterrupted {
		f.t.Errorf("after a crash at write %d, %s, %d attempts followed, and the dead one is %s: %v", left, first.last, len(locked), dead.Status, c.runs("prod"))
	}
	if rec := c.cluster("prod"); rec.Waiting != "" {
		f.t.Errorf("after a crash at write %d, %s, it waits for %q: %v", left, first.last, rec.Waiting, c.runs("prod"))
	}
	return first.writes
}
