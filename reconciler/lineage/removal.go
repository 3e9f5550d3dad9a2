package lineage

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
)

// Unproven is why a tree without a document does not prove that its cluster, whose
// record is rec, was removed, whatever branch the tree is of; empty if it does. Before
// names the tree that was compared with; empty if that is not known.
func (r *Reader) Unproven(
	ctx context.Context, cat *catalog.Catalog, before string, gone holdfast.Cluster, rec holdfast.ClusterRecord,
) (string, error) {
	if why := cat.Unproven(gone.Name, gone.Path); why != "" {
		return why, nil
	}
	if why, err := r.retitled(ctx, cat, before, gone, rec); err != nil || why != "" {
		return why, err
	}
	if why, err := r.unknownHeir(ctx, cat, rec); err != nil || why != "" {
		return why, err
	}
	return r.stateElsewhere(ctx, cat, rec)
}

// retitled is why a cluster that is gone must not be destroyed: its document is still
// there, with another name that no cluster was applied under. Empty if it is not. Those
// that were beside it before are clusters of their own.
func (r *Reader) retitled(
	ctx context.Context, cat *catalog.Catalog, before string, gone holdfast.Cluster, rec holdfast.ClusterRecord,
) (string, error) {
	if rec.Name == "" {
		return "", nil
	}
	applied, err := r.Inherited(ctx, rec)
	if err != nil || applied.Run == "" {
		return "", err
	}
	others := cat.Retitled(gone)
	if others, err = r.newSince(ctx, cat.Repo, before, others, rec); err != nil {
		return "", err
	}
	for _, other := range others {
		known, err := r.store.Cluster(ctx, other.Name)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return "", fmt.Errorf("read cluster %q: %w", other.Name, err)
		}
		if known.Applied.Run == "" {
			return fmt.Sprintf("%s:%d is its document, with the name %q: correct that, or say metadata.renamedFrom: %s there; "+
				"a cluster that replaces it comes in a change of its own", other.Path, other.Line, other.Name, rec.Name), nil
		}
	}
	return "", nil
}

// newSince returns those of some documents whose names the tree before does not define;
// all of them if rec was missing there already, or nobody knows that tree.
func (r *Reader) newSince(
	ctx context.Context, repo, before string, docs []holdfast.Cluster, rec holdfast.ClusterRecord,
) ([]holdfast.Cluster, error) {
	if len(docs) == 0 || before == "" || rec.Desired.Missing != "" {
		return docs, nil
	}
	cat, err := r.catalogs.Read(ctx, repo, before)
	if errors.Is(err, holdfast.ErrNotFound) {
		return docs, nil
	} else if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(docs, func(c holdfast.Cluster) bool { return len(cat.Named(c.Name)) > 0 }), nil
}
