package reconciler

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// saveCluster stores a record that was read as before, with its phase, its
// conditions and the time of its next check for drift as they follow from it and
// from the runs of its tracked branch, newest first. What has changed of them
// goes into its history. It writes nothing if nothing has changed.
func (r *Reconciler) saveCluster(
	ctx context.Context, before, rec holdfast.ClusterRecord, runs []holdfast.Run,
) (holdfast.ClusterRecord, error) {
	now := r.opts.Now()
	rec.Phase, rec.Conditions = decision.Lifecycle(now, rec, runs)
	rec.Drift.Due = driftDue(now, rec, r.opts.DriftSchedule)
	rec.UpdatedAt = before.UpdatedAt
	if rec.Version > 0 && sameRecord(before, rec) {
		return before, nil
	}
	rec.UpdatedAt = now
	saved, err := r.opts.Store.SaveCluster(ctx, rec, decision.Transitions(now, before, rec, runs)...)
	if err != nil {
		return saved, fmt.Errorf("record cluster %q: %w", rec.Name, err)
	}
	if due := saved.Drift.Due; !due.IsZero() && !due.Equal(before.Drift.Due) && due.Before(now.Add(driftLatest)) {
		r.wake(ctx, topicDrift)
	}
	if before.Phase != saved.Phase {
		r.opts.Logger.InfoContext(ctx, "phase has changed", "cluster", rec.Name, "from", before.Phase, "to", saved.Phase)
	}
	return saved, nil
}

// sameRecord compares as the store keeps records: see sameDesired.
func sameRecord(a, b holdfast.ClusterRecord) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
