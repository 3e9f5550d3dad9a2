package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// Heartbeat records that an attempt lives, renews its lock, and tells it whether to
// continue. A beat counts whether it can be stored or not.
func (d *Dispatcher) Heartbeat(
	ctx context.Context, ref holdfast.AttemptRef, beat protocol.Heartbeat,
) (protocol.HeartbeatReply, error) {
	if !slices.Contains(steps, beat.Step) {
		beat.Step = ""
	}
	d.signs.heard(ref, beat.Step, d.opts.Now())
	run, stored, err := d.storeBeat(ctx, ref, beat.Step)
	if err != nil {
		return protocol.HeartbeatReply{}, fmt.Errorf("record heartbeat of run %s: %w", ref.Run, err)
	}
	d.beats(run, beat.Process)
	if run.Reason == holdfast.ReasonAgentSilent {
		if err := d.heard(ctx, run); err != nil { // the next one reports it again
			d.opts.Logger.WarnContext(ctx, "end of an agent's silence was not recorded", "run", run.ID, "err", err)
		}
	}
	// Other replicas see only what is stored.
	reply := protocol.HeartbeatReply{Cancel: run.Cancel, MayApply: stored}
	err = d.opts.Locker.Renew(ctx, run.StateKey(), ref.Owner(), d.opts.Limits.Lease)
	if errors.Is(err, holdfast.ErrLockLost) {
		// Redis may have forgotten it: then it is ours again, by the records.
		err = d.opts.Locker.Acquire(ctx, run.StateKey(), ref.Owner(), d.opts.Limits.Lease)
	}
	if err == nil {
		d.renewals.confirmed(run.ID)
		return reply, nil
	}
	reply.MayApply = false
	if !run.Kind.Writes() && d.renewals.unconfirmed(run.ID, d.opts.Limits.Lease/6) > d.opts.Limits.Lease*3/4 && reply.Cancel == "" {
		reply.Cancel = holdfast.ReasonLeaseLost
	}
	d.opts.Logger.WarnContext(ctx, "lock was not renewed", "run", run.ID, "cluster", run.Cluster, "err", err)
	return reply, nil
}

// storeBeat stores a beat if the stored one is older than a third of the lease: beats
// come more often, and each would be a commit. It is an ErrFenced if ref is not the run's
// running attempt. It returns the run, and whether the records have a beat that is new
// enough for replicas that know nothing else.
func (d *Dispatcher) storeBeat(ctx context.Context, ref holdfast.AttemptRef, step string) (run holdfast.Run, stored bool, err error) {
	run, err = d.opts.Store.Run(ctx, ref.Run)
	switch {
	case errors.Is(err, holdfast.ErrNotFound) || err == nil && (run.Status != holdfast.RunRunning || run.Ref() != ref):
		return run, false, holdfast.ErrFenced
	case err != nil:
		return run, false, err
	}
	now := d.opts.Now()
	if old := now.Sub(run.HeartbeatAt); old >= 0 && old <= d.opts.Limits.Lease/3 {
		return run, true, nil
	}
	beaten, err := d.opts.Store.Beat(ctx, ref, step, now)
	switch {
	case err == nil:
		return beaten, true, nil
	case errors.Is(err, holdfast.ErrFenced):
		return run, false, err
	}
	d.opts.Logger.WarnContext(ctx, "heartbeat was not stored", "run", run.ID, "cluster", run.Cluster, "err", err)
	return run, false, nil
}

// LastSign returns a run with its newest sign of life, which need not be stored yet.
func (d *Dispatcher) LastSign(run holdfast.Run) holdfast.Run { return d.signs.onto(run, d.opts.Now()) }
