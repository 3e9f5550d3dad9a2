package lineage

import (
	"context"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/history"
)

// Store is what a Reader needs; *datastore.Store is one.
type Store interface {
	Records
	history.Artefacts
	// ClusterNames returns the names of the clusters that match, sorted.
	ClusterNames(ctx context.Context, filter holdfast.ClusterFilter) ([]string, error)
}

// Records are those of clusters and runs.
type Records interface {
	Cluster(ctx context.Context, name string) (holdfast.ClusterRecord, error)
	Clusters(ctx context.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterRecord, error)
	// ClustersAt returns the names of the clusters that had a run with a state
	// which is not in Holdfast's own backend.
	ClustersAt(ctx context.Context, location string) ([]string, error)
	// Runs returns the runs that match, newest first.
	Runs(ctx context.Context, filter holdfast.RunFilter) ([]holdfast.Run, error)
}

// Reader says how clusters are related. It is safe for concurrent use.
type Reader struct {
	store    Store
	catalogs *catalog.Reader
}

// NewReader returns a Reader.
func NewReader(store Store, catalogs *catalog.Reader) *Reader {
	return &Reader{store: store, catalogs: catalogs}
}

// Branch is what is known of the tracked branch that a tree is of, or is to be merged
// into.
type Branch struct {
	// Waiting are the clusters that are looked at again with each head: one that waits
	// for its new name may be among them.
	Waiting []string
	// Adopted: nothing of the branch was ever taken in, as with a new installation or
	// after the loss of a database. Its renames may all have been made before.
	Adopted bool
}

// Faults is what is wrong with a document in the company of others: it shares a
// state, its dependencies go in a circle, its former name is still there.
func (r *Reader) Faults(
	ctx context.Context, cat *catalog.Catalog, res *catalog.Resolution, rec holdfast.ClusterRecord, branch Branch,
) (holdfast.Faults, error) {
	circular, err := r.circular(ctx, cat, res)
	if err != nil {
		return nil, err
	}
	renamed, err := r.notRenamed(ctx, cat, res.Doc, rec, branch)
	if err != nil {
		return nil, err
	}
	shared, err := r.SharedState(ctx, cat, res, rec)
	if err != nil {
		return nil, err
	}
	return slices.Concat(shared, circular, renamed), nil
}
