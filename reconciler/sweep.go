package reconciler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// sweep watches the leases of running attempts and the backoffs of retrying
// ones until ctx is done.
func (r *Reconciler) sweep(ctx context.Context) error {
	ticker := time.NewTicker(r.opts.Lease / 6)
	defer ticker.Stop()
	for {
		if err := r.sweepOnce(ctx); err != nil && ctx.Err() == nil {
			r.opts.Logger.ErrorContext(ctx, "leases were not checked", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (r *Reconciler) sweepOnce(ctx context.Context) error {
	running, err := r.opts.Store.Runs(ctx, holdfast.RunFilter{
		Statuses: []holdfast.RunStatus{holdfast.RunRunning}, Limit: 10_000,
	})
	if err != nil {
		return fmt.Errorf("list running runs: %w", err)
	}
	r.opts.Metrics.Depth("requests", r.requests.Depth())
	r.opts.Metrics.Depth("sources", r.sources.Depth())
	r.opts.Metrics.Depth("upgrades", r.upgrades.Depth())
	var errs []error
	for _, run := range r.unheard(running) {
		errs = append(errs, r.silent(ctx, run))
	}
	return errors.Join(errs...)
}

// beat is a run's last sign of life, and when this process saw it first.
type beat struct {
	at   time.Time
	seen time.Time // with the monotonic clock: a wall clock that jumps kills nobody
}

// unheard returns the runs of which no new sign of life was seen for a lease.
func (r *Reconciler) unheard(running []holdfast.Run) []holdfast.Run {
	var out []holdfast.Run
	r.mu.Lock()
	defer r.mu.Unlock()
	beats := make(map[holdfast.AttemptRef]beat, len(running))
	for _, run := range running {
		last, ok := r.beats[run.Ref()]
		if !ok || !last.at.Equal(run.HeartbeatAt) {
			last = beat{at: run.HeartbeatAt, seen: time.Now()}
		}
		beats[run.Ref()] = last
		if time.Since(last.seen) > r.opts.Lease {
			out = append(out, run)
		}
	}
	r.beats = beats
	return out
}

// silent deals with an attempt whose lease has ended without a word. What
// cannot write is queued again. What can is let go only if it certainly writes
// no more: in our own backend, when nothing holds the state's lock (the
// attempt's credential ends with the attempt). Elsewhere we wait for its agent,
// or for a person who unlocks.
func (r *Reconciler) silent(ctx context.Context, run holdfast.Run) error {
	if run.Kind.Writes() {
		if !ownState(run.StateLocation) {
			return r.markSilent(ctx, run)
		}
		free, err := r.opts.Store.ReleaseStateLock(ctx, run.StateLocation, holdfast.AttemptRef{})
		if err != nil {
			return fmt.Errorf("look at the state lock of run %s: %w", run.ID, err)
		}
		if !free {
			return r.markSilent(ctx, run)
		}
	}
	return r.dead(ctx, run, "its agent has been silent since "+run.HeartbeatAt.UTC().Format(time.TimeOnly)+" UTC")
}

// markSilent says on a run, for people to see, that nothing is heard of it and
// that nobody may end it but its agent or a person.
func (r *Reconciler) markSilent(ctx context.Context, run holdfast.Run) error {
	if run.Reason == decision.ReasonAgentSilent {
		return nil
	}
	run.Reason = decision.ReasonAgentSilent
	run.Detail = "nothing was heard of its agent since " + run.HeartbeatAt.UTC().Format(time.DateTime) + " UTC"
	_, err := r.opts.Store.UpdateRun(ctx, run)
	if errors.Is(err, holdfast.ErrConflict) {
		return nil // it was heard of, or the next sweep says it
	} else if err != nil {
		return fmt.Errorf("record the silence of run %s: %w", run.ID, err)
	}
	r.opts.Logger.WarnContext(ctx, "agent is silent", "run", run.ID, "cluster", run.Cluster, "agent", run.Agent)
	r.requests.Add(holdfast.Request{Cluster: run.Cluster, PullRequest: run.PullRequest})
	return nil
}

// heard takes that back.
func (r *Reconciler) heard(ctx context.Context, run holdfast.Run) error {
	run.Reason, run.Detail = "", ""
	_, err := r.opts.Store.UpdateRun(ctx, run)
	if err != nil && !errors.Is(err, holdfast.ErrConflict) {
		return fmt.Errorf("record that run %s is heard of: %w", run.ID, err)
	}
	r.requests.Add(holdfast.Request{Cluster: run.Cluster, PullRequest: run.PullRequest})
	return nil
}

// reap ends the attempts that the server believes to be with an agent which
// does not know them: they died with its former process, or their assignment
// never arrived.
func (r *Reconciler) reap(ctx context.Context, req holdfast.ClaimRequest) error {
	running, err := r.opts.Store.Runs(ctx, holdfast.RunFilter{
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
		err := r.dead(ctx, run, "its agent does not know it any more")
		if err != nil && !errors.Is(err, holdfast.ErrFenced) && !errors.Is(err, holdfast.ErrConflict) {
			return err
		}
	}
	return nil
}

// dead ends an attempt of which no result will come. An apply may have begun,
// whatever its last sign of life said.
func (r *Reconciler) dead(ctx context.Context, run holdfast.Run, why string) error {
	_, err := r.end(ctx, run.Ref(), killed(run, why))
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
