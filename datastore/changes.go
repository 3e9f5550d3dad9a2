package datastore

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// deletionsKept is how many deletions are remembered as changes: those of some
// weeks in a fleet of ten thousand clusters.
const deletionsKept = 10_000

// LastChange returns the number of the newest change; 0 if there was none.
func (s *ClusterStore) LastChange(ctx context.Context) (int64, error) {
	var seq int64
	err := s.numberChanges(ctx)
	if err == nil {
		err = s.db.reader().row(ctx, `SELECT `+s.db.lastChange).Scan(&seq)
	}
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
	if nothing, err := s.unchanged(ctx, after); err != nil || nothing {
		return nil, err
	}
	if err := s.numberChanges(ctx); err != nil {
		return nil, fmt.Errorf("read changes after %d: %w", after, err)
	}
	err := s.db.read(ctx, func(ctx context.Context, q querier) error {
		var known bool
		err := q.row(ctx, `SELECT ? >= (SELECT value FROM counters WHERE name = 'changes_forgotten')
			AND ? <= `+q.lastChange, after, after).Scan(&known)
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

// unchanged reports by one query whether nothing has changed after a number: most replicas that
// ask each second ask in vain.
func (s *ClusterStore) unchanged(ctx context.Context, after int64) (nothing bool, err error) {
	if s.db.server == nil {
		return false, nil // asks no server
	}
	err = s.db.reader().row(ctx, `SELECT ? = `+s.db.lastChange+` AND NOT EXISTS (SELECT 1 FROM changes WHERE seq IS NULL)`, after).Scan(&nothing)
	if err != nil {
		return false, fmt.Errorf("look for changes after %d: %w", after, err)
	}
	return nothing, nil
}

// pruneChanges forgets the oldest deletions.
func (s *sweeper) pruneChanges(ctx context.Context) error {
	if err := s.numberChanges(ctx); err != nil {
		return err
	}
	return s.db.write(ctx, func(ctx context.Context, q querier) error {
		var last int64
		err := q.row(ctx, `SELECT COALESCE((SELECT seq FROM changes WHERE deleted = 1 AND seq > 0 ORDER BY seq DESC LIMIT 1 OFFSET ? + 0), 0)`, deletionsKept).Scan(&last)
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

// numberChanges gives the changes that have none a number, in the order in which they were
// made. Several writers would draw numbers in one order and commit in another one: a reader
// who has seen a number would miss lower ones that come later. With SQLite, which has one
// writer, changes have a number from the start.
func (s *records) numberChanges(ctx context.Context) error {
	if s.db.server == nil {
		return nil
	}
	var some bool
	err := s.db.reader().row(ctx, `SELECT EXISTS (SELECT 1 FROM changes WHERE seq IS NULL)`).Scan(&some)
	if err != nil || !some {
		return err
	}
	return s.db.write(ctx, func(ctx context.Context, q querier) error {
		var last int64 // held: numbers become visible in their order
		if err := q.row(ctx, `SELECT value FROM counters WHERE name = 'changes'`+q.forUpdate).Scan(&last); err != nil {
			return err
		}
		// An object that is being changed again is left to the next time.
		n, err := q.exec(ctx, `UPDATE changes AS c SET seq = ? + n.place FROM (
			SELECT kind, name, row_number() OVER (ORDER BY drawn) AS place FROM (
				SELECT kind, name, drawn FROM changes WHERE seq IS NULL`+q.skipLocked+`) AS few) AS n
			WHERE c.kind = n.kind AND c.name = n.name`, last)
		if err != nil || n == 0 {
			return err
		}
		_, err = q.exec(ctx, `UPDATE counters SET value = value + ? WHERE name = 'changes'`, n)
		return err
	})
}
