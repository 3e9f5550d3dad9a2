package lineage

import (
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
)

// BelongsElsewhere reports whether a name belongs to another repository.
func BelongsElsewhere(repo string, rec holdfast.ClusterRecord) bool {
	free := rec.Applied.Run == "" && rec.Desired.Removed || rec.Deletion != nil
	return rec.Name != "" && rec.Owner != repo && !free
}

// BelongsTo says to which repository a name belongs.
func BelongsTo(rec holdfast.ClusterRecord) string {
	return fmt.Sprintf("the name %q belongs to repository %q", rec.Name, rec.Owner)
}

// OwnedElsewhere is the fault of a document whose name belongs to another
// repository. Before its first apply a name that was removed there is free.
func OwnedElsewhere(repo string, rec holdfast.ClusterRecord, res *catalog.Resolution) holdfast.Faults {
	if !BelongsElsewhere(repo, rec) {
		return nil
	}
	return holdfast.Faults{res.Doc.Fault(
		fmt.Sprintf("%s (%s)", BelongsTo(rec), rec.Desired.Document.Path),
		"choose another metadata.name, or merge it as it is and take the cluster over with holdfast transfer", "metadata", "name",
	)}
}
