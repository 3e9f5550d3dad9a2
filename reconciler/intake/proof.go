package intake

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/lineage"
)

// rewritten reports whether the branch was forced to another history: where a
// document was last seen may no longer be in it.
func (b *branches) rewritten(ctx context.Context, repo Repository, former, head holdfast.Revision) bool {
	if former == "" || former == head {
		return false
	}
	goesOn, err := b.opts.Sources.Git.IsAncestor(ctx, repo.Name, former, head)
	return err != nil || !goesOn
}

// removedBy counts the clusters that a head has removed, and those of the repository that
// were applied, if it has removed any.
func (b *branches) removedBy(ctx context.Context, repo Repository, now branchHead, names []string) (n, applied int, err error) {
	for _, name := range names {
		if len(now.cat.Named(name)) > 0 {
			continue
		}
		if heirs, err := b.Lineage.Heirs(ctx, now.cat, name); err != nil {
			return 0, 0, err
		} else if len(heirs) > 0 {
			continue
		}
		rec, err := b.ownRecord(ctx, repo, name)
		if err != nil {
			return 0, 0, err
		}
		if rec.Name == "" || rec.Deletion != nil || rec.Desired.Removed {
			continue
		}
		doubt, err := b.missing(ctx, repo, now, rec)
		if err != nil {
			return 0, 0, err
		}
		if doubt.Why == "" {
			n++
		}
	}
	if n == 0 {
		return 0, 0, nil
	}
	applied, err = b.opts.Store.CountClusters(ctx, holdfast.ClusterFilter{Owner: repo.Name, Applied: true})
	if err != nil {
		return 0, 0, fmt.Errorf("count applied clusters of %q: %w", repo.Name, err)
	}
	return n, applied, nil
}

// emptied says that a branch that no longer defines anything had several clusters;
// empty if only the last one went.
func emptied(ctx context.Context, store Clusters, repo Repository) (string, error) {
	all, err := store.CountClusters(ctx, holdfast.ClusterFilter{Owner: repo.Name})
	if err != nil {
		return "", fmt.Errorf("count clusters of %q: %w", repo.Name, err)
	}
	going, err := store.CountClusters(ctx, holdfast.ClusterFilter{Owner: repo.Name, Phase: holdfast.PhaseDeleting})
	if err != nil {
		return "", fmt.Errorf("count removed clusters of %q: %w", repo.Name, err)
	}
	if all-going > 1 {
		return fmt.Sprintf("branch %q no longer defines any of %d clusters: to remove them all, leave one for last", repo.Branch, all-going), nil
	}
	return "", nil
}

// missing is why a document that is not there is not proven to be removed. It
// is: gone from a tree that parsed, on a branch that continues from where it
// was. A file that cannot be read, the same document under another name, an emptied
// branch, a path that is no longer looked at, or another history prove nothing.
func (b *branches) missing(
	ctx context.Context, repo Repository, now branchHead, rec holdfast.ClusterRecord,
) (lineage.Doubt, error) {
	none := lineage.Doubt{}
	since := now.former // where it was still there
	if rec.Desired.Missing != "" {
		since = rec.Desired.Revision
	}
	gone, err := b.Lineage.DocumentsAt(ctx, repo.Name, since, rec)
	if err != nil {
		return none, err
	}
	for _, doc := range gone { // several are a fault, and each may still be there
		if doubt, err := b.Lineage.Unproven(ctx, now.cat, string(since), doc, rec); err != nil || doubt.Why != "" {
			return doubt, err
		}
	}
	if now.cat.Len() == 0 {
		why, err := emptied(ctx, b.opts.Store, repo)
		if err != nil || why != "" {
			return lineage.Doubt{Why: why}, err
		}
	}
	last := rec.Applied.Revision
	if last == "" {
		last = rec.Desired.Revision
	}
	if last == "" {
		return none, nil
	}
	before, err := b.opts.Sources.Git.IsAncestor(ctx, repo.Name, last, now.revision)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return none, fmt.Errorf("look for %s in %s: %w", last.Short(), now.revision.Short(), err)
	}
	if err != nil || !before {
		return lineage.Doubt{Why: fmt.Sprintf("branch %q does not contain %s, where it was applied", repo.Branch, last.Short())}, nil
	}
	return none, nil
}
