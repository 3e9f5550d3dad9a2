package datastore_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/statelock"
)

// leaveLock writes the state lock of an attempt past the store, as an older
// version left it when it was killed between two transactions.
func leaveLock(t testing.TB, path, location string, by holdfast.AttemptRef) {
	t.Helper()
	execute(t, path, `INSERT INTO state_locks (location, lock_id, operation, who, engine, created_at, info, run, attempt, fence)
		VALUES (?, 'left', 'OperationTypeApply', 'root@agent', '1.11.4', 0, '{}', ?, ?, ?)`, location, by.Run, by.Attempt, by.Fence)
}

// count returns what a query that counts returns, past the store.
func count(t testing.TB, path, query string) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestLocksLeftBehind: a lock whose attempt is over is free, however it came to
// stay.
func TestLocksLeftBehind(t *testing.T) {
	t.Parallel()
	for name, heal := range map[string]func(t *testing.T, path string, store *datastore.Store, next holdfast.Run){
		"at the start": func(t *testing.T, path string, store *datastore.Store, _ holdfast.Run) {
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			openAt(t, datastore.Options{Path: path})
		},
		"at a claim": func(t *testing.T, _ string, store *datastore.Store, next holdfast.Run) {
			must[holdfast.Run](t)(store.ClaimRun(t.Context(), next.ID, protocol.AgentRef{ID: "agent"}, noon, 0))
		},
		"by command": func(t *testing.T, _ string, store *datastore.Store, next holdfast.Run) {
			for _, want := range []bool{true, false} {
				if got := must[bool](t)(store.ReleaseStateLock(t.Context(), next.StateLocation)); got != want {
					t.Errorf("ReleaseStateLock() = %t, want %t", got, want)
				}
			}
		},
		"by an attempt": func(t *testing.T, path string, store *datastore.Store, next holdfast.Run) {
			run := must[holdfast.Run](t)(store.ClaimRun(t.Context(), next.ID, protocol.AgentRef{ID: "agent"}, noon, 0))
			leaveLock(t, path, next.StateLocation, holdfast.AttemptRef{Run: newRun(1).ID, Attempt: 1, Fence: 1})
			if err := store.LockState(t.Context(), next.StateLocation, statelock.StateLock{ID: "mine", By: run.Ref()}); err != nil {
				t.Errorf("LockState() = %v", err)
			}
			if err := store.UnlockState(t.Context(), next.StateLocation, "mine", run.Ref()); err != nil {
				t.Errorf("UnlockState() = %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(memory.Dir(t), "holdfast.db")
			store := openAt(t, datastore.Options{Path: path})
			dead := newRun(1)
			dead.StateLocation = "clusters/a"
			dead = claim(t, store, dead)
			living := newRun(2)
			living.Cluster, living.StateLocation = "b", "clusters/b"
			living = claim(t, store, living)
			if err := store.LockState(t.Context(), "clusters/b", statelock.StateLock{ID: "held", By: living.Ref()}); err != nil {
				t.Fatal(err)
			}
			end(t, store, dead, holdfast.RunInterrupted)
			leaveLock(t, path, "clusters/a", dead.Ref())
			next := newRun(3)
			next.StateLocation = "clusters/a"
			if err := store.CreateRun(t.Context(), next); err != nil {
				t.Fatal(err)
			}
			heal(t, path, store, next)
			if n := count(t, path, `SELECT COUNT(*) FROM state_locks WHERE location = 'clusters/a'`); n != 0 {
				t.Error("the lock of the dead attempt is still there")
			}
			if n := count(t, path, `SELECT COUNT(*) FROM state_locks WHERE location = 'clusters/b'`); n != 1 {
				t.Error("the lock of the living attempt is gone")
			}
		})
	}
}

// TestEndAttemptWithResources: what a run has found is stored with its end, or not at all.
func TestEndAttemptWithResources(t *testing.T) {
	t.Parallel()
	store := openAt(t, datastore.Options{Path: filepath.Join(memory.Dir(t), "holdfast.db")})
	run := claim(t, store, newRun(1))
	found := func() (addresses []string) {
		for _, r := range must[[]holdfast.Resource](t)(store.Resources(t.Context(), holdfast.ResourceFilter{Cluster: run.Cluster})) {
			addresses = append(addresses, r.Address)
		}
		return addresses
	}
	if err := store.SaveResources(t.Context(), run.Cluster, []holdfast.Resource{{Address: "x.old", Type: "x"}}); err != nil {
		t.Fatal(err)
	}
	now := []holdfast.Resource{{Address: "x.new", Type: "x"}}
	run.Status = holdfast.RunApplied
	stale := run.Ref()
	stale.Fence--
	if _, err := store.EndAttempt(t.Context(), stale, run, now); !errors.Is(err, holdfast.ErrFenced) || !slices.Equal(found(), []string{"x.old"}) {
		t.Errorf("EndAttempt() of another attempt = %v, and there is %v", err, found())
	}
	if _, err := store.EndAttempt(t.Context(), run.Ref(), run, now); err != nil || !slices.Equal(found(), []string{"x.new"}) {
		t.Errorf("EndAttempt() = %v, and there is %v", err, found())
	}
	next := newRun(2)
	next.Cluster = run.Cluster
	next = claim(t, store, next)
	next.Status = holdfast.RunErrored
	if _, err := store.EndAttempt(t.Context(), next.Ref(), next, nil); err != nil || !slices.Equal(found(), []string{"x.new"}) {
		t.Errorf("EndAttempt() without resources = %v, and there is %v", err, found())
	}
}

// TestEndUnlocked: an attempt that holds its state's lock may still be writing.
func TestEndUnlocked(t *testing.T) {
	t.Parallel()
	store := openAt(t, datastore.Options{Path: filepath.Join(memory.Dir(t), "holdfast.db")})
	run := claim(t, store, newRun(1))
	if err := store.LockState(t.Context(), run.StateLocation, statelock.StateLock{ID: "l", By: run.Ref()}); err != nil {
		t.Fatal(err)
	}
	dead := func(ctx context.Context) error {
		run := must[holdfast.Run](t)(store.Run(ctx, run.ID))
		run.Status = holdfast.RunInterrupted
		_, err := store.EndUnlocked(ctx, run.Ref(), run, nil)
		return err
	}
	if err := dead(t.Context()); !errors.Is(err, holdfast.ErrLocked) {
		t.Fatalf("EndUnlocked() of an attempt that holds the lock = %v, want ErrLocked", err)
	}
	if got := must[holdfast.Run](t)(store.Run(t.Context(), run.ID)); got.Status != holdfast.RunRunning {
		t.Errorf("the run is %s after it", got.Status)
	}
	if err := store.UnlockState(t.Context(), run.StateLocation, "l", run.Ref()); err != nil {
		t.Fatal(err)
	}
	if err := dead(t.Context()); err != nil {
		t.Errorf("EndUnlocked() of one that holds none = %v", err)
	}
}

// TestEndSilent: an attempt that another server has heard of meanwhile does not end, and one
// that writes may still be executed while it holds its state's lock.
func TestEndSilent(t *testing.T) {
	t.Parallel()
	ctx, store := t.Context(), openAt(t, datastore.Options{Path: filepath.Join(memory.Dir(t), "holdfast.db")})
	for i, kind := range []holdfast.RunKind{holdfast.RunPlan, holdfast.RunApply} {
		run := newRun(i)
		run.Kind = kind
		run = claim(t, store, run)
		heard := run.HeartbeatAt
		if err := store.LockState(ctx, run.StateLocation, statelock.StateLock{ID: "l", By: run.Ref()}); err != nil {
			t.Fatal(err)
		}
		end := func(heard time.Time) error {
			run := must[holdfast.Run](t)(store.Run(ctx, run.ID))
			run.Status = holdfast.RunInterrupted
			_, err := store.EndSilent(ctx, run.Ref(), run, nil, heard)
			return err
		}
		beat := heard.Add(time.Second)
		must[holdfast.Run](t)(store.Beat(ctx, run.Ref(), "plan", beat))
		if err := end(heard); !errors.Is(err, holdfast.ErrHeard) {
			t.Errorf("EndSilent() of a %s that was heard of = %v, want ErrHeard", kind, err)
		}
		if err := end(beat); errors.Is(err, holdfast.ErrLocked) != kind.Writes() || (err == nil) == kind.Writes() {
			t.Errorf("EndSilent() of a silent %s that holds its state's lock = %v", kind, err)
		}
	}
}
