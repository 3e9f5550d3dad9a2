package reconciler_test

import (
	"context"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// auditedStore counts the entries of the audit trail that are written apart from what
// they tell of.
type auditedStore struct {
	reconciler.Store
	*work
}

func (s auditedStore) Audit(ctx context.Context, entry holdfast.AuditEntry) error {
	s.add(entry.Action, 1)
	return s.Store.Audit(ctx, entry)
}

// TestQueuedRunIsOneWrite: that a run was queued is on record with the run itself, and
// not in another write.
func TestQueuedRunIsOneWrite(t *testing.T) {
	t.Parallel()
	counted := &work{counts: make(map[string]int)}
	f := newFleet(t, map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one")},
		func(opts *reconciler.Options) { opts.Store = auditedStore{opts.Store, counted} })
	f.look()
	run := f.newest("prod")
	trail, err := f.store.AuditTrail(t.Context(), run.ID, 0)
	f.must(err)
	if len(trail) != 1 || trail[0].Action != "run.queue" || trail[0].Actor != "holdfast" {
		t.Errorf("the audit trail of the run is %+v", trail)
	}
	if n := counted.done()["run.queue"]; n != 0 {
		t.Errorf("%d entries were written apart from their runs", n)
	}
}

// TestAppliedClusterIsOneWrite: that a cluster was applied is in the audit trail with its
// record, and not in another write.
func TestAppliedClusterIsOneWrite(t *testing.T) {
	t.Parallel()
	counted := &work{counts: make(map[string]int)}
	f := newFleet(t, map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one")},
		func(opts *reconciler.Options) { opts.Store = auditedStore{opts.Store, counted} })
	f.adopt()
	trail, err := f.store.AuditTrail(t.Context(), "prod", 0)
	f.must(err)
	if len(trail) != 1 || trail[0].Action != "cluster.applied" {
		t.Errorf("the audit trail of the cluster is %+v", trail)
	}
	if n := counted.done()["cluster.applied"]; n != 0 {
		t.Errorf("%d entries were written apart from the records of their clusters", n)
	}
}
