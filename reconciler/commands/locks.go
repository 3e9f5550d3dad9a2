package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/history"
)

// Lock says who holds a cluster's lock, with the run and whether it is alive;
// ErrNotFound if nobody does.
func (o *Operator) Lock(ctx context.Context, cluster string) (
	holder holdfast.LockHolder, run holdfast.Run, alive bool, err error,
) {
	running, err := o.Records.Running(ctx, cluster)
	if err != nil {
		return holder, run, false, err
	}
	location := "clusters/" + cluster
	if running != nil {
		run, location = o.Dispatcher.LastSign(*running), running.StateKey()
		alive = o.alive(run)
	} else if last, err := history.Branch(ctx, o.opts.Store, cluster); err == nil && len(last) > 0 {
		location = last[0].StateKey()
	}
	holder, err = o.Locker.Holder(ctx, location)
	if running == nil && errors.Is(err, holdfast.ErrNotFound) {
		return o.leftBehind(ctx, location)
	}
	if running != nil && err != nil {
		// The records are the truth, whatever Redis remembers.
		return holdfast.LockHolder{
			Owner: run.Ref().Owner(), Since: run.StartedAt, Expires: run.HeartbeatAt.Add(o.opts.Lease),
		}, run, alive, nil
	}
	return holder, run, alive, err
}

// alive reports whether a run's agent may still work on it: for as long as its lease
// lasts or, if another process has taken its agent's place, until beats are missing. A
// folder can be copied: the former process may still send some.
func (o *Operator) alive(run holdfast.Run) bool {
	patience := o.opts.Lease
	if o.Dispatcher.Replaced(run) {
		patience /= 3 // two beats
	}
	return o.opts.Now().Sub(run.HeartbeatAt) <= patience
}

// leftBehind reports a state lock in Holdfast's own backend whose attempt is
// over; ErrNotFound if there is none.
func (o *Operator) leftBehind(ctx context.Context, location string) (
	holder holdfast.LockHolder, run holdfast.Run, alive bool, err error,
) {
	left, err := o.opts.Store.StateLock(ctx, location)
	if err != nil {
		return holder, run, false, err
	}
	run, err = o.opts.Store.Run(ctx, left.By.Run)
	if errors.Is(err, holdfast.ErrNotFound) {
		run, err = holdfast.Run{ID: left.By.Run, RunSpec: holdfast.RunSpec{StateLocation: location}}, nil
	}
	return holdfast.LockHolder{Owner: left.By.Owner(), Since: left.Created}, run, false, err
}

// Unlock takes a cluster's lock from a run that is dead, or, with force, from a
// living one, whose writes are refused from then on. ErrNotFound if nobody
// holds it, a *holdfast.LockedError if its holder is alive.
func (o *Operator) Unlock(ctx context.Context, cluster, actor string, force bool) error {
	holder, run, alive, err := o.Lock(ctx, cluster)
	if err != nil {
		return fmt.Errorf("look at the lock of %q: %w", cluster, err)
	}
	if run.ID == "" || alive && !force { // a lock without a run expires soon
		return &holdfast.LockedError{Holder: holder}
	}
	o.Records.Audit(ctx, actor, "lock.release", cluster, fmt.Sprintf("%s, alive %t, force %t", holder.Owner, alive, force))
	if run.Status != holdfast.RunRunning { // its state lock has outlived it
		if _, err := o.opts.Store.ReleaseStateLock(ctx, run.StateLocation); err != nil {
			return fmt.Errorf("release the state lock of run %s: %w", run.ID, err)
		}
		return nil
	}
	if err := o.Dispatcher.Kill(ctx, run, "its lock was taken away by "+actor); err != nil {
		return fmt.Errorf("end run %s: %w", run.ID, err)
	}
	return nil
}
