package rescue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/location"
)

// lockSlack is how far the clocks of an agent and of the server may be apart when
// a lock is held against the time of an attempt.
const lockSlack = time.Minute

// runsLooked is how many of a cluster's runs are looked through for a lock.
const runsLooked = 50

// sighting is a lock of a cluster's own backend that a run has found.
type sighting struct {
	holdfast.BackendLock
	in   holdfast.Run   // that found it
	runs []holdfast.Run // of the cluster, newest first
}

// BackendLock returns the lock of a cluster's own backend that a run found
// last; ErrNotFound if none has found one, or if it is gone: a later run has got the
// lock, or has released it.
func (k *Keeper) BackendLock(ctx context.Context, cluster string) (holdfast.BackendLock, error) {
	seen, err := k.backendLock(ctx, cluster)
	return seen.BackendLock, err
}

func (k *Keeper) backendLock(ctx context.Context, cluster string) (sighting, error) {
	runs, err := k.opts.Store.Runs(ctx, holdfast.RunFilter{Cluster: cluster, Limit: runsLooked})
	if err != nil {
		return sighting{}, fmt.Errorf("list runs of %q: %w", cluster, err)
	}
	seen := lastSeen(runs)
	if seen.ID == "" {
		return seen, fmt.Errorf("lock of the backend of %q: %w", cluster, holdfast.ErrNotFound)
	}
	if !seen.in.PullRequest.IsZero() {
		return seen, nil // whoever may open a pull request has written what its plan says
	}
	tried, err := k.tried(ctx, runs)
	seen.Dead = deadHolder(seen, tried)
	return seen, err
}

// lastSeen is the lock that was found by the newest of the runs that found one, unless it
// is known to be gone: as a run of the tracked branch has seen it, if one has, since ID
// and time of a lock are the words of the backend that the run's code names. A run that
// never got as far as the lock says nothing of it.
func lastSeen(runs []holdfast.Run) sighting {
	seen := sighting{runs: runs}
	free := map[string]bool{}     // locations of states at which older locks are gone
	released := map[string]bool{} // locks, by ID
	for _, run := range runs {
		lock, ok := holdfast.LockOf(run)
		state := location.Written(run.StateLocation)
		switch {
		case !ok && releases(run):
			released[run.State.LockID] = run.Status == holdfast.RunApplied || released[run.State.LockID]
		case !ok:
			free[state] = free[state] || hadLock(run)
		case free[state]:
		case released[lock.ID]:
			free[state] = true // and so is what was found before it
		case seen.ID == "" || seen.ID == lock.ID:
			seen.BackendLock, seen.in = lock, run
			if run.PullRequest.IsZero() {
				return seen
			}
		}
	}
	return seen
}

// releases reports whether a run is there to release a lock.
func releases(run holdfast.Run) bool {
	return run.State != nil && run.State.Action == holdfast.StateUnlock
}

// hadLock reports whether a run's engine has got the state's lock, which so was free: the
// run ended well, or not before a step that comes after its plan. One that puts a state
// right waits before it asks for the lock.
func hadLock(run holdfast.Run) bool {
	if run.Status.Done() && run.Status.Good() {
		return true
	}
	return run.Kind != holdfast.RunState && run.Failure != nil &&
		slices.Contains([]string{"show", "wait", "apply", "outputs"}, run.Failure.Step)
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
					ID: run.ID, Kind: run.Kind, Status: a.Status, StartedAt: a.ClaimedAt, FinishedAt: a.EndedAt,
					RunSpec:    holdfast.RunSpec{StateLocation: run.StateLocation, State: run.State},
					RunOutcome: holdfast.RunOutcome{Failure: &holdfast.Failure{Cause: a.Reason}},
				})
			}
		}
	}
	return tried, nil
}

// mayLeaveLock reports whether a run that is over may not have released its lock: its
// engine died, also by our hand, or did not reach the backend.
func mayLeaveLock(run holdfast.Run) bool {
	if releases(run) {
		return false // it takes none
	}
	if run.Status == holdfast.RunInterrupted {
		return true
	}
	left := []holdfast.Reason{
		holdfast.CauseStateUnsaved, holdfast.CauseStateBackend, holdfast.CauseInternal,
		holdfast.ReasonAgentKilled, holdfast.ReasonEngineKilled, holdfast.ReasonLeaseLost, // attempts that were followed by another
	}
	f := run.Failure
	return f != nil && (slices.Contains(left, f.Cause) || f.Crashed && takesLock(f.Step))
}

// takesLock reports whether the engine of a step locks the state.
func takesLock(step string) bool {
	return slices.Contains([]string{"plan", "apply", "push"}, step)
}

// deadHolder is the run of ours that died while the lock was made, of those with the
// state in which it was seen; empty if there is none. Clocks differ: of several that may
// be it, it is the one whose time is nearest to the lock's.
func deadHolder(lock sighting, runs []holdfast.Run) string {
	if lock.Created.IsZero() {
		return ""
	}
	nearest, off := "", lockSlack
	for _, run := range runs {
		if !location.Same(run.StateLocation, lock.in.StateLocation) || !mayLeaveLock(run) {
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
	seen, err := k.backendLock(ctx, cluster)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return holdfast.Run{}, err
	}
	for _, run := range seen.runs {
		if run.Status == holdfast.RunRunning && !awaits(run, id) {
			return run, &holdfast.RefusedError{
				Reason: holdfast.ReasonInProgress, Command: "holdfast cancel " + run.ID,
				Text: fmt.Sprintf("run %s is running, and may hold it: cancel it first", run.ID),
			}
		}
	}
	from, err := k.unlocker(ctx, cluster, id, seen)
	if err != nil {
		return from, err
	}
	if !force {
		if err := released(cluster, id, seen); err != nil {
			return holdfast.Run{}, err
		}
	}
	run, err := k.jobOf(ctx, from.ID, actor)
	if err != nil {
		return run, err
	}
	run.State.Action, run.State.LockID, run.Reason = holdfast.StateUnlock, id, holdfast.ReasonRequested
	entry := holdfast.NewAuditEntry(k.opts.Now(), actor, "state.unlock", cluster,
		fmt.Sprintf("%s releases lock %s of the backend, force %t, dead run %q", run.ID, id, force, seen.Dead))
	if err := k.opts.Store.CreateRun(ctx, run, entry); err != nil {
		return run, fmt.Errorf("queue the unlock: %w", err)
	}
	k.opts.Fleet.Queued(ctx)
	return run, nil
}

// unlocker returns the run whose root module, credentials and engine release a lock: the
// newest of the tracked branch or, if that has its state elsewhere than where the lock was
// seen, what was applied last.
func (k *Keeper) unlocker(ctx context.Context, cluster, id string, seen sighting) (holdfast.Run, error) {
	branch, err := k.opts.Store.Runs(ctx, holdfast.RunFilter{
		Cluster: cluster, PullRequest: &holdfast.PullRequestRef{}, Limit: runsLooked,
		Kinds: []holdfast.RunKind{holdfast.RunPlan, holdfast.RunApply, holdfast.RunDestroy},
	})
	if err != nil {
		return holdfast.Run{}, fmt.Errorf("list runs of %q: %w", cluster, err)
	}
	var newest holdfast.Run
	for _, run := range branch {
		if run.Attempt == 0 {
			continue // it has no root module that anybody has executed
		}
		if newest.ID == "" {
			newest = run
		}
		if holdfast.OwnState(run.StateLocation) {
			return run, &holdfast.RefusedError{Text: "its state is in Holdfast's own backend, where a lock ends with its run"}
		}
		if seen.ID != id || location.Same(run.StateLocation, seen.in.StateLocation) {
			return run, nil
		}
		if run.Kind.Writes() {
			break
		}
	}
	if newest.ID == "" {
		return newest, &holdfast.RefusedError{
			Reason: holdfast.ReasonNothingPlanned, Command: "holdfast replan " + cluster,
			Text: "no run of the tracked branch says which backend it has: plan it first; if only a pull request has the cluster, release the lock yourself, with the engine's force-unlock",
		}
	}
	return seen.in, &holdfast.RefusedError{Reason: holdfast.CauseStateLocked, Text: fmt.Sprintf(
		"run %s found lock %s in the state %q, and the tracked branch uses %q: release it yourself, with the engine's force-unlock",
		seen.in.ID, id, seen.in.StateLocation, newest.StateLocation)}
}

// released is an error unless the lock with that ID is known to be one that a dead run of
// ours has left.
func released(cluster, id string, seen sighting) error {
	switch {
	case seen.ID == "":
		return &holdfast.RefusedError{Text: "no run has found the state locked: an administrator can release a lock with --force"}
	case seen.ID != id:
		return lockRefusal(cluster, seen.ID,
			fmt.Sprintf("run %s found lock %s, and not this one: an administrator can release another with --force", seen.Run, seen.ID))
	case !seen.in.PullRequest.IsZero():
		return &holdfast.RefusedError{
			Reason: holdfast.CauseStateLocked, Command: "holdfast replan " + cluster,
			Text: fmt.Sprintf("only run %s, a plan of a pull request, has found lock %s: plan the tracked branch, which finds it as well if it is there; an administrator can release it with --force", seen.Run, id),
		}
	case seen.Dead == "":
		return lockRefusal(cluster, id+" --force", fmt.Sprintf(
			"no dead run of Holdfast's is known to have made lock %s: %s may be alive; an administrator can release it with --force", id, cmp.Or(seen.Who, "its holder")))
	default:
		return nil
	}
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
