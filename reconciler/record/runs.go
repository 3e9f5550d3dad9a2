package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// Unended are the statuses of runs that have not ended.
func Unended() []holdfast.RunStatus {
	return []holdfast.RunStatus{holdfast.RunQueued, holdfast.RunRetrying, holdfast.RunRunning}
}

// Cancel ends a run that has not begun, and asks a running one to stop.
func (w *Writer) Cancel(ctx context.Context, id string, reason holdfast.Reason) error {
	return w.cancel(ctx, id, reason, "")
}

// CancelBy is Cancel for a person. A running run says who that was until it has ended: its
// engine may ignore for long that it is to stop.
func (w *Writer) CancelBy(ctx context.Context, id, who string) error {
	detail := "canceled by " + who + " at " + w.opts.Now().UTC().Format(time.DateTime) + " UTC; it ends once its engine has stopped"
	return w.cancel(ctx, id, holdfast.ReasonCanceled, detail)
}

func (w *Writer) cancel(ctx context.Context, id string, reason holdfast.Reason, detail string) error {
	for {
		run, err := w.opts.Store.Run(ctx, id)
		if err != nil {
			return fmt.Errorf("read run %s: %w", id, err)
		}
		switch {
		case run.Status.Done(), run.Cancel == reason, run.Cancel != "" && run.Cancel != holdfast.ReasonPreempted:
			return nil // a run that is to step back for an apply would come again
		case run.Status == holdfast.RunRunning:
			run.Cancel, run.Detail = reason, cmp.Or(detail, run.Detail)
		default:
			run.Status, run.Reason, run.FinishedAt = holdfast.RunCanceled, reason, w.opts.Now()
		}
		updated, err := w.opts.Store.UpdateRun(ctx, run)
		if errors.Is(err, holdfast.ErrConflict) {
			continue
		} else if err != nil {
			return fmt.Errorf("cancel run %s: %w", id, err)
		}
		if updated.Status.Done() {
			w.opts.Ended(ctx, updated)
		}
		return nil
	}
}

// CancelPending cancels all runs of a cluster that have not begun, but not those that
// put its state right: what an engine could not save is pushed, and a lock is released,
// whatever happens to the cluster.
func (w *Writer) CancelPending(ctx context.Context, cluster string, reason holdfast.Reason) error {
	runs, err := w.opts.Store.Runs(ctx, holdfast.RunFilter{Cluster: cluster, Statuses: Unended(), Limit: 1000})
	if err != nil {
		return fmt.Errorf("list runs of %q: %w", cluster, err)
	}
	runs = slices.DeleteFunc(runs, func(run holdfast.Run) bool { return !run.Kind.Plans() })
	for _, id := range decision.Pending(runs) {
		if err := w.Cancel(ctx, id, reason); err != nil {
			return err
		}
	}
	return nil
}

// Running returns the run of a cluster that an agent executes; nil if there is none.
func (w *Writer) Running(ctx context.Context, cluster string) (*holdfast.Run, error) {
	running, err := w.opts.Store.Runs(ctx, holdfast.RunFilter{
		Cluster: cluster, Statuses: []holdfast.RunStatus{holdfast.RunRunning},
	})
	if err != nil {
		return nil, fmt.Errorf("list running runs of %q: %w", cluster, err)
	}
	if len(running) == 0 {
		return nil, nil
	}
	return &running[0], nil
}

// Moment returns the time for a new run of the cluster: now, but later than its
// newest run and than what was last applied, under whatever name, by a
// millisecond that its id shows. Runs are distinguished by their order, which a
// clock that was set back must not turn around.
func (w *Writer) Moment(ctx context.Context, cluster string) (time.Time, error) {
	now := w.opts.Now()
	runs, err := w.opts.Store.Runs(ctx, holdfast.RunFilter{Cluster: cluster, Limit: 1})
	if err != nil {
		return now, fmt.Errorf("list runs of %q: %w", cluster, err)
	}
	last := decision.Newest(runs)
	rec, err := w.opts.Store.Cluster(ctx, cluster)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return now, fmt.Errorf("read cluster %q: %w", cluster, err)
	}
	if id := max(rec.Applied.Run, rec.Life); id > last.ID {
		if last, err = w.opts.Store.Run(ctx, id); err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return now, fmt.Errorf("read run %s: %w", id, err)
		}
	}
	if next := last.CreatedAt.Truncate(time.Millisecond).Add(time.Millisecond); now.Before(next) {
		now = next
	}
	return now, nil
}

// FillApplied gives a run what the record says was last applied, with the engine of
// that time.
func FillApplied(rec holdfast.ClusterRecord, run *holdfast.Run) {
	last := rec.Applied
	run.Repo, run.Revision, run.SourceDigest, run.Document = rec.Owner, last.Revision, last.SourceDigest, last.Document
	run.Bundle, run.Dir, run.StateLocation, run.Template = last.Bundle, last.Dir, last.StateLocation, last.Template
	run.OutputRoles, run.Stored = last.OutputRoles, last.Stored
	run.Exact = true
}
