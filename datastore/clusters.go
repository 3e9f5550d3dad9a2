package datastore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast"
)

// ClusterStore keeps clusters: records, summaries, names, history, resources,
// suspensions, and when drift is due.
type ClusterStore struct{ *records }

// maxNames is how many names one query takes.
const maxNames = 500

const clusterColumns = `l.name, c.doc, COALESCE(v.serial, 0)
	FROM summaries AS l JOIN clusters AS c ON c.name = l.name LEFT JOIN states AS v ON v.location = 'clusters/' || l.name`

// scanCluster reads clusterColumns.
func (s *ClusterStore) scanCluster(ctx context.Context, row scanner) (holdfast.ClusterRecord, error) {
	var c holdfast.ClusterRecord
	var name string
	var doc []byte
	var serial int64
	if err := row.Scan(&name, &doc, &serial); err != nil {
		return c, err
	}
	if err := s.unseal(ctx, "cluster", name, doc, &c); err != nil {
		return c, err
	}
	c.StateSerial = serial
	return c, nil
}

// Cluster returns what is remembered of a cluster, one that is gone included.
func (s *ClusterStore) Cluster(ctx context.Context, name string) (holdfast.ClusterRecord, error) {
	c, err := s.scanCluster(ctx, s.db.reader().row(ctx, `SELECT `+clusterColumns+` WHERE l.name = ?`, name))
	return c, notFound(err, "cluster", name)
}

// Clusters returns the clusters that match, by name.
func (s *ClusterStore) Clusters(ctx context.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterRecord, error) {
	var found []holdfast.ClusterRecord
	for c := range selections(filter) {
		err := s.db.reader().each(ctx, func(row scanner) error {
			record, err := s.scanCluster(ctx, row)
			found = append(found, record)
			return err
		}, `SELECT `+clusterColumns+c.Where()+` ORDER BY l.name`+limited(filter, len(found)), c.Args...)
		if err != nil {
			return nil, fmt.Errorf("list clusters: %w", err)
		}
		if filter.Limit > 0 && len(found) >= filter.Limit {
			break
		}
	}
	return found, nil
}

// limited ends a query of a list that has some items already.
func limited(filter holdfast.ClusterFilter, have int) string {
	if filter.Limit <= 0 {
		return ""
	}
	return fmt.Sprintf(" LIMIT %d", max(filter.Limit-have, 0))
}

// ClusterNames returns the names of the clusters that match, sorted.
func (s *ClusterStore) ClusterNames(ctx context.Context, filter holdfast.ClusterFilter) ([]string, error) {
	var found []string
	for c := range selections(filter) {
		names, err := texts(ctx, s.db.reader(), `SELECT l.name FROM summaries AS l`+c.Where()+` ORDER BY l.name`, c.Args...)
		if err != nil {
			return nil, fmt.Errorf("list clusters: %w", err)
		}
		found = append(found, names...)
	}
	return found, nil
}

// ClustersAt returns the names of the clusters that had a run with a state that
// is not in our own backend.
func (s *ClusterStore) ClustersAt(ctx context.Context, location string) ([]string, error) {
	names, err := texts(ctx, s.db.reader(), `SELECT DISTINCT cluster FROM runs
		WHERE state_location = ? AND state_location NOT LIKE 'clusters/%' ORDER BY cluster`, location)
	if err != nil {
		return nil, fmt.Errorf("list clusters of state %q: %w", location, err)
	}
	return names, nil
}

// CountClusters counts the clusters that match.
func (s *ClusterStore) CountClusters(ctx context.Context, filter holdfast.ClusterFilter) (int, error) {
	total := 0
	for c := range selections(filter) {
		var n int
		if err := s.db.reader().row(ctx, `SELECT COUNT(*) FROM summaries AS l`+c.Where(), c.Args...).Scan(&n); err != nil {
			return 0, fmt.Errorf("count clusters: %w", err)
		}
		total += n
	}
	return total, nil
}

// selections yields the conditions on summaries AS l that a filter stands for:
// several if it names more clusters than one query takes, in the order of names.
func selections(filter holdfast.ClusterFilter) func(yield func(conditions) bool) {
	names := slices.Compact(slices.Sorted(slices.Values(filter.Names)))
	var c conditions
	// The most selective condition looks up an index; the others are checked. No
	// database can know alone which one is that, so it is given them: what is
	// computed is not looked up.
	found := len(names) > 0
	column := func(name string) string {
		if found {
			return name + ` || ''`
		}
		found = true
		return name
	}
	if filter.DependsOn != "" {
		c.Add(column(`l.name`)+` IN (SELECT cluster FROM cluster_dependencies WHERE parent = ?)`, filter.DependsOn)
	}
	for _, label := range slices.Sorted(maps.Keys(filter.Labels)) {
		c.Add(column(`l.name`)+` IN (SELECT cluster FROM cluster_labels WHERE label = ? AND value = ?)`, label, filter.Labels[label])
	}
	switch filter.Waiting {
	case "":
	case "*":
		c.Add(column(`l.waiting`) + ` <> ''`)
	default:
		c.Add(column(`l.waiting`)+` = ? AND l.waiting <> ''`, filter.Waiting)
	}
	for _, equal := range []struct{ column, value string }{
		{`l.revision`, string(filter.Revision)},
		{`l.environment`, filter.Environment},
		{`l.project`, filter.Project},
		{`l.phase`, string(filter.Phase)},
		{`l.drift`, string(filter.Drift)},
		{`l.template`, filter.Template},
		{`l.owner`, filter.Owner},
	} {
		if equal.value != "" {
			c.Add(column(equal.column)+` = ? AND `+equal.column+` <> ''`, equal.value)
		}
	}
	if !filter.Deleted && filter.Phase == "" && len(names) == 0 {
		c.Add(`l.phase || '' <> '` + string(holdfast.PhaseDeleted) + `'`)
	}
	if filter.Applied {
		c.Add(`l.applied_run || '' <> ''`)
	}
	if filter.After != "" {
		c.Add(column(`l.name`)+` > ?`, filter.After)
	}
	return func(yield func(conditions) bool) {
		if len(names) == 0 {
			yield(c)
			return
		}
		for some := range slices.Chunk(names, maxNames) {
			named := c.Clone()
			in(&named, "l.name", some)
			if !yield(named) {
				return
			}
		}
	}
}

// SaveCluster creates (Version 0) or replaces a record, adds to its history, and
// returns it with the next Version. A zero UpdatedAt becomes now. StateSerial is
// not stored: it is read from the newest state version. A transition without a
// cluster or a time is of this one, now.
func (s *ClusterStore) SaveCluster(ctx context.Context, c holdfast.ClusterRecord, history ...holdfast.Transition) (holdfast.ClusterRecord, error) {
	return s.saveCluster(ctx, c, history)
}

// RecordCluster is SaveCluster with what the audit trail says of it, in the same transaction.
func (s *ClusterStore) RecordCluster(
	ctx context.Context, c holdfast.ClusterRecord, entry holdfast.AuditEntry, history ...holdfast.Transition,
) (holdfast.ClusterRecord, error) {
	return s.saveCluster(ctx, c, history, entry)
}

func (s *ClusterStore) saveCluster(
	ctx context.Context, c holdfast.ClusterRecord, history []holdfast.Transition, trail ...holdfast.AuditEntry,
) (holdfast.ClusterRecord, error) {
	next, doc, err := s.sealCluster(c)
	if err != nil {
		return holdfast.ClusterRecord{}, fmt.Errorf("save cluster: %w", err)
	}
	err = s.db.write(ctx, func(ctx context.Context, q querier) error {
		if err := storeCluster(ctx, q, next, doc); err != nil {
			return err
		}
		if len(trail) > 0 { // it was applied, or is gone
			if err := (placing{s.records}).notePlace(ctx, q, next); err != nil {
				return err
			}
		}
		for _, entry := range trail {
			if err := s.audit(ctx, q, entry); err != nil {
				return fmt.Errorf("record %s: %w", entry.Action, err)
			}
		}
		return s.addHistory(ctx, q, c.Name, history)
	})
	if err != nil {
		return holdfast.ClusterRecord{}, fmt.Errorf("save cluster %q at version %d: %w", c.Name, c.Version, err)
	}
	return next, nil
}

// sealCluster returns the record as it is after its next write, and its ciphertext.
func (s *ClusterStore) sealCluster(c holdfast.ClusterRecord) (holdfast.ClusterRecord, []byte, error) {
	if c.Name == "" {
		return c, nil, errors.New("it has no name")
	}
	if c.UpdatedAt.IsZero() {
		c.UpdatedAt = s.now()
	}
	c.Version++
	stored := c
	stored.StateSerial = 0
	doc, err := s.keys.SealJSON("cluster", c.Name, stored)
	return c, doc, err
}

// storeCluster writes c, whose Version is the next one, over the version before;
// it is an ErrConflict if that is not the stored one.
func storeCluster(ctx context.Context, q querier, c holdfast.ClusterRecord, doc []byte) error {
	query, args := `UPDATE clusters SET version = ?, doc = ? WHERE name = ? AND version = ?`, []any{c.Version, doc, c.Name, c.Version - 1}
	if c.Version == 1 {
		query, args = `INSERT INTO clusters (version, doc, name) VALUES (?, ?, ?) ON CONFLICT (name) DO NOTHING`, args[:3]
	}
	n, err := q.exec(ctx, query, args...)
	if err != nil {
		return err
	}
	if n == 0 {
		return holdfast.ErrConflict
	}
	return storeSummary(ctx, q, c)
}

// save runs a conditional write of one record and what belongs to it; it is an
// ErrConflict if the condition does not hold.
func (s *records) save(ctx context.Context, query string, args []any, more func(ctx context.Context, q querier) error) error {
	return s.db.write(ctx, func(ctx context.Context, q querier) error {
		n, err := q.exec(ctx, query, args...)
		if err != nil {
			return err
		}
		if n == 0 {
			return holdfast.ErrConflict
		}
		if more == nil {
			return nil
		}
		return more(ctx, q)
	})
}
