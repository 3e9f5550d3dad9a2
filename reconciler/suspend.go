package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/history"
)

// What is suspended: no apply, no destroy and no check for drift begins; what
// runs is left alone. Plans of pull requests go on: they change nothing, and
// people want to read them meanwhile.

// suspension is what a cluster is suspended with: itself, its project, as it is
// desired or was applied, or the fleet; empty if it is not.
func (r *Reconciler) suspension(ctx context.Context, rec holdfast.ClusterRecord) (string, error) {
	if rec.Suspended {
		return decision.SuspendedCluster, nil
	}
	all, err := r.opts.Store.Suspensions(ctx)
	if err != nil {
		return "", fmt.Errorf("list suspensions: %w", err)
	}
	scope := ""
	for _, s := range all {
		switch s.Project {
		case "":
			return decision.SuspendedFleet, nil
		case rec.Desired.Document.Project, rec.Applied.Document.Project:
			scope = decision.SuspendedProject
		}
	}
	return scope, nil
}

// stopped reports whether a run may no longer begin since it was queued. Then
// it is cancelled, and asked for again when that ends.
func (r *Reconciler) stopped(ctx context.Context, run holdfast.Run) (bool, error) {
	if run.Kind == holdfast.RunPlan || run.Kind == holdfast.RunState { // neither changes infrastructure
		return false, nil
	}
	rec, err := r.opts.Store.Cluster(ctx, run.Cluster)
	if errors.Is(err, holdfast.ErrNotFound) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("read cluster %q: %w", run.Cluster, err)
	}
	scope, err := r.suspension(ctx, rec)
	if err != nil {
		return false, err
	}
	if scope != "" {
		return true, r.records.Cancel(ctx, run.ID, holdfast.ReasonSuspended)
	}
	in := decision.Input{Now: r.opts.Now(), Cluster: rec}
	if lookAtWindows(&in); run.Kind.Writes() && in.WindowClosed {
		return true, r.records.Cancel(ctx, run.ID, holdfast.ReasonWindowClosed)
	}
	if decision.IsRemedy(run) && run.Actor == "" && run.Shown == rec.Drift.Run && !decision.Fresh(rec.Drift, in.Now) {
		return true, r.records.Cancel(ctx, run.ID, holdfast.ReasonSuperseded) // it is looked at again first
	}
	if run.Kind != holdfast.RunDestroy {
		return false, nil
	}
	spared, err := r.spares(ctx, run)
	if err != nil { // it waits; other runs need not
		r.opts.Logger.WarnContext(ctx, "destroy was held back", "run", run.ID, "cluster", run.Cluster, "err", err)
		return true, nil
	}
	return spared, nil
}

// spares reports whether a destroy may not begin: it has to be what would be
// decided now. What Git says may be on record as a former process has left it.
func (r *Reconciler) spares(ctx context.Context, run holdfast.Run) (bool, error) {
	req := holdfast.Request{Cluster: run.Cluster}
	in, err := r.observe(ctx, req)
	if err != nil {
		return false, fmt.Errorf("observe cluster %q: %w", run.Cluster, err)
	}
	if decision.Newest(in.Runs).ID != run.ID { // two replicas have queued one each
		return true, r.records.Cancel(ctx, run.ID, holdfast.ReasonSuperseded)
	}
	d := decision.Decide(in)
	same := run.SourceDigest.Equal(decision.Desired(in))
	asDecided := slices.Contains([]holdfast.Reason{holdfast.ReasonInProgress, holdfast.ReasonProviderThrottled, holdfast.ReasonNoAgent}, d.Reason)
	if same && asDecided && len(d.Cancel) == 0 && !in.Unseen {
		return false, nil
	}
	if !in.Unseen {
		r.agenda.Request(req)
	}
	return true, nil
}

// Suspend stops new applies, destroys and checks for drift of a cluster, for a reason
// that may be empty, or lets them go on.
func (r *Reconciler) Suspend(ctx context.Context, cluster string, suspended bool, actor, reason string) error {
	for {
		before, err := r.opts.Store.Cluster(ctx, cluster)
		if err != nil {
			return fmt.Errorf("read cluster %q: %w", cluster, err)
		}
		runs, err := history.Branch(ctx, r.opts.Store, cluster)
		if err != nil {
			return err
		}
		rec, detail := before, fmt.Sprint(suspended)
		rec.Suspended, rec.SuspendedWhy = suspended, ""
		if suspended {
			rec.SuspendedWhy = reason
		}
		if reason != "" {
			detail += ": " + reason
		}
		_, err = r.records.Save(ctx, before, rec, runs)
		if errors.Is(err, holdfast.ErrConflict) {
			continue
		} else if err != nil {
			return err
		}
		r.records.Audit(ctx, actor, "cluster.suspend", cluster, detail)
		r.agenda.RequestCluster(cluster)
		if !suspended {
			return nil
		}
		return r.dropChecks(ctx, holdfast.RunFilter{Cluster: cluster}, "")
	}
}

// SuspendAll stops new applies, destroys and checks for drift of all clusters of
// a project (empty: of all clusters), or lets them go on. It is an ErrNotFound
// if there is no such project, or, to go on, if it was not stopped.
func (r *Reconciler) SuspendAll(ctx context.Context, s holdfast.Suspension, suspended bool) error {
	action, object := "fleet.suspend", "fleet"
	if s.Project != "" {
		action, object = "project.suspend", s.Project
	}
	if !suspended {
		err := r.opts.Store.Resume(ctx, s.Project)
		if err == nil {
			r.records.Audit(ctx, s.By, action, object, "false")
		}
		// Whoever resumes again after an error has those asked for that were
		// forgotten then.
		return errors.Join(err, r.askAgain(ctx, holdfast.ClusterFilter{Project: s.Project, Waiting: holdfast.ReasonSuspended}))
	}
	if s.Project != "" {
		n, err := r.opts.Store.CountClusters(ctx, holdfast.ClusterFilter{Project: s.Project})
		if err != nil {
			return fmt.Errorf("count clusters of project %q: %w", s.Project, err)
		} else if n == 0 {
			return fmt.Errorf("project %q has no cluster: %w", s.Project, holdfast.ErrNotFound)
		}
	}
	if s.At.IsZero() {
		s.At = r.opts.Now().UTC()
	}
	if err := r.opts.Store.Suspend(ctx, s); err != nil {
		return fmt.Errorf("suspend %s: %w", object, err)
	}
	detail := "true"
	if s.Reason != "" {
		detail += ": " + s.Reason
	}
	r.records.Audit(ctx, s.By, action, object, detail)
	// Nothing begins from here on. What follows is for people to see.
	return errors.Join(
		r.dropChecks(ctx, holdfast.RunFilter{}, s.Project),
		r.askAgain(ctx, holdfast.ClusterFilter{Project: s.Project, Waiting: "*"}),
	)
}

// dropChecks cancels the checks for drift that have not begun, which stay due,
// and asks for the clusters that have other runs in the queue.
func (r *Reconciler) dropChecks(ctx context.Context, filter holdfast.RunFilter, project string) error {
	filter.Statuses = []holdfast.RunStatus{holdfast.RunQueued, holdfast.RunWaiting, holdfast.RunRetrying}
	filter.Limit = 100_000
	queued, err := r.opts.Store.Runs(ctx, filter)
	if err != nil {
		return fmt.Errorf("list queued runs: %w", err)
	}
	for _, run := range queued {
		switch {
		case project != "" && run.Document.Project != project:
		case run.Kind == holdfast.RunDrift:
			if err := r.records.Cancel(ctx, run.ID, holdfast.ReasonSuspended); err != nil {
				return err
			}
		case run.PullRequest.IsZero():
			r.agenda.RequestCluster(run.Cluster)
		}
	}
	return nil
}

const (
	// Of many clusters that are asked for at once, so many come together, so far
	// apart: what is pushed meanwhile does not stand behind all of them.
	askedTogether = 100
	askedApart    = 100 * time.Millisecond
)

// askAgain asks for the clusters that match.
func (r *Reconciler) askAgain(ctx context.Context, filter holdfast.ClusterFilter) error {
	records, err := r.opts.Store.Clusters(ctx, filter)
	if err != nil {
		return fmt.Errorf("list clusters: %w", err)
	}
	for i, rec := range records {
		r.agenda.RequestAfter(holdfast.Request{Cluster: rec.Name}, time.Duration(i/askedTogether)*askedApart)
	}
	return nil
}
