package rescue

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// lockSlack is how far the clocks of an agent and of the server may be apart when
// a lock is held against the time of an attempt.
const lockSlack = time.Minute

// runsLooked is how many of a cluster's runs are looked through for a lock.
const runsLooked = 50

// BackendLock returns the lock of a cluster's own backend that a run found
// last; ErrNotFound if the newest run that has ended did not find one.
func (k *Keeper) BackendLock(ctx context.Context, cluster string) (holdfast.BackendLock, error) {
	lock, _, err := k.backendLock(ctx, cluster)
	return lock, err
}

func (k *Keeper) backendLock(ctx context.Context, cluster string) (holdfast.BackendLock, []holdfast.Run, error) {
	runs, err := k.opts.Store.Runs(ctx, holdfast.RunFilter{Cluster: cluster, Limit: runsLooked})
	if err != nil {
		return holdfast.BackendLock{}, nil, fmt.Errorf("list runs of %q: %w", cluster, err)
	}
	for _, run := range runs {
		lock, ok := holdfast.LockOf(run)
		if !ok && !run.Status.Done() {
			continue // it has not come so far
		}
		if !ok {
			break
		}
		tried, err := k.tried(ctx, runs)
		lock.Dead = deadHolder(lock, tried)
		return lock, runs, err
	}
	return holdfast.BackendLock{}, runs, fmt.Errorf("lock of the backend of %q: %w", cluster, holdfast.ErrNotFound)
}

// tried are runs and, of those that were tried again, the attempts before the last one, as
// if each were a run: an attempt that died may have left a lock that the next one waits for.
func (k *Keeper) tried(ctx context.Context, runs []holdfast.Run) ([]holdfast.Run, error) {
	tried := slices.Clone(runs)
	for _, run := range runs {
		if run.Attempt < 2 {
			continue
		}
		attempts, err := k.opts.Store.Attempts(ctx, run.ID)
		if err != nil {
			return nil, fmt.Errorf("list attempts of run %s: %w", run.ID, err)
		}
		for _, a := range attempts {
			if a.Attempt < run.Attempt {
				tried = append(tried, holdfast.Run{
					ID: run.ID, Status: a.Status, StartedAt: a.ClaimedAt, FinishedAt: a.EndedAt,
					RunOutcome: holdfast.RunOutcome{Failure: &holdfast.Failure{Cause: a.Reason}},
				})
			}
		}
	}
	return tried, nil
}

// mayLeaveLock reports whether a run that is over may not have released its lock: its
// engine died, or did not reach the backend.
func mayLeaveLock(run holdfast.Run) bool {
	if run.Status == holdfast.RunInterrupted {
		return true
	}
	left := []holdfast.Reason{
		holdfast.CauseStateUnsaved, holdfast.CauseStateBackend,
		holdfast.ReasonAgentKilled, holdfast.ReasonEngineKilled, holdfast.ReasonLeaseLost, // attempts that were followed by another
	}
	return run.Failure != nil && slices.Contains(left, run.Failure.Cause)
}

// deadHolder is the run of ours that died while the lock was made; empty if there
// is none. Clocks differ: of several that may be it, it is the one whose time is
// nearest to the lock's.
func deadHolder(lock holdfast.BackendLock, runs []holdfast.Run) string {
	if lock.Created.IsZero() {
		return ""
	}
	nearest, off := "", lockSlack
	for _, run := range runs {
		if !mayLeaveLock(run) {
			continue
		}
		// How far the lock is outside of the run's time; zero: it was made within it.
		if d := max(run.StartedAt.Sub(lock.Created), lock.Created.Sub(run.FinishedAt), 0); d < off {
			nearest, off = run.ID, d
		}
	}
	return nearest
}

// UnlockBackend queues the run that has the engine release a lock of a cluster's
// own backend (force-unlock), by its ID. ErrConflict, with the reason in its text,
// if a run is running that may hold it, or if it is not the lock that a run found and
// that a dead run of ours has left; force passes over the latter. The release waits for
// the attempt of a run that was refused this very lock, and goes before the next one.
func (k *Keeper) UnlockBackend(ctx context.Context, cluster, id, actor string, force bool) (holdfast.Run, error) {
	lock, runs, err := k.backendLock(ctx, cluster)
	if err != nil && !force {
		return holdfast.Run{}, &holdfast.RefusedError{Text: "no run has found the state locked: an administrator can release a lock with --force"}
	}
	var from string
	for _, run := range runs {
		switch {
		case run.Status == holdfast.RunRunning && !awaits(run, id):
			return run, &holdfast.RefusedError{
				Reason: holdfast.ReasonInProgress, Command: "holdfast cancel " + run.ID,
				Text: fmt.Sprintf("run %s is running, and may hold it: cancel it first", run.ID),
			}
		case holdfast.OwnState(run.StateLocation):
			return run, &holdfast.RefusedError{Text: "its state is in Holdfast's own backend, where a lock ends with its run"}
		case from == "" && run.Attempt > 0 && run.Kind != holdfast.RunState:
			from = run.ID
		}
	}
	switch {
	case from == "":
		return holdfast.Run{}, &holdfast.RefusedError{Reason: holdfast.ReasonNothingPlanned, Text: "no run of it says which backend it has: plan it first"}
	case force:
	case lock.ID != id:
		return holdfast.Run{}, lockRefusal(cluster, lock.ID,
			fmt.Sprintf("run %s found lock %s, and not this one: an administrator can release another with --force", lock.Run, lock.ID))
	case lock.Dead == "":
		return holdfast.Run{}, lockRefusal(cluster, id+" --force", fmt.Sprintf(
			"no dead run of Holdfast's is known to have made lock %s: %s may be alive; an administrator can release it with --force", id, cmp.Or(lock.Who, "its holder")))
	}
	run, err := k.jobOf(ctx, from, actor)
	if err != nil {
		return run, err
	}
	run.State.Action, run.State.LockID, run.Reason = holdfast.StateUnlock, id, holdfast.ReasonRequested
	entry := holdfast.NewAuditEntry(k.opts.Now(), actor, "state.unlock", cluster,
		fmt.Sprintf("%s releases lock %s of the backend, force %t, dead run %q", run.ID, id, force, lock.Dead))
	if err := k.opts.Store.CreateRun(ctx, run, entry); err != nil {
		return run, fmt.Errorf("queue the unlock: %w", err)
	}
	k.opts.Fleet.Queued(ctx)
	return run, nil
}

// awaits reports whether a run that is executed was refused a lock before, which so is
// somebody else's: engines give each lock an ID of its own.
func awaits(run holdfast.Run, lock string) bool {
	found, ok := holdfast.LockOf(run)
	return ok && found.ID == lock && !run.LockedSince.IsZero()
}

// lockRefusal refuses to release a lock of a backend that somebody else may hold.
func lockRefusal(cluster, lock, text string) error {
	return &holdfast.RefusedError{
		Reason: holdfast.CauseStateLocked, Command: "holdfast unlock " + cluster + " --lock " + lock, Text: text,
	}
}
