package reconciler

import (
	"context"
	"fmt"
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
func (f fleet) Changed(ctx context.Context, run holdfast.Run) { f.followUp(ctx, run) }

// Look asks for another look at what a request names.
func (f fleet) Look(req holdfast.Request) { f.requests.Add(req) }

// Wake wakes all replicas, this one too.
func (f fleet) Wake(ctx context.Context, topic string) { f.wake(ctx, topic) }

// Finished measures and traces an attempt.
func (f fleet) Finished(run holdfast.Run, steps []holdfast.Step) {
	for _, step := range steps {
		f.opts.Metrics.Step(step.Name, step.Duration)
	}
	f.traces.run(run, steps)
}

// Held has those told whose runs wait for a provider, or go on.
func (f fleet) Held(ctx context.Context, provider string) {
	if err := f.showHeld(ctx, provider); err != nil {
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
		r.opts.Metrics.Depth("requests", r.requests.Depth())
		r.opts.Metrics.Depth("sources", r.sources.Depth())
		r.opts.Metrics.Depth("upgrades", r.upgrades.Depth())
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// followUp asks for everything that a run's change of status may bear on.
func (r *Reconciler) followUp(ctx context.Context, run holdfast.Run) {
	r.requests.Add(holdfast.Request{Cluster: run.Cluster, PullRequest: run.PullRequest})
	if !run.PullRequest.IsZero() {
		return
	}
	for _, review := range run.Reviews {
		if !review.PullRequest.IsZero() {
			r.publish.Show(review.PullRequest)
		}
	}
	if !run.Begun && run.Kind != holdfast.RunState || !run.Status.Done() {
		return
	}
	if err := r.requestOpen(ctx, run.Cluster); err != nil {
		r.opts.Logger.WarnContext(ctx, "open pull requests were not asked for", "cluster", run.Cluster, "err", err)
	}
}

// requestOpen asks for the cluster at each open pull request that touches it.
func (r *Reconciler) requestOpen(ctx context.Context, cluster string) error {
	open, err := r.opts.Store.PullRequests(ctx, holdfast.PullRequestFilter{
		States: []holdfast.PullRequestState{holdfast.PullRequestOpen}, Cluster: cluster, Limit: 10_000,
	})
	if err != nil {
		return fmt.Errorf("list pull requests of %q: %w", cluster, err)
	}
	for _, pr := range open {
		r.requests.Add(holdfast.Request{Cluster: cluster, PullRequest: pr.PullRequestRef})
	}
	return nil
}

// showHeld asks for everything again that shows runs of a provider which wait.
func (r *Reconciler) showHeld(ctx context.Context, provider string) error {
	waiting, err := r.opts.Store.Runs(ctx, holdfast.RunFilter{
		Statuses: []holdfast.RunStatus{holdfast.RunQueued, holdfast.RunRetrying}, Limit: 10_000,
	})
	if err != nil {
		return fmt.Errorf("list queued runs: %w", err)
	}
	for _, run := range waiting {
		switch {
		case run.Document.Provider != provider:
		case run.PullRequest.IsZero():
			r.requests.Add(holdfast.Request{Cluster: run.Cluster})
		default:
			r.publish.Show(run.PullRequest)
		}
	}
	return nil
}
