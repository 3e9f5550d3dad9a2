package commands

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/history"
)

// What is suspended: no apply, no destroy and no drift check begins; what
// runs is left alone. Plans of pull requests continue: they change nothing, and
// people want to read them meanwhile.

// Suspend stops new applies, destroys and drift checks of a cluster, for a reason
// that may be empty, or lets them continue. It returns the cluster's record as that has
// made it: others may have said the opposite since.
func (o *Operator) Suspend(
	ctx context.Context, cluster string, suspended bool, actor, reason string,
) (holdfast.ClusterRecord, error) {
	for {
		before, err := o.opts.Store.Cluster(ctx, cluster)
		if err != nil {
			return before, fmt.Errorf("read cluster %q: %w", cluster, err)
		}
		runs, err := history.Branch(ctx, o.opts.Store, cluster)
		if err != nil {
			return before, err
		}
		rec, action := before, "cluster.resume"
		rec.Suspended, rec.SuspendedWhy, rec.SuspendedBy, rec.SuspendedAt = suspended, "", "", time.Time{}
		if suspended {
			action = "cluster.suspend"
			rec.SuspendedWhy, rec.SuspendedBy, rec.SuspendedAt = reason, actor, o.opts.Now()
		}
		saved, err := o.Records.Save(ctx, before, rec, runs)
		if errors.Is(err, holdfast.ErrConflict) {
			continue
		} else if err != nil {
			return before, err
		}
		o.Records.Audit(ctx, actor, action, cluster, reason)
		o.Agenda.RequestCluster(cluster)
		if !suspended {
			return saved, nil
		}
		return saved, o.dropChecks(ctx, holdfast.RunFilter{Cluster: cluster}, "")
	}
}

// SuspendAll stops new applies, destroys and drift checks of all clusters of
// a project (empty: of all clusters), or lets them continue. It is an ErrNotFound
// if there is no such project, or, to continue, if it was not stopped.
func (o *Operator) SuspendAll(ctx context.Context, s holdfast.Suspension, suspended bool) error {
	suspend, resume, object := "fleet.suspend", "fleet.resume", "fleet"
	if s.Project != "" {
		suspend, resume, object = "project.suspend", "project.resume", s.Project
	}
	if !suspended {
		err := o.opts.Store.Resume(ctx, s.Project)
		if err == nil {
			o.Records.Audit(ctx, s.By, resume, object, s.Reason)
		}
		// Whoever resumes again after an error has those asked for that were
		// forgotten then. One that was applied in the project may have another by now.
		return errors.Join(err, o.askAgain(ctx, holdfast.ClusterFilter{Waiting: holdfast.ReasonSuspended}))
	}
	if s.Project != "" {
		n, err := o.opts.Store.CountClusters(ctx, holdfast.ClusterFilter{Project: s.Project})
		if err != nil {
			return fmt.Errorf("count clusters of project %q: %w", s.Project, err)
		} else if n == 0 {
			return holdfast.ErrorOf(holdfast.ErrNotFound, "project %q has no cluster", s.Project)
		}
	}
	if s.At.IsZero() {
		s.At = o.opts.Now().UTC()
	}
	if err := o.opts.Store.Suspend(ctx, s); err != nil {
		return fmt.Errorf("suspend %s: %w", object, err)
	}
	o.Records.Audit(ctx, s.By, suspend, object, s.Reason)
	// Nothing begins from here on. What follows is for people to see.
	return errors.Join(
		o.dropChecks(ctx, holdfast.RunFilter{}, s.Project),
		o.askAgain(ctx, holdfast.ClusterFilter{Project: s.Project, Waiting: "*"}),
	)
}

// dropChecks cancels the drift checks that have not begun, which stay due,
// and asks for the clusters that have other runs in the queue.
func (o *Operator) dropChecks(ctx context.Context, filter holdfast.RunFilter, project string) error {
	filter.Statuses = []holdfast.RunStatus{holdfast.RunQueued, holdfast.RunRetrying}
	filter.Limit = 100_000
	queued, err := o.opts.Store.Runs(ctx, filter)
	if err != nil {
		return fmt.Errorf("list queued runs: %w", err)
	}
	for _, run := range queued {
		switch {
		case project != "" && run.Document.Project != project:
		case run.Kind == holdfast.RunDrift:
			if err := o.Records.Cancel(ctx, run.ID, holdfast.ReasonSuspended); err != nil {
				return err
			}
		case run.PullRequest.IsZero():
			o.Agenda.RequestCluster(run.Cluster)
		}
	}
	return nil
}

const (
	// Of many clusters that are asked for at once, so many come together, so far apart:
	// what is pushed meanwhile does not wait behind all of them.
	askedTogether = 100
	askedApart    = 100 * time.Millisecond
)

// askAgain asks for the clusters that match.
func (o *Operator) askAgain(ctx context.Context, filter holdfast.ClusterFilter) error {
	records, err := o.opts.Store.Clusters(ctx, filter)
	if err != nil {
		return fmt.Errorf("list clusters: %w", err)
	}
	for i, rec := range records {
		o.Agenda.RequestAfter(holdfast.Request{Cluster: rec.Name}, time.Duration(i/askedTogether)*askedApart)
	}
	return nil
}
