package byname

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// AtOnce is how many records are read, and kept in memory, at once: more names than
// that are read in several parts.
const AtOnce = 100

// Store has the records of clusters; *datastore.Store is one.
type Store interface {
	Clusters(ctx context.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterRecord, error)
}

// Records returns the records of clusters by name, without those that do not exist.
// Names are at most AtOnce.
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

// Each calls look with the records of the clusters that match, by name, until that has seen
// enough of them or there are no more.
func Each(
	ctx context.Context, store Store, filter holdfast.ClusterFilter, look func(holdfast.ClusterRecord) (enough bool),
) error {
	for filter.Limit = AtOnce; ; {
		list, err := store.Clusters(ctx, filter)
		if err != nil {
			return fmt.Errorf("read clusters: %w", err)
		}
		for _, rec := range list {
			if look(rec) {
				return nil
			}
		}
		if len(list) < AtOnce {
			return nil
		}
		filter.After = list[len(list)-1].Name
	}
}
