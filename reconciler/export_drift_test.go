package reconciler

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// DriftDue is when a cluster is checked next, by a clock that was never wrong.
func DriftDue(rec holdfast.ClusterRecord, fallback string) time.Time {
	now := rec.Drift.CheckedAt
	if rec.Applied.At.After(now) {
		now = rec.Applied.At
	}
	return decision.DriftDue(now, rec, fallback)
}

// DriftPass queues the checks that are due, if this replica may.
func (r *Reconciler) DriftPass(ctx context.Context) (time.Duration, error) {
	leased, err := r.leaseDrift(ctx, time.Time{})
	if err != nil || leased.IsZero() {
		return driftLatest, err
	}
	return r.driftPass(ctx)
}
