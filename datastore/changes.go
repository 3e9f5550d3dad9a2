package datastore

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// deletionsKept is how many deletions are remembered as changes: those of some
// weeks in a fleet of ten thousand clusters.
const deletionsKept = 10_000

// lastChange is the number of the newest change that there ever was.
const lastChange = `(SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = 'changes')`

// LastChange returns the number of the newest change; 0 if there was none.
func (s *ClusterStore) LastChange(ctx context.Context) (int64, error) {
	var seq int64
	err := s.db.reader().row(ctx, `SELECT `+lastChange).Scan(&seq)
	if err != nil {
		return 0, fmt.Errorf("read the last change: %w", err)
	}
	return seq, nil
}

// Changes returns what has changed after the number given, oldest first and each
// object once, at most limit of them. ErrExpired if that number is older than what
// is remembered of deletions, or is not of this database: then everything has to
// be read again.
func (s *ClusterStore) Changes(ctx context.Context, after int64, limit int) ([]holdfast.Change, error) {
	var changes []holdfast.Change
	err := s.db.read(ctx, func(ctx context.Context, q querier) error {
		var known bool
		err := q.row(ctx, `SELECT ? >= (SELECT value FROM counters WHERE name = 'changes_forgotten')
			AND ? <= `+lastChange, after, after).Scan(&known)
		if err != nil {
			return err
		}
		if !known {
			return holdfast.ErrExpired
		}
		return q.each(ctx, func(row scanner) error {
			var c holdfast.Change
			err := row.Scan(&c.Seq, &c.Kind, &c.Name, &c.Cluster, &c.Deleted)
			changes = append(changes, c)
			return err
		}, `SELECT seq, kind, name, cluster, deleted FROM changes WHERE seq > ? ORDER BY seq LIMIT ? + 0`, after, limit)
	})
	if err != nil {
		return nil, fmt.Errorf("read changes after %d: %w", after, err)
	}
	return changes, nil
}

// pruneChanges forgets the oldest deletions.
func (s *sweeper) pruneChanges(ctx context.Context) error {
	return s.db.write(ctx, func(ctx context.Context, q querier) error {
		var last int64
		err := q.row(ctx, `SELECT COALESCE((SELECT seq FROM changes WHERE deleted = 1 ORDER BY seq DESC LIMIT 1 OFFSET ? + 0), 0)`, deletionsKept).Scan(&last)
		if err != nil || last == 0 {
			return err
		}
		if _, err := q.exec(ctx, `DELETE FROM changes WHERE deleted = 1 AND seq <= ?`, last); err != nil {
			return err
		}
		_, err = q.exec(ctx, `UPDATE counters SET value = ? WHERE name = 'changes_forgotten'`, last)
		return err
	})
}
