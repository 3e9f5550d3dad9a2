package reconciler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/clock"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/dispatch"
	"github.com/holdfast-dev/holdfast/reconciler/leader"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
	"github.com/holdfast-dev/holdfast/reconciler/rescue"
)

func newDispatcher(r *Reconciler) (*dispatch.Dispatcher, error) {
	limits := r.opts.Limits
	return dispatch.New(dispatch.Options{
		Store: r.opts.Store, Locker: r.opts.Replica.Locker, Fleet: fleet{r}, TokenKey: r.opts.Replica.TokenKey,
		Limits: dispatch.Limits{
			Runs: limits.Runs, Drift: limits.Drift, Provider: limits.Provider, Project: limits.Project, First: limits.First, Timeout: limits.Timeout,
			Lease: limits.Lease, Retries: limits.Retries, RetryDelay: limits.RetryDelay, Break: limits.Break,
			Lock:         decision.LockWait{Timeout: limits.LockTimeout, Pause: limits.RetryDelay},
			Repositories: forClusters(r.opts.Sources.Repositories), Isolation: r.opts.Grants.Isolation,
		},
		Metrics: r.opts.Telemetry.Metrics, Logger: r.opts.Telemetry.Logger, Now: r.opts.Now,
	})
}

// forClusters are the repositories that define clusters, whether there are any yet, and
// publish no templates.
func forClusters(repositories []Repository) []string {
	var names []string
	for _, repo := range repositories {
		if len(repo.Clusters) > 0 && len(repo.Templates) == 0 {
			names = append(names, repo.Name)
		}
	}
	return names
}

// fleet is the Reconciler as the Dispatcher sees it.
type fleet struct{ r *Reconciler }

// Stopped reports whether a queued run must not start now.
func (f fleet) Stopped(ctx context.Context, run holdfast.Run) (bool, error) {
	return f.r.loop.Stopped(ctx, run)
}

// Unseen reports whether a run waits until the repository of its cluster was read.
func (f fleet) Unseen(ctx context.Context, run holdfast.Run) (bool, error) {
	rec, err := f.r.opts.Store.Cluster(ctx, run.Cluster)
	if err != nil {
		return false, fmt.Errorf("read cluster %q: %w", run.Cluster, err)
	}
	if run.Kind == holdfast.RunDestroy {
		return !f.r.intake.Seen(rec.Owner), nil
	}
	return f.r.intake.Awaited(rec.Owner), nil
}

// Awaited are the repositories that are about to be read.
func (f fleet) Awaited() []string { return f.r.intake.AllAwaited() }

// Fork reports whether a run is of a pull request from a fork.
func (f fleet) Fork(ctx context.Context, run holdfast.Run) (bool, error) {
	pr, err := f.r.opts.Store.PullRequest(ctx, run.PullRequest)
	if errors.Is(err, holdfast.ErrNotFound) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("read pull request %s: %w", run.PullRequest, err)
	}
	return pr.Fork, nil
}

// Assignment records on a run what its attempt starts from, and returns
// what the attempt needs to know of it.
func (f fleet) Assignment(ctx context.Context, run holdfast.Run) (protocol.Assignment, holdfast.Run, error) {
	return f.r.loop.Assignment(ctx, run)
}

// Changed asks for everything that a run's change of status may bear on.
func (f fleet) Changed(ctx context.Context, run holdfast.Run) { f.r.agenda.FollowUp(ctx, run) }

// Look asks for another look at what a request names.
func (f fleet) Look(req holdfast.Request) { f.r.agenda.Request(req) }

// Cost returns what a plan changes of the monthly price; nil if costs are not estimated.
func (f fleet) Cost(c holdfast.Cluster, document plandoc.Document) *holdfast.Cost {
	if f.r.opts.Grants.Cost == nil {
		return nil
	}
	cost := f.r.opts.Grants.Cost(c, document)
	return &cost
}

// Wake wakes all replicas, this one too.
func (f fleet) Wake(ctx context.Context, topic string) { f.r.wake(ctx, topic) }

// Finished measures and traces an attempt.
func (f fleet) Finished(run holdfast.Run, steps []protocol.Step) {
	for _, step := range steps {
		f.r.opts.Telemetry.Metrics.Step(step.Name, step.Duration)
	}
	f.r.traces.Run(run, steps)
}

// Held notifies those whose runs wait for a provider, or continue.
func (f fleet) Held(ctx context.Context, provider string) {
	if err := f.r.agenda.FollowHold(ctx, provider); err != nil {
		f.r.opts.Telemetry.Logger.WarnContext(ctx, "runs that wait for a provider were not updated", "provider", provider, "err", err)
	}
}

// sweep watches the leases of running attempts until ctx is done, and measures
// the queues meanwhile.
func (r *Reconciler) sweep(ctx context.Context) error {
	ticker := time.NewTicker(r.opts.Limits.Lease / 6)
	defer ticker.Stop()
	watch := clock.NewWatch(r.opts.Now)
	var unchecked, unsaved queue.Trouble
	for {
		r.seeClock(ctx, watch)
		if err := r.dispatcher.Sweep(ctx); err == nil {
			unchecked.Over()
		} else if ctx.Err() == nil && unchecked.Says(err, r.opts.Now()) {
			r.opts.Telemetry.Logger.ErrorContext(ctx, "leases were not checked", "err", err)
		}
		if !r.leader.Leads(leader.Fleet) {
			unsaved.Over()
		} else if err := errors.Join(r.rescue.Pass(ctx), r.runners.Again(ctx)); err == nil {
			unsaved.Over()
		} else if ctx.Err() == nil && unsaved.Says(err, r.opts.Now()) {
			r.opts.Telemetry.Logger.ErrorContext(ctx, "unsaved states were not checked", "err", err)
		}
		looks, requests := r.agenda.Depths()
		r.opts.Telemetry.Metrics.Depth("requests", requests)
		r.opts.Telemetry.Metrics.Depth("sources", looks)
		r.opts.Telemetry.Metrics.Depth("upgrades", r.upgrades.Depth())
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// seeClock has everything that waits for a time look at its wait again if the clock was set
// back.
func (r *Reconciler) seeClock(ctx context.Context, watch *clock.Watch) {
	by := watch.SetBack()
	if by == 0 {
		return
	}
	r.opts.Telemetry.Logger.WarnContext(ctx, "the clock was set back", "duration", by)
	if err := r.opts.Store.ClockSetBack(ctx, by); err != nil {
		r.opts.Telemetry.Logger.ErrorContext(ctx, "waiting work was not rescheduled", "err", err)
	}
	r.publish.Wake()
}

func newRescue(r *Reconciler) *rescue.Keeper {
	return rescue.New(rescue.Options{
		Store: r.opts.Store, Fleet: rescuing{r}, Delay: r.opts.Limits.RetryDelay, Logger: r.opts.Telemetry.Logger, Now: r.opts.Now,
	})
}

// rescuing is the Reconciler as its rescue.Keeper sees it.
type rescuing struct{ r *Reconciler }

// Queued tells agents that there is work.
func (s rescuing) Queued(ctx context.Context) { s.r.dispatcher.Queued(ctx) }

// Look asks for another look at a cluster, and at the pull requests that touch it.
func (s rescuing) Look(ctx context.Context, cluster string) {
	s.r.agenda.RequestCluster(cluster)
	if err := s.r.agenda.RequestOpen(ctx, cluster); err != nil {
		s.r.opts.Telemetry.Logger.WarnContext(ctx, "open pull requests were not queued", "cluster", cluster, "err", err)
	}
}
