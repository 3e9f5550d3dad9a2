package datastore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// unfinished is of runs that have not ended, in the words of the index on them.
const unfinished = `status IN ('queued', 'running', 'waiting', 'retrying')`

// DriftDue returns the clusters whose Drift.Due has come and that have no run
// which has not ended, those checked longest ago first.
func (s *Store) DriftDue(ctx context.Context, now time.Time, limit int) ([]holdfast.ClusterRecord, error) {
	var due []holdfast.ClusterRecord
	if limit <= 0 {
		return nil, nil
	}
	err := s.db.reader().each(ctx, func(row scanner) error {
		record, err := s.scanCluster(row)
		due = append(due, record)
		return err
	}, `SELECT l.name, c.doc, COALESCE(v.serial, 0)
		FROM (SELECT name, checked_at FROM summaries AS o
			WHERE drift_due > 0 AND drift_due <= ? AND phase <> 'Deleted'
				AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.cluster = o.name AND runs.`+unfinished+`)
			ORDER BY checked_at, name LIMIT ?) AS l
		JOIN clusters AS c ON c.name = l.name LEFT JOIN states AS v ON v.location = 'clusters/' || l.name
		ORDER BY l.checked_at, l.name`, nanos(now), limit)
	if err != nil {
		return nil, fmt.Errorf("list clusters that are due: %w", err)
	}
	return due, nil
}

// NextDriftDue is the earliest Drift.Due after now; zero if there is none.
func (s *Store) NextDriftDue(ctx context.Context, now time.Time) (time.Time, error) {
	var due sql.NullInt64
	err := s.db.reader().row(ctx, `SELECT MIN(drift_due) FROM summaries WHERE drift_due > 0 AND drift_due > ?`, nanos(now)).Scan(&due)
	if err != nil {
		return time.Time{}, fmt.Errorf("look for the next check: %w", err)
	}
	return fromNanos(due.Int64), nil
}
