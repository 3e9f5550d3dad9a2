package reconciler

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Finding is what a check for drift has found.
type Finding struct {
	Items           []holdfast.DriftItem
	Counts          holdfast.DriftCounts
	Destroys, Hides bool
	Causes          []string
	Fingerprint     holdfast.Digest
}

// Judge tells in a plan what is drift.
func Judge(plan holdfast.Plan, rules []holdfast.DriftRule, now time.Time) Finding {
	f := judge(plan, rules, now)
	return Finding{f.items, f.counts, f.destroys, f.hides, f.causes, f.fingerprint}
}

// DriftDue is when a cluster is checked next, by a clock that was never wrong.
func DriftDue(rec holdfast.ClusterRecord, fallback string) time.Time {
	now := rec.Drift.CheckedAt
	if rec.Applied.At.After(now) {
		now = rec.Applied.At
	}
	return driftDue(now, rec, fallback)
}

// DriftPass queues the checks that are due, if this replica may.
func (r *Reconciler) DriftPass(ctx context.Context) (time.Duration, error) {
	leased, err := r.leaseDrift(ctx, time.Time{})
	if err != nil || leased.IsZero() {
		return driftLatest, err
	}
	return r.driftPass(ctx)
}

// RulesDigest is of the rules that hide anything at now.
func RulesDigest(rules []holdfast.DriftRule, now time.Time) holdfast.Digest {
	return rulesDigest(rules, now)
}
