package byname

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// AtOnce is how many records are read, and kept in memory, at once: of more names
// than that each part is read for itself.
const AtOnce = 100

// Store has the records of clusters; *datastore.Store is one.
type Store interface {
	Clusters(ctx context.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterRecord, error)
}

// Records returns the records of clusters by name, without those that there are none
// of. Names are at most AtOnce.
func Records(ctx context.Context, store Store, names []string) (map[string]holdfast.ClusterRecord, error) {
	list, err := store.Clusters(ctx, holdfast.ClusterFilter{Names: names})
	if err != nil {
		return nil, fmt.Errorf("read clusters: %w", err)
	}
	records := make(map[string]holdfast.ClusterRecord, len(list))
	for _, rec := range list {
		records[rec.Name] = rec
	}
	return records, nil
}
