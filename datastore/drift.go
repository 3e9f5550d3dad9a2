package datastore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// unfinished is of runs that have not ended, in the words of the index on them.
const unfinished = `status IN ('queued', 'running', 'waiting', 'retrying')`

// fewDue is up to how many clusters that are due are sorted; more are read in
// their order, past those that are not due.
const fewDue = 500

// DriftDue returns the clusters whose Drift.Due has come and that have no run
// which has not ended, those checked longest ago first. Those that cannot be read keep no
// others from being checked.
func (s *ClusterStore) DriftDue(ctx context.Context, now time.Time, limit int) ([]holdfast.ClusterRecord, error) {
	if limit <= 0 {
		return nil, nil
	}
	return readable("clusters that are due", limit, func(limit int) ([]holdfast.ClusterRecord, int, error) { return s.driftDue(ctx, now, limit) })
}

func (s *ClusterStore) driftDue(ctx context.Context, now time.Time, limit int) (found []holdfast.ClusterRecord, damaged int, err error) {
	err = s.db.read(ctx, func(ctx context.Context, q querier) error {
		var n int
		err := q.row(ctx, `SELECT COUNT(*) FROM (SELECT 1 FROM summaries WHERE drift_due <> 0 AND drift_due <= ? LIMIT ? + 0) AS few`,
			nanos(now), fewDue+1).Scan(&n)
		if err != nil || n == 0 {
			return err
		}
		// What is computed is not looked up in an index: of due, of the order.
		due, order := `o.drift_due`, `0 + o.checked_at`
		if n > fewDue {
			due, order = `0 + o.drift_due`, `o.checked_at`
		}
		return q.each(ctx, func(row scanner) error {
			record, err := s.scanCluster(ctx, row)
			if errors.Is(err, holdfast.ErrDamaged) {
				damaged++
				return nil
			}
			found = append(found, record)
			return err
		}, `SELECT l.name, c.doc, COALESCE(v.serial, 0)
			FROM (SELECT o.name, o.checked_at FROM summaries AS o
				WHERE o.drift_due <> 0 AND `+due+` <= ?
					AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.cluster = o.name AND runs.`+unfinished+`)
				ORDER BY `+order+`, o.name LIMIT ? + 0) AS l
			JOIN clusters AS c ON c.name = l.name LEFT JOIN states AS v ON v.location = 'clusters/' || l.name
			ORDER BY l.checked_at, l.name`, nanos(now), limit)
	})
	return found, damaged, err
}

// NextDriftDue is the earliest Drift.Due after now; zero if there is none.
func (s *ClusterStore) NextDriftDue(ctx context.Context, now time.Time) (time.Time, error) {
	var due int64
	err := s.db.reader().row(ctx, `SELECT drift_due FROM summaries WHERE drift_due <> 0 AND drift_due > ?
		ORDER BY drift_due LIMIT 1`, nanos(now)).Scan(&due)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, fmt.Errorf("look for the next check: %w", err)
	}
	return fromNanos(due), nil
}
