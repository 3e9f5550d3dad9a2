package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
)

// Heartbeat records that an attempt lives, renews its lock, and tells it
// whether to continue.
func (d *Dispatcher) Heartbeat(
	ctx context.Context, ref holdfast.AttemptRef, beat holdfast.Heartbeat,
) (holdfast.HeartbeatReply, error) {
	if !slices.Contains(steps, beat.Step) {
		beat.Step = ""
	}
	run, err := d.opts.Store.Beat(ctx, ref, beat.Step, d.opts.Now())
	if err != nil {
		return holdfast.HeartbeatReply{}, fmt.Errorf("record heartbeat of run %s: %w", ref.Run, err)
	}
	d.beats(run, beat.Process)
	if run.Reason == holdfast.ReasonAgentSilent {
		if err := d.heard(ctx, run); err != nil {
			return holdfast.HeartbeatReply{}, err
		}
	}
	reply := holdfast.HeartbeatReply{Cancel: run.Cancel, MayApply: true}
	err = d.opts.Locker.Renew(ctx, run.StateLocation, ref.Owner(), d.opts.Limits.Lease)
	if errors.Is(err, holdfast.ErrLockLost) {
		// Redis may have forgotten it: then it is ours again, by the records.
		err = d.opts.Locker.Acquire(ctx, run.StateLocation, ref.Owner(), d.opts.Limits.Lease)
	}
	if err == nil {
		d.renewals.confirmed(run.ID)
		return reply, nil
	}
	reply.MayApply = false
	if !run.Kind.Writes() && d.renewals.unconfirmed(run.ID) > d.opts.Limits.Lease*3/4 && reply.Cancel == "" {
		reply.Cancel = holdfast.ReasonLeaseLost
	}
	d.opts.Logger.WarnContext(ctx, "lock was not renewed", "run", run.ID, "cluster", run.Cluster, "err", err)
	return reply, nil
}
