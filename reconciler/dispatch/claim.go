package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

// Claim hands a run to an agent. It waits up to req.Wait for one and is
// ErrNotFound if there is none by then, a *protocol.AgentTakenError if another
// living process has the agent's id, a *protocol.AgentIsolationError if it isolates
// engines less than Limits.Isolation demands.
func (d *Dispatcher) Claim(ctx context.Context, req protocol.ClaimRequest) (protocol.Assignment, error) {
	if err := (roll{d}).hear(ctx, req); err != nil {
		return protocol.Assignment{}, err
	}
	defer d.waits(req.Agent)()
	doubtful, err := d.reap(ctx, req)
	if err != nil {
		return protocol.Assignment{}, err
	}
	if err := d.refusal(req); err != nil {
		return protocol.Assignment{}, err
	}
	place, leave := handout{d}.place(req)
	defer leave()
	until := time.Now().Add(min(req.Wait, 30*time.Second))
	for {
		patience := max(0, time.Until(until))
		if doubtful {
			patience = min(patience, claimPause)
		}
		var a protocol.Assignment
		run, err := handout{d}.claimRun(ctx, place, req, patience)
		if err == nil {
			// The run is the agent's now. If that has hung up meanwhile its lease ends,
			// and the run continues elsewhere: it is not the run that has failed.
			a, err = d.begin(context.WithoutCancel(ctx), run)
		}
		if !errors.Is(err, holdfast.ErrNotFound) || !time.Now().Before(until) {
			return a, err
		}
		if doubtful {
			if doubtful, err = d.reap(ctx, req); err != nil {
				return a, err
			}
		}
	}
}

// claimPause is the time between two looks at a queue from which nothing could be handed out,
// and in which something waits.
const claimPause = time.Second

// handout is how a Dispatcher hands a run out, to an agent or to what is launched for it.
type handout struct{ *Dispatcher }

// claimRun claims the first run that it can, of those that looks at the queue find for a
// place; ErrNotFound if there is none until patience is over. The lock is taken before the
// record, so that a run that was claimed always had the lock.
func (d handout) claimRun(
	ctx context.Context, place *queue.Place[candidate], req protocol.ClaimRequest, patience time.Duration,
) (holdfast.Run, error) {
	until := time.Now().Add(patience)
	for miss := queue.MissNone; ; {
		found, some, err := place.Next(ctx, max(0, time.Until(until)), miss)
		if err != nil || !some {
			return holdfast.Run{}, cmp.Or(err, holdfast.ErrNotFound)
		}
		run, err := d.claimOne(ctx, found, req)
		if miss = missOf(err); miss == queue.MissNone {
			return run, err
		}
	}
}

// claimOne makes a run running; ErrConflict if that cannot be now, or if somebody else
// is about to claim it: two claims of a run would have one name as the owner of its
// lock, and the one that fails would release the other's lock. Its record is read only
// here: of those that could be claimed instead, none is.
func (d handout) claimOne(ctx context.Context, c candidate, req protocol.ClaimRequest) (claimed holdfast.Run, err error) {
	defer d.counters.given.add(c.run, -1)
	err = d.alone(ctx, []string{"claim:" + c.run}, func() error {
		run, err := d.opts.Store.Run(ctx, c.run)
		if errors.Is(err, holdfast.ErrNotFound) || err == nil && run.Status != holdfast.RunQueued && run.Status != holdfast.RunRetrying {
			return errTaken
		} else if err != nil {
			return fmt.Errorf("read run %s: %w", c.run, err)
		}
		if err := d.forks.admit(ctx, run, req.Isolation); err != nil {
			return err
		}
		claimed, err = d.claimAlone(ctx, run, claimant(req, run), c.now, c.share.most(run))
		return err
	})
	return claimed, err
}

func (d handout) claimAlone(
	ctx context.Context, run holdfast.Run, agent protocol.AgentRef, now time.Time, most int,
) (claimed holdfast.Run, err error) {
	if stopped, err := d.opts.Fleet.Stopped(ctx, run); err != nil {
		return run, err
	} else if stopped {
		return run, holdfast.ErrConflict
	}
	if admitted, err := d.breakers.Admits(ctx, run.Document.Provider, run.ID); err != nil {
		return run, err
	} else if !admitted {
		return run, holdfast.ErrConflict
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.breakers.Withdraw(ctx, run.Document.Provider, run.ID))
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
		if d.lost(ctx, run, err) {
			err = errTaken
		} else {
			_ = d.opts.Locker.Release(context.WithoutCancel(ctx), run.StateKey(), owner) // otherwise its lease expires
		}
		return run, fmt.Errorf("claim run %s: %w", run.ID, err)
	}
	return claimed, nil
}

// lost reports whether another claim of the same run came first, as this one took too
// long. The lock is that one's then: it has the same owner, as the attempt is the same.
func (d handout) lost(ctx context.Context, run holdfast.Run, err error) bool {
	if !errors.Is(err, holdfast.ErrConflict) {
		return false
	}
	now, err := d.opts.Store.Run(ctx, run.ID)
	return err == nil && now.Status == holdfast.RunRunning && now.Attempt == run.Attempt+1
}

// claimant is who a run is handed to: the process that asks, or what a runner will start for
// the attempt.
func claimant(req protocol.ClaimRequest, run holdfast.Run) protocol.AgentRef {
	if req.Agent != "" {
		return req.Ref()
	}
	return protocol.AgentRef{
		ID: protocol.LaunchAgent(req.Runner, holdfast.AttemptRef{Run: run.ID, Attempt: run.Attempt + 1}), Runner: req.Runner,
	}
}

// claimKinds are the kinds of runs that an agent may be handed; none: all.
func claimKinds(req protocol.ClaimRequest) []holdfast.RunKind {
	if len(req.Kinds) == 0 {
		return nil
	}
	return withJobs(req.Kinds)
}

// withJobs adds to kinds of runs those that the same agents also execute.
func withJobs(kinds []holdfast.RunKind) []holdfast.RunKind {
	all := slices.Clone(kinds)
	for _, job := range []holdfast.RunKind{holdfast.RunState, holdfast.RunUnlock} {
		if slices.Contains(kinds, job.AgentKind()) && !slices.Contains(kinds, job) {
			all = append(all, job)
		}
	}
	return all
}

// claimFilter says which runs may be handed out now, in which order, and how many: not those
// of providers that need a break, nor of providers, projects and runners that have as many runs
// as they may, and no more drift checks than there may be. It is false if there can be none.
func (d handout) claimFilter(ctx context.Context, req protocol.ClaimRequest) (holdfast.ClaimFilter, *room, bool, error) {
	kinds, now := claimKinds(req), d.opts.Now()
	running, lately, err := d.opts.Store.Served(ctx, now)
	if err != nil {
		return holdfast.ClaimFilter{}, nil, false, fmt.Errorf("list running runs: %w", err)
	}
	if err := d.seeBreakers(ctx); err != nil {
		return holdfast.ClaimFilter{}, nil, false, err
	}
	room := &room{limits: d.opts.Limits, load: loadOf(running)}
	if room.share, err = d.shares.of(ctx, running); err != nil || len(running) >= d.opts.Limits.Runs {
		return holdfast.ClaimFilter{}, nil, false, err
	}
	load := room.load
	if room.ofRunner, err = d.places.mostOf(ctx, req.Runner); err != nil || room.ofRunner > 0 && load.runners[req.Runner] >= room.ofRunner {
		return holdfast.ClaimFilter{}, nil, false, err
	}
	filter := holdfast.ClaimFilter{
		Now: now, Kinds: kinds, Projects: req.Projects, Runner: req.Runner, Providers: d.breakers.Held(),
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
	room.share.limits(&filter)
	filter.NoFirst = d.opts.Limits.firstAt(lately).After(now)
	if load.drift < d.opts.Limits.Drift {
		return filter, room, true, nil
	}
	if len(kinds) == 0 {
		kinds = withJobs(holdfast.AgentKinds())
	}
	filter.Kinds = slices.DeleteFunc(slices.Clone(kinds), func(k holdfast.RunKind) bool { return k == holdfast.RunDrift })
	return filter, room, len(filter.Kinds) > 0, nil
}

// capLease bounds how long a claim that dies keeps others of its run, or of its
// provider, waiting.
const capLease = 5 * time.Second

// withinCap calls claim while the provider, the project and the runner of run have fewer runs
// than they may, or, for a drift check, fewer of those run than may at once, or it is time for
// another first plan, and nobody else claims one of it; otherwise it is an ErrConflict.
func (d handout) withinCap(ctx context.Context, run holdfast.Run, claim func() error) error {
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
	return d.inTurn(ctx, keys, func() error {
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

// alone does something while nobody else who names one of the same keys does it; it is
// an errTaken if somebody does.
func (d handout) alone(ctx context.Context, keys []string, do func() error) error {
	release, err := d.acquire(ctx, keys)
	if err != nil {
		return err
	}
	defer release()
	return do()
}

// acquire takes the locks of keys; errTaken if somebody else has one of them.
func (d handout) acquire(ctx context.Context, keys []string) (release func(), err error) {
	owner := holdfast.NewID("claim", d.opts.Now())
	var taken []string
	release = func() {
		for _, key := range taken {
			_ = d.opts.Locker.Release(context.WithoutCancel(ctx), key, owner) // otherwise its lease expires
		}
	}
	for _, key := range keys {
		switch err := d.opts.Locker.Acquire(ctx, key, owner, capLease); {
		case errors.Is(err, holdfast.ErrLocked):
			release()
			return nil, errTaken
		case err != nil:
			release()
			return nil, fmt.Errorf("lock %s: %w", key, err)
		}
		taken = append(taken, key)
	}
	return release, nil
}

// Claims that one limit bounds are made one after the other.
const (
	// turnWait is how long a claim waits for those of other replicas. Then it leaves the run
	// to them.
	turnWait = time.Second
	// turnPause is the time between two tries.
	turnPause = 4 * time.Millisecond
)

// inTurn is alone for whoever waits while somebody else has a key: the limit is not reached
// yet.
func (d handout) inTurn(ctx context.Context, keys []string, do func() error) error {
	slices.Sort(keys) // nobody waits in a circle
	for _, key := range keys {
		unlock, err := d.turns.lock(ctx, key)
		if err != nil {
			return err
		}
		defer unlock()
	}
	for began := time.Now(); ; {
		release, err := d.acquire(ctx, keys)
		if err == nil {
			defer release()
			return do()
		}
		if !errors.Is(err, errTaken) || time.Since(began) > turnWait {
			return err
		}
		select {
		case <-time.After(turnPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// turns make the claims of this replica that one limit bounds follow one another. The zero
// value is ready for use, and safe for concurrent use.
type turns struct {
	by sync.Map // of chan struct{}, by key
}

func (t *turns) lock(ctx context.Context, key string) (unlock func(), err error) {
	made, _ := t.by.LoadOrStore(key, make(chan struct{}, 1))
	one := made.(chan struct{})
	select {
	case one <- struct{}{}:
		return func() { <-one }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// begin records what the attempt starts from and makes its assignment.
func (d *Dispatcher) begin(ctx context.Context, run holdfast.Run) (protocol.Assignment, error) {
	d.renewals.confirmed(run.ID)
	a, run, err := handout{d}.assignment(ctx, run)
	if err == nil {
		handout{d}.claimed(ctx, run)
	}
	return a, err
}

// claimed notifies everybody of a run that was claimed.
func (d handout) claimed(ctx context.Context, run holdfast.Run) {
	d.opts.Metrics.RunClaimed(run.Kind, run.StartedAt.Sub(run.CreatedAt))
	d.opts.Logger.InfoContext(ctx, "run was claimed", "run", run.ID, "attempt", run.Attempt,
		"cluster", run.Cluster, "kind", run.Kind, "agent", run.Agent)
	d.opts.Fleet.Changed(ctx, run)
}

// assignment is what an attempt needs to know.
func (d handout) assignment(ctx context.Context, run holdfast.Run) (protocol.Assignment, holdfast.Run, error) {
	a, run, err := d.opts.Fleet.Assignment(ctx, run)
	if err != nil {
		// Nothing has started. The run ends with what is wrong, for all to see.
		_, endErr := d.end(ctx, run.Ref(), run, protocol.Result{
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
