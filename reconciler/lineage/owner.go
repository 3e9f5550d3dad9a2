package lineage

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
	"github.com/holdfast-dev/holdfast/reconciler/history"
)

// BelongsElsewhere reports whether a name belongs to another repository. One that was
// removed there before its first apply is free.
func (r *Reader) BelongsElsewhere(ctx context.Context, repo string, rec holdfast.ClusterRecord) (bool, error) {
	if rec.Name == "" || rec.Owner == repo || rec.Deletion != nil {
		return false, nil
	}
	never, err := neverApplied(ctx, r.store, rec)
	return !never, err
}

// neverApplied reports whether a cluster was removed before its first apply: nothing of it
// exists, and nothing will. An apply that has not ended may still begin.
func neverApplied(ctx context.Context, from history.Runs, rec holdfast.ClusterRecord) (bool, error) {
	if rec.Applied.Run != "" || !rec.Desired.Removed {
		return false, nil
	}
	runs, err := history.Branch(ctx, from, rec.Name)
	if err != nil {
		return false, err
	}
	return inherited(rec, runs).Run == "" && len(underWay(rec, runs)) == 0, nil
}

// underWay are the runs of a cluster that write, or will, and have not ended.
func underWay(rec holdfast.ClusterRecord, runs []holdfast.Run) []holdfast.Run {
	return slices.DeleteFunc(slices.Clone(runs), func(run holdfast.Run) bool {
		return !run.Kind.Writes() || run.Status.Done() || run.ID <= rec.Life
	})
}

// BelongsTo says to which repository a name belongs.
func BelongsTo(rec holdfast.ClusterRecord) string {
	return fmt.Sprintf("the name %q belongs to repository %q", rec.Name, rec.Owner)
}

// OwnedElsewhere is the fault of a document whose name belongs to another repository.
func (r *Reader) OwnedElsewhere(
	ctx context.Context, repo string, rec holdfast.ClusterRecord, res *catalog.Resolution,
) (holdfast.Faults, error) {
	if is, err := r.BelongsElsewhere(ctx, repo, rec); err != nil || !is {
		return nil, err
	}
	return holdfast.Faults{res.Doc.Fault(
		fmt.Sprintf("%s (%s)", BelongsTo(rec), rec.Desired.Document.Path),
		"choose another metadata.name, or merge it as it is and take the cluster over with holdfast transfer", "metadata", "name",
	)}, nil
}
