package rescue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/history"
	"github.com/holdfast-dev/holdfast/statelock"
	"github.com/holdfast-dev/holdfast/templates/location"
)

// lockSlack is how far the clocks of an agent and of the server may be apart when
// a lock is held against the time of an attempt.
const lockSlack = time.Minute

// runsLooked is how many of a cluster's runs are looked through for a lock.
const runsLooked = 50

// sighting is a lock of a cluster's own backend that a run has found, and what releases it.
type sighting struct {
	statelock.BackendLock
	in   holdfast.Run   // that found it
	runs []holdfast.Run // of the cluster, newest first
	by   releaser
}

// releaser is what a lock is released with.
type releaser struct {
	from holdfast.Run     // whose root module, engine, and project's credentials
	kind holdfast.RunKind // RunState: with those for applies; RunUnlock: with those for plans
}

// BackendLock returns the lock of a cluster's own backend that a run found last;
// ErrNotFound if none has found one, or if it is gone: a later run has got the lock, or
// has released it. Locks that are released with code of runs that the caller may not see
// are left out.
func (k *Keeper) BackendLock(ctx context.Context, cluster string, sees statelock.SeesRun) (statelock.BackendLock, error) {
	seen, err := k.look(ctx, statelock.BackendUnlock{Cluster: cluster, Sees: sees})
	if err == nil && seen.ID == "" {
		err = fmt.Errorf("lock of the backend of %q: %w", cluster, holdfast.ErrNotFound)
	}
	return seen.BackendLock, err
}

// look returns the lock that somebody asks about, as the last run that found it has seen
// it: the one with the ID or, without an ID, the one that was found last. It has no ID if
// no run has found any.
func (k *Keeper) look(ctx context.Context, ask statelock.BackendUnlock) (sighting, error) {
	seen := sighting{}
	runs, err := k.opts.Store.Runs(ctx, holdfast.RunFilter{Cluster: ask.Cluster, Limit: runsLooked})
	if err != nil {
		return seen, fmt.Errorf("list runs of %q: %w", ask.Cluster, err)
	}
	runs = lockedAt(runs)
	branch, err := k.branch(ctx, ask.Cluster)
	if err != nil {
		return seen, err
	}
	for _, one := range sightings(runs) {
		if one.by = releaserOf(one, branch); seen.ID != "" && !one.rather(seen, ask.Lock) {
			continue
		}
		if sees, err := visible(ctx, ask, one.by.from); err != nil {
			return seen, err
		} else if len(sees) > 0 {
			seen = one
		}
	}
	seen.runs = runs
	if seen.ID == "" || seen.by.kind == holdfast.RunState && !seen.in.PullRequest.IsZero() {
		return seen, nil // whoever may open a pull request has written what its plan says
	}
	tried, err := k.tried(ctx, runs)
	seen.Dead = deadHolder(seen, tried)
	return seen, err
}

// lockedAt are runs with the state whose lock they have found, or may hold. Of one that moves a
// state that is the new place, which no other run uses, unless it got no further than its first
// plan, which is made at the current one.
func lockedAt(runs []holdfast.Run) []holdfast.Run {
	runs = slices.Clone(runs)
	for i := range runs {
		if !runs[i].State.Migrates() {
			continue
		}
		move, failure := runs[i].State.Move, runs[i].Failure
		runs[i].StateLocation = move.To
		if failure != nil && failure.Step == "plan" && !move.Copied {
			runs[i].StateLocation = move.From
		}
	}
	return runs
}

// mayLockAt reports whether a run takes the lock of a state: one that moves a state takes both.
func mayLockAt(run holdfast.Run, state string) bool {
	if run.State.Migrates() {
		move := run.State.Move
		return location.Same(move.To, state) || !move.Copied && location.Same(move.From, state)
	}
	return location.Same(run.StateLocation, state)
}

// rather reports whether a lock is the one that is asked about rather than another, which
// was found later: it alone has the ID, or both have it and this is of the tracked branch's
// state. Code of a pull request may print any ID.
func (s sighting) rather(than sighting, id string) bool {
	if s.ID != id || than.ID != id {
		return s.ID == id
	}
	return s.by.kind == holdfast.RunState && than.by.kind != holdfast.RunState
}

// branch returns the newest runs of a cluster's tracked branch that have their own root
// module.
func (k *Keeper) branch(ctx context.Context, cluster string) ([]holdfast.Run, error) {
	runs, err := history.Branch(ctx, k.opts.Store, cluster)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(runs, func(run holdfast.Run) bool { return run.Attempt == 0 }), nil // nobody has executed it
}

// releaserOf returns what a lock is released with: the newest run of the tracked branch that
// has the state where the lock was seen, back to the last one that began to apply. Where none
// has that state, as only a pull request has it, it is the run that found the lock, which may
// do no more than it could: whoever wrote that code could have released it.
func releaserOf(seen sighting, branch []holdfast.Run) releaser {
	for _, run := range branch {
		if location.Same(run.StateLocation, seen.in.StateLocation) {
			return releaser{run, holdfast.RunState}
		}
		if run.Kind.Writes() && run.Begun {
			break
		}
	}
	if m := seen.in.State; m.Migrates() && location.Same(m.Move.To, seen.in.StateLocation) { // its root module is what was applied, with the new place
		return releaser{seen.in, holdfast.RunState}
	}
	return releaser{seen.in, holdfast.RunUnlock}
}

// visible are those of some runs that the caller may see.
func visible(ctx context.Context, ask statelock.BackendUnlock, runs ...holdfast.Run) ([]holdfast.Run, error) {
	if ask.Sees == nil {
		return runs, nil
	}
	var seen []holdfast.Run
	for _, run := range runs {
		if sees, err := ask.Sees(ctx, run); err != nil {
			return nil, fmt.Errorf("look who sees run %s: %w", run.ID, err)
		} else if sees {
			seen = append(seen, run)
		}
	}
	return seen, nil
}

// sightings are the locks that runs have found, unless they are known to be gone: the last
// one of each state, the one that was found last first. As a run of the tracked branch has
// seen it, if one has, since ID and time of a lock come from the backend that the run's code
// names. A run that never got as far as the lock says nothing of it. Of one state no two
// attempts are executed at once: a run that was made later may have been executed before
// another one.
func sightings(runs []holdfast.Run) []sighting {
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, func(a, b holdfast.Run) int { return b.HeartbeatAt.Compare(a.HeartbeatAt) })
	var list []sighting
	free := map[string]bool{}        // locations of states at which older locks are gone
	released := map[[2]string]bool{} // locks, by location and ID
	at := map[string]int{}           // by location: its index in the list
	for _, run := range runs {
		lock, ok := statelock.Of(run)
		state := location.Written(run.StateLocation)
		i, seen := at[state]
		switch {
		case !ok && run.State.Unlocks():
			gone := [2]string{state, run.State.LockID}
			released[gone] = run.Status == holdfast.RunApplied || released[gone]
		case !ok:
			free[state] = free[state] || hadLock(run)
		case free[state]:
		case released[[2]string{state, lock.ID}]:
			free[state] = true // and so is what was found before it
		case !seen:
			at[state] = len(list)
			list = append(list, sighting{BackendLock: lock, in: run})
		case list[i].ID == lock.ID && run.PullRequest.IsZero() && !list[i].in.PullRequest.IsZero():
			list[i] = sighting{BackendLock: lock, in: run}
		}
	}
	return list
}

// hadLock reports whether a run's engine has got the state's lock, which so was free: the
// run ended well, or not before a step that comes after its plan. A run that resolves a
// state waits before it asks for the lock.
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
// engine died, perhaps because we killed it, or did not reach the backend.
func mayLeaveLock(run holdfast.Run) bool {
	if run.State.Unlocks() {
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
	return slices.Contains([]string{"plan", "validate", "apply", "push"}, step)
}

// deadHolder is the run of ours that died while the lock was made, of those with the
// state in which it was seen; empty if there is none. Clocks differ: among several
// candidates, it is the one whose time is nearest to the lock's.
func deadHolder(lock sighting, runs []holdfast.Run) string {
	if lock.Created.IsZero() {
		return ""
	}
	nearest, off := "", lockSlack
	for _, run := range runs {
		if !mayLockAt(run, lock.in.StateLocation) || !mayLeaveLock(run) {
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
// own backend (force-unlock), by its ID, or returns the one that is queued. ErrConflict, with
// the reason in its text, if a run is running that may hold it, or if it is not the lock that a
// run found and that a dead run of ours has left; force passes over the latter. ErrNotFound if
// nothing is known of the cluster. The release waits for the attempt of a run that was refused
// this very lock, and goes before the next one.
func (k *Keeper) UnlockBackend(ctx context.Context, ask statelock.BackendUnlock) (holdfast.Run, error) {
	seen, err := k.look(ctx, ask)
	if err != nil {
		return holdfast.Run{}, err
	}
	running, err := k.running(ctx, ask, seen)
	if err != nil {
		return holdfast.Run{}, err
	}
	if shown, err := visible(ctx, ask, running...); err != nil {
		return holdfast.Run{}, err
	} else if len(shown) > 0 {
		return shown[0], inTheWay(shown[0])
	}
	by := seen.by
	if seen.ID != ask.Lock {
		if by, err = k.unseen(ctx, ask, seen); err != nil {
			return holdfast.Run{}, err
		}
	}
	if !ask.Force {
		if err := released(ask, seen); err != nil {
			return holdfast.Run{}, err
		}
	}
	if len(running) > 0 { // who asks sees the lock, and not the run
		return holdfast.Run{}, &holdfast.RefusedError{
			Reason: holdfast.ReasonInProgress, Text: "a run of another project is running, and may hold it: wait for its end",
		}
	}
	for _, run := range seen.runs {
		if run.State.Unlocks() && run.Status.Pending() && run.State.LockID == ask.Lock && run.State.From == by.from.ID {
			return run, nil
		}
	}
	return k.queueUnlock(ctx, ask, by, seen.Dead)
}

// queueUnlock stores the run that releases a lock.
func (k *Keeper) queueUnlock(ctx context.Context, ask statelock.BackendUnlock, by releaser, dead string) (holdfast.Run, error) {
	run, err := k.jobOf(by.from, by.kind, ask.Actor)
	if err != nil {
		return run, err
	}
	run.State.Action, run.State.LockID, run.Reason = holdfast.StateUnlock, ask.Lock, holdfast.ReasonRequested
	entry := holdfast.NewAuditEntry(k.opts.Now(), ask.Actor, "state.unlock", ask.Cluster,
		fmt.Sprintf("%s releases lock %s of the backend with the code of %s, force %t, dead run %q", run.ID, ask.Lock, by.from.ID, ask.Force, dead))
	if err := k.opts.Store.CreateRun(ctx, run, entry); err != nil {
		return run, fmt.Errorf("queue the unlock: %w", err)
	}
	k.opts.Fleet.Queued(ctx)
	return run, nil
}

// running returns the runs of a cluster that are executed and may hold a lock, whoever may
// see them: not those that are known to have another state.
func (k *Keeper) running(ctx context.Context, ask statelock.BackendUnlock, seen sighting) ([]holdfast.Run, error) {
	running, err := k.opts.Store.Runs(ctx, holdfast.RunFilter{Cluster: ask.Cluster, Statuses: []holdfast.RunStatus{holdfast.RunRunning}})
	if err != nil {
		return nil, fmt.Errorf("list running runs of %q: %w", ask.Cluster, err)
	}
	return slices.DeleteFunc(lockedAt(running), func(run holdfast.Run) bool {
		elsewhere := seen.ID == ask.Lock && !location.Same(run.StateLocation, seen.in.StateLocation)
		return elsewhere || awaits(run, ask.Lock)
	}), nil
}

// inTheWay refuses to release a lock that a run which is executed may hold, or releases.
func inTheWay(run holdfast.Run) error {
	refused := &holdfast.RefusedError{
		Reason: holdfast.ReasonInProgress, Command: "holdfast cancel " + run.ID,
		Text: fmt.Sprintf("run %s is running, and may hold it: cancel it first", run.ID),
	}
	if run.State.Unlocks() {
		refused.Command = "holdfast logs " + run.ID + " --follow"
		refused.Text = fmt.Sprintf("run %s is releasing the lock %s: wait for its end", run.ID, run.State.LockID)
	}
	return refused
}

// unseen returns what releases a lock that no run has found: the tracked branch's newest
// run. Code of a pull request releases only a lock that it has found.
func (k *Keeper) unseen(ctx context.Context, ask statelock.BackendUnlock, seen sighting) (releaser, error) {
	branch, err := k.branch(ctx, ask.Cluster)
	if err == nil {
		branch, err = visible(ctx, ask, branch...)
	}
	switch {
	case err != nil:
		return releaser{}, err
	case len(branch) > 0 && holdfast.OwnState(branch[0].StateLocation):
		return releaser{}, &holdfast.RefusedError{Text: "its state is in Holdfast's own backend, where a lock ends with its run"}
	case len(branch) > 0:
		return releaser{branch[0], holdfast.RunState}, nil
	case seen.ID != "":
		return releaser{}, another(ask, seen, "")
	}
	command, err := k.planCommand(ctx, ask, seen.runs)
	if err != nil {
		return releaser{}, err
	}
	return releaser{}, &holdfast.RefusedError{
		Reason: holdfast.ReasonNothingPlanned, Command: command,
		Text: "no run has found the state locked, or says which backend it has: plan it first",
	}
}

// planCommand is the command that plans a cluster: on its tracked branch or, if that does not
// have it, in the newest pull request of runs. ErrNotFound if neither has it.
func (k *Keeper) planCommand(ctx context.Context, ask statelock.BackendUnlock, runs []holdfast.Run) (string, error) {
	_, err := k.opts.Store.Cluster(ctx, ask.Cluster)
	if err == nil {
		return "holdfast replan " + ask.Cluster, nil
	} else if !errors.Is(err, holdfast.ErrNotFound) {
		return "", fmt.Errorf("read cluster %q: %w", ask.Cluster, err)
	}
	runs, errSeen := visible(ctx, ask, runs...)
	if len(runs) == 0 {
		return "", cmp.Or(errSeen, err)
	}
	if pr := runs[0].PullRequest; !pr.IsZero() {
		return "holdfast replan " + pr.String() + " -c " + ask.Cluster, nil
	}
	return "holdfast replan " + ask.Cluster, nil
}

// released is an error unless the lock with that ID is known to be left by a dead run of
// ours.
func released(ask statelock.BackendUnlock, seen sighting) error {
	switch {
	case seen.ID == "":
		return &holdfast.RefusedError{Text: "no run has found the state locked: an administrator can release a lock with --force"}
	case seen.ID != ask.Lock:
		return another(ask, seen, ": an administrator can release another with --force")
	case seen.by.kind == holdfast.RunState && !seen.in.PullRequest.IsZero():
		return &holdfast.RefusedError{
			Reason: holdfast.CauseStateLocked, Command: "holdfast replan " + ask.Cluster,
			Text: fmt.Sprintf("only run %s, a plan of a pull request, has found lock %s: plan the tracked branch, which finds it as well if it is there; an administrator can release it with --force", seen.Run, ask.Lock),
		}
	case seen.Dead == "":
		return lockRefusal(ask.Cluster, ask.Lock+" --force", fmt.Sprintf(
			"no dead run of Holdfast's is known to have made lock %s: %s may be alive; an administrator can release it with --force", ask.Lock, holder(seen)))
	default:
		return nil
	}
}

// another refuses to release another lock than the one that was found.
func another(ask statelock.BackendUnlock, seen sighting, more string) error {
	return lockRefusal(ask.Cluster, seen.ID,
		fmt.Sprintf("run %s found lock %s of %s, and not this one%s", seen.Run, seen.ID, holder(seen), more))
}

// holder is who holds a lock, as far as its backend says.
func holder(seen sighting) string { return cmp.Or(seen.Who, "an unnamed holder") }

// awaits reports whether a run that is executed was refused a lock before, which so is
// somebody else's: engines give each lock its own ID.
func awaits(run holdfast.Run, lock string) bool {
	found, ok := statelock.Of(run)
	return ok && found.ID == lock && !run.LockedSince.IsZero()
}

// lockRefusal refuses to release a lock of a backend that somebody else may hold.
func lockRefusal(cluster, lock, text string) error {
	return &holdfast.RefusedError{
		Reason: holdfast.CauseStateLocked, Command: "holdfast unlock " + cluster + " --lock " + lock, Text: text,
	}
}
