package datastore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
)

// CreateClusters stores records that are new (Version 0) in one transaction, each with its
// history, and returns them with Version 1: without those that have a record already, for
// which it stores nothing.
func (s *ClusterStore) CreateClusters(
	ctx context.Context, records []holdfast.ClusterRecord, history ...holdfast.Transition,
) (created []holdfast.ClusterRecord, err error) {
	docs := make([][]byte, len(records))
	records = slices.Clone(records)
	for i, c := range records {
		if c.Version != 0 {
			return nil, fmt.Errorf("create cluster %q: it has version %d", c.Name, c.Version)
		}
		if records[i], docs[i], err = s.sealCluster(c); err != nil {
			return nil, fmt.Errorf("create cluster %q: %w", c.Name, err)
		}
	}
	err = s.db.write(ctx, func(ctx context.Context, q querier) error {
		created = nil
		isNew := make(map[string]bool)
		for i, c := range records {
			if err := storeCluster(ctx, q, c, docs[i]); errors.Is(err, holdfast.ErrConflict) {
				continue
			} else if err != nil {
				return fmt.Errorf("%q: %w", c.Name, err)
			}
			created, isNew[c.Name] = append(created, c), true
		}
		others := func(t holdfast.Transition) bool { return !isNew[t.Cluster] }
		return s.addHistory(ctx, q, "", slices.DeleteFunc(slices.Clone(history), others))
	})
	if err != nil {
		return nil, fmt.Errorf("create %d clusters: %w", len(records), err)
	}
	return created, nil
}
