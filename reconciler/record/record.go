package record

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// Store are the records that a Writer reads and writes; *datastore.Store is one.
type Store interface {
	Clusters
	Runs
	Trail
}

// Clusters are the records of clusters.
type Clusters interface {
	Cluster(ctx context.Context, name string) (holdfast.ClusterRecord, error)
	// SaveCluster creates (Version 0) or replaces a record, and adds to its
	// history in the same transaction.
	SaveCluster(ctx context.Context, c holdfast.ClusterRecord, history ...holdfast.Transition) (holdfast.ClusterRecord, error)
	// CreateClusters stores new records (Version 0), each with its history, in one
	// transaction, and returns them without those of which there is a record already.
	CreateClusters(ctx context.Context, records []holdfast.ClusterRecord, history ...holdfast.Transition) ([]holdfast.ClusterRecord, error)
}

// Trail is what somebody did.
type Trail interface {
	Audit(ctx context.Context, entry holdfast.AuditEntry) error
	// RecordCluster is SaveCluster with what the audit trail says of it, in the same
	// transaction.
	RecordCluster(
		ctx context.Context, c holdfast.ClusterRecord, entry holdfast.AuditEntry, history ...holdfast.Transition,
	) (holdfast.ClusterRecord, error)
}

// Runs are the records of runs.
type Runs interface {
	Run(ctx context.Context, id string) (holdfast.Run, error)
	// Runs returns the runs that match, newest first.
	Runs(ctx context.Context, filter holdfast.RunFilter) ([]holdfast.Run, error)
	// UpdateRun stores run if its Version is the stored one, otherwise it is an
	// ErrConflict.
	UpdateRun(ctx context.Context, run holdfast.Run) (holdfast.Run, error)
}

// Options are what a Writer needs. All are required unless noted.
type Options struct {
	Store         Store
	DriftSchedule string // for clusters whose documents have none; empty: none
	// Ended is called with each run that was canceled before it began.
	Ended func(ctx context.Context, run holdfast.Run)
	// DriftMoved is called when a drift check is due within DriftLatest, and was
	// not before.
	DriftMoved func(ctx context.Context)
	Logger     *slog.Logger
	Now        func() time.Time
}

// DriftLatest is the longest time between two looks at what is due: what no wake-up
// announced is seen then.
const DriftLatest = time.Minute

// Writer writes records. It is safe for concurrent use.
type Writer struct{ opts Options }

// NewWriter returns a Writer.
func NewWriter(opts Options) *Writer { return &Writer{opts: opts} }

// Save stores a record that was read as before, with its phase, its conditions, its former
// parents and the time of its next drift check as they follow from it and from the runs of
// its tracked branch, newest first. What has changed of them goes into its history.
// It writes nothing if nothing has changed.
func (w *Writer) Save(
	ctx context.Context, before, rec holdfast.ClusterRecord, runs []holdfast.Run,
) (holdfast.ClusterRecord, error) {
	return w.save(ctx, before, rec, runs, w.opts.Store.SaveCluster)
}

// Record is Save with what the audit trail says of it, in the same transaction. If nothing
// else has changed that alone is written.
func (w *Writer) Record(
	ctx context.Context, before, rec holdfast.ClusterRecord, runs []holdfast.Run, entry holdfast.AuditEntry,
) (holdfast.ClusterRecord, error) {
	written := false
	saved, err := w.save(ctx, before, rec, runs,
		func(ctx context.Context, c holdfast.ClusterRecord, history ...holdfast.Transition) (holdfast.ClusterRecord, error) {
			written = true
			return w.opts.Store.RecordCluster(ctx, c, entry, history...)
		})
	if err == nil && !written {
		w.audit(ctx, entry)
	}
	return saved, err
}

// saveFunc stores a record and what has changed of it.
type saveFunc func(ctx context.Context, c holdfast.ClusterRecord, history ...holdfast.Transition) (holdfast.ClusterRecord, error)

func (w *Writer) save(
	ctx context.Context, before, rec holdfast.ClusterRecord, runs []holdfast.Run, store saveFunc,
) (holdfast.ClusterRecord, error) {
	now := w.opts.Now()
	rec = w.complete(now, before, rec, runs)
	rec.UpdatedAt = before.UpdatedAt
	if rec.Version > 0 && Same(before, rec) {
		return before, nil
	}
	rec.UpdatedAt = now
	saved, err := store(ctx, rec, decision.Transitions(now, before, rec, runs)...)
	if err != nil {
		return saved, fmt.Errorf("record cluster %q: %w", rec.Name, err)
	}
	w.changed(ctx, now, before, saved)
	return saved, nil
}

// Create stores records of clusters that have none, as Save does and in one transaction. It
// returns those that it has stored: somebody else has stored the others meanwhile.
func (w *Writer) Create(ctx context.Context, records []holdfast.ClusterRecord) ([]holdfast.ClusterRecord, error) {
	now, none := w.opts.Now(), holdfast.ClusterRecord{}
	completed := make([]holdfast.ClusterRecord, len(records))
	var history []holdfast.Transition
	for i, rec := range records {
		rec = w.complete(now, none, rec, nil)
		rec.UpdatedAt = now
		completed[i], history = rec, append(history, decision.Transitions(now, none, rec, nil)...)
	}
	created, err := w.opts.Store.CreateClusters(ctx, completed, history...)
	if err != nil {
		return nil, fmt.Errorf("record new clusters: %w", err)
	}
	for _, rec := range created {
		w.changed(ctx, now, none, rec)
	}
	return created, nil
}

// complete adds to a record that was read as before what follows from it and from the runs
// of its tracked branch.
func (w *Writer) complete(now time.Time, before, rec holdfast.ClusterRecord, runs []holdfast.Run) holdfast.ClusterRecord {
	rec.Phase, rec.Conditions = decision.Lifecycle(now, rec, runs)
	rec.FormerParents = decision.FormerParents(before, rec, runs)
	rec.Drift.Due = decision.DriftDue(now, rec, w.opts.DriftSchedule)
	return rec
}

// changed tells others of a record that was stored.
func (w *Writer) changed(ctx context.Context, now time.Time, before, saved holdfast.ClusterRecord) {
	if due := saved.Drift.Due; !due.IsZero() && !due.Equal(before.Drift.Due) && due.Before(now.Add(DriftLatest)) {
		w.opts.DriftMoved(ctx)
	}
	if before.Phase != saved.Phase {
		w.opts.Logger.InfoContext(ctx, "phase has changed", "cluster", saved.Name, "from", before.Phase, "to", saved.Phase)
	}
}

// Same compares as records are kept: variables that were read from YAML and from the
// store have other types.
func Same[T any](a, b T) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// Entry is what the audit trail says of what somebody did; without an actor,
// Holdfast did it.
func (w *Writer) Entry(actor, action, object, detail string) holdfast.AuditEntry {
	return holdfast.NewAuditEntry(w.opts.Now(), actor, action, object, detail)
}

// Audit records what somebody did. A write at the same time includes its Entry instead.
func (w *Writer) Audit(ctx context.Context, actor, action, object, detail string) {
	w.audit(ctx, w.Entry(actor, action, object, detail))
}

func (w *Writer) audit(ctx context.Context, entry holdfast.AuditEntry) {
	if err := w.opts.Store.Audit(ctx, entry); err != nil {
		w.opts.Logger.ErrorContext(ctx, "audit entry was not stored", "action", entry.Action, "object", entry.Object, "err", err)
	}
}
