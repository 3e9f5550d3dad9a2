package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// Sweep looks for running attempts whose leases have ended without a word, and
// deals with them. It is to be called several times within a lease.
func (d *Dispatcher) Sweep(ctx context.Context) error {
	running, err := d.opts.Store.Runs(ctx, holdfast.RunFilter{
		Statuses: []holdfast.RunStatus{holdfast.RunRunning}, Limit: 10_000,
	})
	if err != nil {
		return fmt.Errorf("list running runs: %w", err)
	}
	var errs []error
	for _, run := range d.unheard(running) {
		errs = append(errs, d.silent(ctx, run))
	}
	return errors.Join(errs...)
}

// beat is a run's last sign of life, and when this process saw it first.
type beat struct {
	at   time.Time
	seen time.Time // with the monotonic clock: a wall clock that jumps kills nobody
}

// unheard returns the runs of which no new sign of life was seen for a lease.
func (d *Dispatcher) unheard(running []holdfast.Run) []holdfast.Run {
	var out []holdfast.Run
	d.mu.Lock()
	defer d.mu.Unlock()
	beats := make(map[holdfast.AttemptRef]beat, len(running))
	for _, run := range running {
		last, ok := d.beats[run.Ref()]
		if !ok || !last.at.Equal(run.HeartbeatAt) {
			last = beat{at: run.HeartbeatAt, seen: time.Now()}
		}
		beats[run.Ref()] = last
		if time.Since(last.seen) > d.opts.Limits.Lease {
			out = append(out, run)
		}
	}
	d.beats = beats
	return out
}

// Age makes all signs of life that Sweep has seen older by ago. It is for tests
// of what happens when a lease ends.
func (d *Dispatcher) Age(ago time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for ref, b := range d.beats {
		b.seen = b.seen.Add(-ago)
		d.beats[ref] = b
	}
}

// silent deals with an attempt whose lease has ended without a word. What
// cannot write is queued again. What can is let go only if it certainly writes
// no more: in our own backend, when nothing holds the state's lock (the
// attempt's credential ends with the attempt). Elsewhere we wait for its agent,
// or for a person who unlocks.
func (d *Dispatcher) silent(ctx context.Context, run holdfast.Run) error {
	if run.Kind.Writes() {
		if !holdfast.OwnState(run.StateLocation) {
			return d.markSilent(ctx, run)
		}
		free, err := d.opts.Store.ReleaseStateLock(ctx, run.StateLocation, holdfast.AttemptRef{})
		if err != nil {
			return fmt.Errorf("look at the state lock of run %s: %w", run.ID, err)
		}
		if !free {
			return d.markSilent(ctx, run)
		}
	}
	return d.dead(ctx, run, "its agent has been silent since "+run.HeartbeatAt.UTC().Format(time.TimeOnly)+" UTC")
}

// markSilent says on a run, for people to see, that nothing is heard of it and
// that nobody may end it but its agent or a person.
func (d *Dispatcher) markSilent(ctx context.Context, run holdfast.Run) error {
	if run.Reason == decision.ReasonAgentSilent {
		return nil
	}
	run.Reason = decision.ReasonAgentSilent
	run.Detail = "nothing was heard of its agent since " + run.HeartbeatAt.UTC().Format(time.DateTime) + " UTC"
	_, err := d.opts.Store.UpdateRun(ctx, run)
	if errors.Is(err, holdfast.ErrConflict) {
		return nil // it was heard of, or the next sweep says it
	} else if err != nil {
		return fmt.Errorf("record the silence of run %s: %w", run.ID, err)
	}
	d.opts.Logger.WarnContext(ctx, "agent is silent", "run", run.ID, "cluster", run.Cluster, "agent", run.Agent)
	d.opts.Fleet.Look(holdfast.Request{Cluster: run.Cluster, PullRequest: run.PullRequest})
	return nil
}

// heard takes that back.
func (d *Dispatcher) heard(ctx context.Context, run holdfast.Run) error {
	run.Reason, run.Detail = "", ""
	_, err := d.opts.Store.UpdateRun(ctx, run)
	if err != nil && !errors.Is(err, holdfast.ErrConflict) {
		return fmt.Errorf("record that run %s is heard of: %w", run.ID, err)
	}
	d.opts.Fleet.Look(holdfast.Request{Cluster: run.Cluster, PullRequest: run.PullRequest})
	return nil
}

// reap ends the attempts that the server believes to be with an agent which
// does not know them: they died with its former process, or their assignment
// never arrived.
func (d *Dispatcher) reap(ctx context.Context, req holdfast.ClaimRequest) error {
	running, err := d.opts.Store.Runs(ctx, holdfast.RunFilter{
		Statuses: []holdfast.RunStatus{holdfast.RunRunning}, Limit: 10_000,
	})
	if err != nil {
		return fmt.Errorf("list running runs: %w", err)
	}
	known := make(map[holdfast.AttemptRef]bool, len(req.Executing))
	for _, ref := range req.Executing {
		known[ref] = true
	}
	for _, run := range running {
		if run.Agent != req.Agent || known[run.Ref()] {
			continue
		}
		err := d.dead(ctx, run, "its agent does not know it any more")
		if err != nil && !errors.Is(err, holdfast.ErrFenced) && !errors.Is(err, holdfast.ErrConflict) {
			return err
		}
	}
	return nil
}

// dead ends an attempt of which no result will come. An apply may have begun,
// whatever its last sign of life said.
func (d *Dispatcher) dead(ctx context.Context, run holdfast.Run, why string) error {
	_, err := d.end(ctx, run.Ref(), killed(run, why))
	return err
}

// killed is the result that a dead attempt did not send.
func killed(run holdfast.Run, why string) holdfast.Result {
	return holdfast.Result{
		Status: holdfast.RunInterrupted, Reason: holdfast.ReasonAgentKilled, Detail: why,
		Applying: run.Kind.Writes(),
		Failure: &holdfast.Failure{
			Step: run.Step, Summary: "the agent died, or cannot reach the server", Detail: why,
			Cause: holdfast.ReasonAgentKilled, Transient: true,
			Hint: "look at the agent's log; resources that were being changed may be missing from the state",
		},
	}
}
