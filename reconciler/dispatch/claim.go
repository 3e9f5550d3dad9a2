package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// Claim hands a run to an agent. It waits up to req.Wait for one and is
// ErrNotFound if there is none by then, an *holdfast.AgentTakenError if another
// living process has the agent's id, an *holdfast.AgentIsolationError if it isolates
// engines less than Limits.Isolation demands.
func (d *Dispatcher) Claim(ctx context.Context, req holdfast.ClaimRequest) (holdfast.Assignment, error) {
	if err := (roll{d}).hear(ctx, req); err != nil {
		return holdfast.Assignment{}, err
	}
	defer d.waits(req.Agent)()
	doubtful, err := d.reap(ctx, req)
	if err != nil {
		return holdfast.Assignment{}, err
	}
	if err := d.refusal(req); err != nil {
		return holdfast.Assignment{}, err
	}
	deadline := time.NewTimer(min(req.Wait, 30*time.Second))
	defer deadline.Stop()
	for {
		if doubtful {
			if doubtful, err = d.reap(ctx, req); err != nil {
				return holdfast.Assignment{}, err
			}
		}
		woken := d.work.Wait() // before the look: a run that is queued after it wakes the claim
		a, some, err := d.look(ctx, req)
		if !errors.Is(err, holdfast.ErrNotFound) {
			return a, err
		}
		select {
		case <-woken:
		case <-lookAgain(some || doubtful):
		case <-deadline.C:
			return a, err
		case <-ctx.Done():
			return a, ctx.Err()
		}
	}
}

// look is claim where some run that the agent executes is queued; else it is an ErrNotFound.
// Each run that is queued or ends wakes all agents that wait, and to most of them it is
// nothing: that is found out by one query instead of nine.
func (d *Dispatcher) look(ctx context.Context, req holdfast.ClaimRequest) (a holdfast.Assignment, some bool, err error) {
	some, err = d.opts.Store.AnyQueued(ctx, holdfast.ClaimFilter{Kinds: claimKinds(req), Projects: req.Projects, Runner: req.Runner})
	if err != nil {
		return a, some, fmt.Errorf("look at the queue: %w", err)
	}
	if !some {
		return a, some, holdfast.ErrNotFound
	}
	a, err = d.claim(ctx, req)
	return a, some, err
}

// claimPause is the time between two looks at a queue from which nothing could be
// handed out: a backoff or a provider's break may end, or a lock, without a word.
const claimPause = time.Second

// lookAgain is when a claim that got nothing looks again without being woken. Where no run
// that the agent executes is queued, not even one that may not be claimed yet, none is to be
// expected: who queues one wakes those that wait, and the agent's next claim looks in any case.
func lookAgain(expected bool) <-chan time.Time {
	if !expected {
		return nil
	}
	return time.After(claimPause)
}

// claimableLooked is how many claimable runs are tried, each of another state:
// more than can be locked by others for a moment.
const claimableLooked = 16

// handout is how a Dispatcher hands a run out, to an agent or to what is launched for it.
type handout struct{ *Dispatcher }

// claim claims a run, and prepares it for the agent.
func (d *Dispatcher) claim(ctx context.Context, req holdfast.ClaimRequest) (holdfast.Assignment, error) {
	claimed, err := handout{d}.claimRun(ctx, req)
	if err != nil {
		return holdfast.Assignment{}, err
	}
	// The run is the agent's now. If that has hung up meanwhile its lease ends,
	// and the run continues elsewhere: it is not the run that has failed.
	return d.begin(context.WithoutCancel(ctx), claimed)
}

// claimRun tries the claimable runs in their order. The lock is taken before the
// record, so that a run that was claimed always had the lock. If nothing can be handed
// out, it looks again past the pull requests whose plans this agent does not get: they
// must not keep others waiting.
func (d handout) claimRun(ctx context.Context, req holdfast.ClaimRequest) (holdfast.Run, error) {
	unplanned := d.forks.unplanned(req.Isolation)
	for more := true; more && !d.draining.Load(); {
		filter, share, some, err := d.claimFilter(ctx, req)
		if err != nil || !some {
			return holdfast.Run{}, cmp.Or(err, holdfast.ErrNotFound)
		}
		filter.Unplanned = slices.Clone(unplanned)
		ids, err := d.opts.Store.Claimable(ctx, filter)
		if err != nil {
			return holdfast.Run{}, fmt.Errorf("list claimable runs: %w", err)
		}
		more = false
		for _, id := range ids {
			claimed, err := d.claimOne(ctx, id, req, filter.Now, share)
			if other := (*notIsolatedError)(nil); errors.As(err, &other) && !slices.Contains(unplanned, other.pr) {
				unplanned, more = append(unplanned, other.pr), true
			}
			if errors.Is(err, holdfast.ErrConflict) || errors.Is(err, holdfast.ErrDamaged) {
				continue // what is damaged is in the log, and keeps nobody else waiting
			} else if err != nil {
				return holdfast.Run{}, err
			}
			return claimed, nil
		}
	}
	return holdfast.Run{}, holdfast.ErrNotFound
}

// claimOne makes a run running; ErrConflict if that cannot be now, or if somebody else
// is about to claim it: two claims of a run would have one name as the owner of its
// lock, and the one that fails would let go what is the other's. Its record is read only
// here: of those that could be claimed instead, none is.
func (d *Dispatcher) claimOne(
	ctx context.Context, id string, req holdfast.ClaimRequest, now time.Time, share share,
) (claimed holdfast.Run, err error) {
	err = d.alone(ctx, []string{"claim:" + id}, func() error {
		run, err := d.opts.Store.Run(ctx, id)
		if errors.Is(err, holdfast.ErrNotFound) {
			return holdfast.ErrConflict
		} else if err != nil {
			return fmt.Errorf("read run %s: %w", id, err)
		}
		if err := d.forks.admit(ctx, run, req.Isolation); err != nil {
			return err
		}
		claimed, err = d.claimAlone(ctx, run, claimant(req, run), now, share.most(run))
		return err
	})
	return claimed, err
}

func (d *Dispatcher) claimAlone(
	ctx context.Context, run holdfast.Run, agent holdfast.AgentRef, now time.Time, most int,
) (claimed holdfast.Run, err error) {
	if stopped, err := d.opts.Fleet.Stopped(ctx, run); err != nil {
		return run, err
	} else if stopped || !d.breakers.admits(run.Document.Provider, run.ID) {
		return run, holdfast.ErrConflict
	}
	defer func() {
		if err != nil {
			d.breakers.withdraw(run.Document.Provider, run.ID)
		}
	}()
	owner := holdfast.AttemptRef{Run: run.ID, Attempt: run.Attempt + 1}.Owner()
	switch err := d.opts.Locker.Acquire(ctx, run.StateKey(), owner, d.opts.Limits.Lease); {
	case errors.Is(err, holdfast.ErrLocked):
		d.opts.Metrics.LockRefused()
		return run, holdfast.ErrConflict
	case err != nil:
		return run, fmt.Errorf("lock %s: %w", run.StateKey(), err)
	}
	err = d.withinCap(ctx, run, func() error {
		claimed, err = d.opts.Store.ClaimRun(ctx, run.ID, agent, now, most)
		return err
	})
	if err != nil {
		if !d.lost(ctx, run, err) {
			_ = d.opts.Locker.Release(context.WithoutCancel(ctx), run.StateKey(), owner) // else its lease expires
		}
		return run, fmt.Errorf("claim run %s: %w", run.ID, err)
	}
	return claimed, nil
}

// lost reports whether another claim of the same run came first, as this one took too
// long. The lock is that one's then: it has the same owner, as the attempt is the same.
func (d *Dispatcher) lost(ctx context.Context, run holdfast.Run, err error) bool {
	if !errors.Is(err, holdfast.ErrConflict) {
		return false
	}
	now, err := d.opts.Store.Run(ctx, run.ID)
	return err == nil && now.Status == holdfast.RunRunning && now.Attempt == run.Attempt+1
}

// claimant is who a run is handed to: the process that asks, or what a runner will start for
// the attempt.
func claimant(req holdfast.ClaimRequest, run holdfast.Run) holdfast.AgentRef {
	if req.Agent != "" {
		return req.Ref()
	}
	return holdfast.AgentRef{
		ID: holdfast.LaunchAgent(req.Runner, holdfast.AttemptRef{Run: run.ID, Attempt: run.Attempt + 1}), Runner: req.Runner,
	}
}

// claimKinds are the kinds of runs that an agent may be handed; none: all.
func claimKinds(req holdfast.ClaimRequest) []holdfast.RunKind {
	if len(req.Kinds) == 0 {
		return nil
	}
	return withJobs(req.Kinds)
}

// withJobs are kinds of runs, and those that the same agents execute, too.
func withJobs(kinds []holdfast.RunKind) []holdfast.RunKind {
	all := slices.Clone(kinds)
	for _, job := range []holdfast.RunKind{holdfast.RunState, holdfast.RunUnlock} {
		if slices.Contains(kinds, job.AgentKind()) && !slices.Contains(kinds, job) {
			all = append(all, job)
		}
	}
	return all
}

// claimFilter says which runs may be handed out now, and in which order: not those of
// providers that need a break, nor of providers, projects and runners that have as many runs
// as they may, and no more drift checks than there may be. It is false if there can be
// none.
func (d *Dispatcher) claimFilter(ctx context.Context, req holdfast.ClaimRequest) (holdfast.ClaimFilter, share, bool, error) {
	kinds, now := claimKinds(req), d.opts.Now()
	running, lately, err := d.opts.Store.Served(ctx, now)
	if err != nil {
		return holdfast.ClaimFilter{}, share{}, false, fmt.Errorf("list running runs: %w", err)
	}
	of, err := d.shares.of(ctx, running)
	if err != nil {
		return holdfast.ClaimFilter{}, of, false, err
	}
	load := loadOf(running)
	if most, err := d.places.mostOf(ctx, req.Runner); err != nil || most > 0 && load.runners[req.Runner] >= most {
		return holdfast.ClaimFilter{}, of, false, err
	}
	filter := holdfast.ClaimFilter{
		Now: now, Kinds: kinds, Projects: req.Projects, Runner: req.Runner, Providers: d.breakers.held(), Limit: claimableLooked,
		Turns: decision.NewTurns(now, running, lately), Unread: d.opts.Fleet.Awaited(),
	}
	for provider := range d.opts.Limits.Provider {
		if d.opts.Limits.providerFull(load, provider) && !slices.Contains(filter.Providers, provider) {
			filter.Providers = append(filter.Providers, provider)
		}
	}
	slices.Sort(filter.Providers)
	for project := range load.projects {
		if d.opts.Limits.projectFull(load, project) {
			filter.Capped = append(filter.Capped, project)
		}
	}
	of.limits(&filter)
	filter.NoFirst = d.opts.Limits.firstAt(lately).After(now)
	if load.drift < d.opts.Limits.Drift {
		return filter, of, true, nil
	}
	if len(kinds) == 0 {
		kinds = withJobs(holdfast.AgentKinds())
	}
	filter.Kinds = slices.DeleteFunc(slices.Clone(kinds), func(k holdfast.RunKind) bool { return k == holdfast.RunDrift })
	return filter, of, len(filter.Kinds) > 0, nil
}

// capLease bounds for how long a claim that dies keeps others of its run, or of its
// provider, waiting.
const capLease = 5 * time.Second

// withinCap calls claim while the provider, the project and the runner of run have fewer runs
// than they may, or, for a drift check, fewer of those run than may at once, or it is time for
// another first plan, and nobody else claims one of it; else it is an ErrConflict.
func (d *Dispatcher) withinCap(ctx context.Context, run holdfast.Run, claim func() error) error {
	provider, project, check := run.Document.Provider, run.Document.Project, run.Kind == holdfast.RunDrift
	first := d.opts.Limits.First > 0 && paced(run)
	var keys []string
	if _, capped := d.opts.Limits.Provider[provider]; capped && provider != "" {
		keys = append(keys, "provider:"+provider)
	}
	if d.opts.Limits.Project > 0 {
		keys = append(keys, "project:"+project)
	}
	most, err := d.places.mostOf(ctx, run.RunnerName())
	if err != nil {
		return err
	}
	if most > 0 {
		keys = append(keys, "runner:"+run.RunnerName())
	}
	if check {
		keys = append(keys, "drift")
	}
	if first {
		keys = append(keys, "first")
	}
	if len(keys) == 0 {
		return claim()
	}
	return d.alone(ctx, keys, func() error {
		now := d.opts.Now()
		running, lately, err := d.opts.Store.Served(ctx, now)
		if err != nil {
			return fmt.Errorf("list running runs: %w", err)
		}
		load := loadOf(running)
		if first && d.opts.Limits.firstAt(lately).After(now) {
			return holdfast.ErrConflict
		}
		if d.opts.Limits.providerFull(load, provider) || d.opts.Limits.projectFull(load, project) || check && load.drift >= d.opts.Limits.Drift ||
			most > 0 && load.runners[run.RunnerName()] >= most {
			return holdfast.ErrConflict
		}
		return claim()
	})
}

// alone does something while nobody else does it who names one of the same keys; it
// is an ErrConflict if somebody does.
func (d *Dispatcher) alone(ctx context.Context, keys []string, do func() error) error {
	owner := holdfast.NewID("claim", d.opts.Now())
	for _, key := range keys {
		switch err := d.opts.Locker.Acquire(ctx, key, owner, capLease); {
		case errors.Is(err, holdfast.ErrLocked):
			return holdfast.ErrConflict
		case err != nil:
			return fmt.Errorf("lock %s: %w", key, err)
		}
		defer func() { _ = d.opts.Locker.Release(context.WithoutCancel(ctx), key, owner) }() // else its lease expires
	}
	return do()
}

// begin records what the attempt starts from and makes its assignment.
func (d *Dispatcher) begin(ctx context.Context, run holdfast.Run) (holdfast.Assignment, error) {
	d.renewals.confirmed(run.ID)
	a, run, err := handout{d}.assignment(ctx, run)
	if err == nil {
		handout{d}.claimed(ctx, run)
	}
	return a, err
}

// claimed has everybody told of a run that was claimed.
func (d handout) claimed(ctx context.Context, run holdfast.Run) {
	d.opts.Metrics.RunClaimed(run.Kind, run.StartedAt.Sub(run.CreatedAt))
	d.opts.Logger.InfoContext(ctx, "run was claimed", "run", run.ID, "attempt", run.Attempt,
		"cluster", run.Cluster, "kind", run.Kind, "agent", run.Agent)
	d.opts.Fleet.Changed(ctx, run)
}

// assignment is what an attempt needs to know.
func (d handout) assignment(ctx context.Context, run holdfast.Run) (holdfast.Assignment, holdfast.Run, error) {
	a, run, err := d.opts.Fleet.Assignment(ctx, run)
	if err != nil {
		// Nothing has started. The run ends with what is wrong, for all to see.
		_, endErr := d.end(ctx, run.Ref(), run, holdfast.Result{
			Status: holdfast.RunErrored, Reason: holdfast.CauseAssignment,
			Failure: &holdfast.Failure{Step: "prepare", Summary: err.Error(), Cause: holdfast.CauseAssignment},
		}, d.opts.Store.EndAttempt)
		if endErr != nil {
			return a, run, fmt.Errorf("%w; end run %s: %w", err, run.ID, endErr)
		}
		return a, run, holdfast.ErrNotFound
	}
	a.AttemptRef, a.Token = run.Ref(), d.token(run.Ref())
	a.Deadline, a.Lease = d.opts.Now().Add(d.opts.Limits.Timeout), d.opts.Limits.Lease
	return a, run, nil
}
