package datastore

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

const resourceColumns = `cluster, address, type, provider, resource_id, run, changed_at`

func scanResource(row scanner) (holdfast.Resource, error) {
	var r holdfast.Resource
	var changedAt int64
	err := row.Scan(&r.Cluster, &r.Address, &r.Type, &r.Provider, &r.ID, &r.Run, &changedAt)
	r.ChangedAt = fromNanos(changedAt)
	return r, err
}

// SaveResources replaces what is known of a cluster's resources. Those with an
// empty Run keep the Run and ChangedAt that they had. What is as it was costs no
// write: most checks find nothing new.
func (s *ClusterStore) SaveResources(ctx context.Context, cluster string, resources []holdfast.Resource) error {
	// Looked at first without holding the writer.
	gone, changed, err := compareResources(ctx, s.db.reader(), cluster, resources)
	if err == nil && len(gone)+len(changed) > 0 {
		err = s.db.write(ctx, func(ctx context.Context, q querier) error { return storeResources(ctx, q, cluster, resources) })
	}
	if err != nil {
		return fmt.Errorf("save resources of %q: %w", cluster, err)
	}
	return nil
}

// compareResources returns the addresses that are stored and not in resources,
// and those of resources that are to be written.
func compareResources(
	ctx context.Context, q querier, cluster string, resources []holdfast.Resource,
) (gone []string, changed []holdfast.Resource, err error) {
	stored := map[string]holdfast.Resource{}
	err = q.each(ctx, func(row scanner) error {
		r, err := scanResource(row)
		stored[r.Address] = r
		return err
	}, `SELECT `+resourceColumns+` FROM resources WHERE cluster = ?`, cluster)
	if err != nil {
		return nil, nil, err
	}
	seen := make(map[string]bool, len(resources))
	for _, r := range resources {
		if seen[r.Address] {
			continue
		}
		seen[r.Address] = true
		old, known := stored[r.Address]
		r.Cluster = cluster
		if r.Run == "" {
			r.Run, r.ChangedAt = old.Run, old.ChangedAt
		}
		r.ChangedAt = fromNanos(nanos(r.ChangedAt))
		if !known || r != old {
			changed = append(changed, r)
		}
	}
	for address := range stored {
		if !seen[address] {
			gone = append(gone, address)
		}
	}
	return gone, changed, nil
}

func storeResources(ctx context.Context, q querier, cluster string, resources []holdfast.Resource) error {
	if err := q.alone(ctx, "resources of "+cluster); err != nil {
		return err
	}
	gone, changed, err := compareResources(ctx, q, cluster, resources)
	if err != nil {
		return err
	}
	for _, address := range gone {
		if _, err := q.exec(ctx, `DELETE FROM resources WHERE cluster = ? AND address = ?`, cluster, address); err != nil {
			return err
		}
	}
	for _, r := range changed {
		if _, err := q.exec(ctx, `INSERT INTO resources (`+resourceColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (cluster, address) DO UPDATE SET type = excluded.type, provider = excluded.provider,
				resource_id = excluded.resource_id, run = excluded.run, changed_at = excluded.changed_at`,
			cluster, r.Address, r.Type, r.Provider, r.ID, r.Run, nanos(r.ChangedAt)); err != nil {
			return err
		}
	}
	return nil
}

// Resources returns the resources that match, by cluster and address.
func (s *ClusterStore) Resources(ctx context.Context, filter holdfast.ResourceFilter) ([]holdfast.Resource, error) {
	var c conditions
	if filter.Cluster != "" {
		c.Add(`cluster = ?`, filter.Cluster)
	}
	if filter.Type != "" {
		c.Add(`type = ?`, filter.Type)
	}
	if filter.ID != "" {
		c.Add(`resource_id = ? AND resource_id <> ''`, filter.ID)
	}
	if filter.Address != "" {
		part := strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(filter.Address)
		c.Add(`address `+s.db.like+` ? ESCAPE '\'`, "%"+part+"%")
	}
	if len(filter.Projects) > 0 {
		var of conditions
		in(&of, "project", filter.Projects)
		c.Add(`cluster IN (SELECT name FROM summaries`+of.Where()+`)`, of.Args...)
	}
	if after := filter.After; after.Cluster != "" {
		c.Add(`(cluster > ? OR cluster = ? AND address > ?)`, after.Cluster, after.Cluster, after.Address)
	}
	limit := filter.Limit
	if limit <= 0 {
		limit = 1000
	}
	var found []holdfast.Resource
	err := s.db.reader().each(ctx, func(row scanner) error {
		r, err := scanResource(row)
		found = append(found, r)
		return err
	}, `SELECT `+resourceColumns+` FROM resources`+c.Where()+` ORDER BY cluster, address LIMIT ? + 0`, append(c.Args, limit)...)
	if err != nil {
		return nil, fmt.Errorf("list resources: %w", err)
	}
	return found, nil
}
