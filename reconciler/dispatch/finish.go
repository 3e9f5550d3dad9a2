package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// Finish records how an attempt ended, as its agent says, as far as that is possible;
// what is not is recorded as an error. A second delivery of the same result is an
// ErrFenced: the first one was accepted.
func (d *Dispatcher) Finish(ctx context.Context, ref holdfast.AttemptRef, result protocol.Result) error {
	run, err := d.opts.Store.Run(ctx, ref.Run)
	if err != nil {
		return fmt.Errorf("read run %s: %w", ref.Run, err)
	}
	result, why := checked(run, result)
	if why != "" {
		d.opts.Logger.WarnContext(ctx, "outcome was refused", "run", run.ID, "attempt", ref.Attempt, "agent", run.Agent, "detail", why)
	}
	if run, err = d.end(ctx, ref, run, result, d.opts.Store.EndAttempt); err != nil {
		return err
	}
	d.opts.Fleet.Finished(run, result.Steps)
	return nil
}

// outcome is the run as a result, and the plan that was made, leave it: ended, queued again after a
// pre-emption, or waiting for a retry.
func outcome(
	run holdfast.Run, result protocol.Result, plan holdfast.Plan, now time.Time, limits Limits,
) holdfast.Run {
	run.Begun = run.Begun || result.Applying && run.Kind.Applies()
	run.InputDigest = result.InputDigest
	run.Fingerprint, run.PlanDigest, run.Counts = plan.Fingerprint, plan.Digest, plan.Counts
	run.EngineName, run.EngineVersion = result.EngineName, result.EngineVersion
	run.Matched, run.Failure, run.Policies, run.Cost = result.Matched, result.Failure, result.Policies, briefCost(plan.Cost)
	run.Status, run.Reason, run.Detail, run.FinishedAt = result.Status, result.Reason, result.Detail, now
	run.Step, run.NotBefore = "", time.Time{}
	switch {
	case run.Status != holdfast.RunCanceled:
	case run.Cancel != "":
		run.Reason = run.Cancel
	case result.Detail == string(holdfast.ReasonLeaseLost): // Heartbeat's word, and nobody's wish
		run.Status, run.Reason, run.Failure = holdfast.RunInterrupted, holdfast.ReasonLeaseLost, nil
	}
	if run.Status == holdfast.RunInterrupted && run.Failure == nil {
		run.Failure = &holdfast.Failure{
			Summary: "the run was interrupted", Detail: result.Detail, Cause: run.Reason, Transient: true,
		}
	}
	switch {
	case run.Begun || run.Status.Good():
	case run.Status == holdfast.RunCanceled && run.Reason == holdfast.ReasonPreempted && run.Kind != holdfast.RunDrift:
		run = requeued(run, holdfast.ReasonPreempted)
	case decision.Transient(run):
		run = retried(run, now, limits)
	}
	run.Cancel = ""
	return run
}

// retried is a run whose attempt failed for a transient cause. An attempt that is
// refused the lock of its state's backend uses none of the retries: it is tried again
// until the time to wait for a lock is over, and then ends.
func retried(run holdfast.Run, now time.Time, limits Limits) holdfast.Run {
	var pause time.Duration
	again := run.Retries < limits.Retries
	if decision.RefusedLock(run) {
		if run.LockedSince.IsZero() {
			run.LockedSince = now
		}
		pause, again = limits.Lock.Next(run.LockedSince, now)
	} else {
		run.LockedSince = time.Time{}
		if again {
			pause = limits.RetryDelay << run.Retries
			run.Retries++
		}
	}
	if again {
		run.Status, run.FinishedAt = holdfast.RunRetrying, time.Time{}
		run.NotBefore = now.Add(pause)
	}
	return run
}

func requeued(run holdfast.Run, reason holdfast.Reason) holdfast.Run {
	run.Status, run.Reason, run.Detail = holdfast.RunQueued, reason, ""
	run.Failure, run.FinishedAt, run.Step, run.Cancel = nil, time.Time{}, "", ""
	return run
}

// Kill ends an attempt whose result will never come, at a person's request: nobody
// knows whether its engine still works, so nothing continues automatically.
func (d *Dispatcher) Kill(ctx context.Context, run holdfast.Run, why string) error {
	result := killed(run, why)
	result.Failure.Transient = false
	_, err := d.end(ctx, run.Ref(), run, result, d.opts.Store.EndAttempt)
	return err
}

// endFunc stores the end of an attempt: a method of the Store, or EndSilent.
type endFunc func(ctx context.Context, ref holdfast.AttemptRef, run holdfast.Run, resources []holdfast.Resource) (holdfast.Run, error)

// end stores how an attempt at a run ended, releases its lock, and notifies everybody.
// The run is as the caller has read it, which may be some time ago.
func (d *Dispatcher) end(
	ctx context.Context, ref holdfast.AttemptRef, run holdfast.Run, result protocol.Result, store endFunc,
) (holdfast.Run, error) {
	ctx = context.WithoutCancel(ctx) // an outcome is saved whoever hangs up
	run, err := d.saveOutcome(ctx, ref, run, result, store)
	if err != nil {
		return run, fmt.Errorf("record the end of run %s: %w", ref.Run, err)
	}
	if err := d.opts.Locker.Release(ctx, run.StateKey(), ref.Owner()); err != nil {
		d.opts.Logger.WarnContext(ctx, "lock was not released", "run", run.ID, "err", err)
	}
	d.renewals.ended(run.ID)
	d.opts.Metrics.RunEnded(run.Kind, run.Status, run.Reason)
	d.opts.Logger.InfoContext(ctx, "attempt has ended", "run", run.ID, "attempt", ref.Attempt,
		"cluster", run.Cluster, "kind", run.Kind, "status", run.Status, "reason", run.Reason)
	d.unlocked(ctx, run)
	d.opts.Fleet.Wake(ctx, TopicWork)
	d.ObserveProvider(ctx, run)
	d.opts.Fleet.Changed(ctx, run)
	return run, nil
}

// unlocked lets runs that pause until a lock is released be claimed at once, if run
// has released it.
func (d *Dispatcher) unlocked(ctx context.Context, run holdfast.Run) {
	if !run.State.Unlocks() || run.Status != holdfast.RunApplied {
		return
	}
	waiting, err := d.opts.Store.Runs(ctx, holdfast.RunFilter{
		Cluster: run.Cluster, Statuses: []holdfast.RunStatus{holdfast.RunRetrying}, Limit: 10_000,
	})
	if err != nil {
		d.opts.Logger.WarnContext(ctx, "runs that wait for the lock were not found", "run", run.ID, "err", err)
		return
	}
	for _, other := range waiting {
		if other.StateKey() != run.StateKey() || !decision.AwaitsLock(other) {
			continue
		}
		other.NotBefore = d.opts.Now()
		if _, err := d.opts.Store.UpdateRun(ctx, other); err != nil { // it is tried again later
			d.opts.Logger.WarnContext(ctx, "run was not woken", "run", other.ID, "err", err)
		}
	}
}

// saveOutcome writes an outcome over whatever else was written of the run since it was read,
// such as that it should stop: then it conflicts, and the run is read again.
func (d *Dispatcher) saveOutcome(
	ctx context.Context, ref holdfast.AttemptRef, run holdfast.Run, result protocol.Result, store endFunc,
) (_ holdfast.Run, err error) {
	var plan holdfast.Plan
	if run.Kind.OnlyPlans() && d.opts.Store.MayLack(ref) {
		result = lacking(result)
	}
	if run.Kind.Plans() {
		if plan, result, err = d.results.recordPlan(ctx, run, ref, result); err != nil {
			return run, err
		}
	}
	for {
		ended := outcome(run, result, plan, d.opts.Now(), d.opts.Limits)
		d.results.nameEngine(ctx, &ended)
		inventory := d.results.inventory(ctx, ended)
		saved, err := store(ctx, ref, ended, inventory.resources)
		if errors.Is(err, holdfast.ErrUnsaved) {
			// It was made of a state that is no longer the newest: nobody is to see it.
			saved, err = store(ctx, ref, requeued(ended, holdfast.ReasonStateUnsaved), nil)
		}
		if err == nil && saved.Status.Done() {
			d.results.noteInventory(ctx, saved, inventory)
		}
		if !errors.Is(err, holdfast.ErrConflict) {
			return saved, err
		}
		if run, err = d.opts.Store.Run(ctx, ref.Run); err != nil {
			return run, err
		}
	}
}

// nameEngine gives an apply that may have begun, and whose agent died before it could say
// with which engine, the one of the plan that it had to match: otherwise the next run
// could let another one write the state unnoticed.
func (r results) nameEngine(ctx context.Context, run *holdfast.Run) {
	if run.EngineName != "" || !run.Begun || !run.Kind.Writes() {
		return
	}
	for _, review := range decision.ComparedWith(*run) {
		plan, err := r.store.Run(ctx, review.Run)
		if err != nil { // such as that it is no longer kept
			r.logger.WarnContext(ctx, "engine of a reviewed plan is not known", "run", run.ID, "plan", review.Run, "err", err)
		} else if plan.EngineName != "" {
			run.EngineName, run.EngineVersion = plan.EngineName, plan.EngineVersion
			return
		}
	}
}
