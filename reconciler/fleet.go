package reconciler

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// fleet is the Reconciler as the Dispatcher sees it.
type fleet struct{ *Reconciler }

// Stopped reports whether a queued run must not start now.
func (f fleet) Stopped(ctx context.Context, run holdfast.Run) (bool, error) {
	return f.stopped(ctx, run)
}

// Changed asks for everything that a run's change of status may bear on.
func (f fleet) Changed(ctx context.Context, run holdfast.Run) { f.agenda.FollowUp(ctx, run) }

// Look asks for another look at what a request names.
func (f fleet) Look(req holdfast.Request) { f.agenda.Request(req) }

// Wake wakes all replicas, this one too.
func (f fleet) Wake(ctx context.Context, topic string) { f.wake(ctx, topic) }

// Finished measures and traces an attempt.
func (f fleet) Finished(run holdfast.Run, steps []holdfast.Step) {
	for _, step := range steps {
		f.opts.Metrics.Step(step.Name, step.Duration)
	}
	f.traces.Run(run, steps)
}

// Held has those told whose runs wait for a provider, or go on.
func (f fleet) Held(ctx context.Context, provider string) {
	if err := f.agenda.FollowHold(ctx, provider); err != nil {
		f.opts.Logger.WarnContext(ctx, "runs that wait for a provider were not shown", "provider", provider, "err", err)
	}
}

// sweep watches the leases of running attempts until ctx is done, and measures
// the queues meanwhile.
func (r *Reconciler) sweep(ctx context.Context) error {
	ticker := time.NewTicker(r.opts.Lease / 6)
	defer ticker.Stop()
	for {
		if err := r.dispatcher.Sweep(ctx); err != nil && ctx.Err() == nil {
			r.opts.Logger.ErrorContext(ctx, "leases were not checked", "err", err)
		}
		if err := r.rescue.Pass(ctx); err != nil && ctx.Err() == nil {
			r.opts.Logger.ErrorContext(ctx, "unsaved states were not looked at", "err", err)
		}
		looks, requests := r.agenda.Depths()
		r.opts.Metrics.Depth("requests", requests)
		r.opts.Metrics.Depth("sources", looks)
		r.opts.Metrics.Depth("upgrades", r.upgrades.Depth())
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
