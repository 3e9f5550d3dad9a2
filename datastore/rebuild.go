package datastore

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// A rebuilder fills columns that a migration has added.
type rebuilder struct{ *records }

// rebuild fills what a migration has added and only records can tell. It is
// begun again if a crash cuts it short.
func (s *rebuilder) rebuild(ctx context.Context) error {
	for name, fill := range map[string]func(ctx context.Context, q querier) error{
		"runs":     s.rebuildRuns,
		"clusters": s.rebuildClusters,
		"logs":     s.rebuildLogs,
	} {
		var wanted int
		if err := s.db.reader().row(ctx, `SELECT COUNT(*) FROM rebuilds WHERE name = ?`, name).Scan(&wanted); err != nil {
			return fmt.Errorf("rebuild %s: %w", name, err)
		}
		if wanted == 0 {
			continue
		}
		began := s.now()
		err := s.db.write(ctx, func(ctx context.Context, q querier) error {
			if err := fill(ctx, q); err != nil {
				return err
			}
			_, err := q.exec(ctx, `DELETE FROM rebuilds WHERE name = ?`, name)
			return err
		})
		if err != nil {
			return fmt.Errorf("rebuild %s: %w", name, err)
		}
		s.log.InfoContext(ctx, "rebuilt columns", "action", name, "duration", s.now().Sub(began))
	}
	return nil
}

// rebuildBatch is how many records are in memory at once.
const rebuildBatch = 500

// batches calls do with the values of a text column that is a primary key, some
// at a time, in their order.
func batches(ctx context.Context, q querier, table, column string, do func(keys []string) error) error {
	for last, more := "", true; more; {
		keys, err := texts(ctx, q, `SELECT `+column+` FROM `+table+` WHERE `+column+` > ? ORDER BY `+column+` LIMIT ?`, last, rebuildBatch)
		if err != nil {
			return err
		}
		if more = len(keys) == rebuildBatch; len(keys) == 0 {
			return nil
		}
		if err := do(keys); err != nil {
			return err
		}
		last = keys[len(keys)-1]
	}
	return nil
}

func (s *rebuilder) rebuildRuns(ctx context.Context, q querier) error {
	return batches(ctx, q, "runs", "id", func(keys []string) error {
		for _, id := range keys {
			run, err := s.readRun(ctx, q, id, "")
			if err != nil {
				return err
			}
			if _, err := q.exec(ctx, `UPDATE runs SET provider = ?, project = ?, bundle = ? WHERE id = ?`,
				run.Document.Provider, run.Document.Project, string(run.Bundle), id); err != nil {
				return err
			}
			if err := addReferences(ctx, q, run); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *rebuilder) rebuildClusters(ctx context.Context, q querier) error {
	return batches(ctx, q, "clusters", "name", func(keys []string) error {
		for _, name := range keys {
			var doc []byte
			var c holdfast.ClusterRecord
			if err := q.row(ctx, `SELECT doc FROM clusters WHERE name = ?`, name).Scan(&doc); err != nil {
				return err
			}
			if err := s.keys.unsealJSON("cluster", name, doc, &c); err != nil {
				return err
			}
			if err := storeSummary(ctx, q, c); err != nil {
				return err
			}
		}
		return nil
	})
}

// rebuildLogs encrypts the logs that were written before logs were encrypted.
func (s *rebuilder) rebuildLogs(ctx context.Context, q querier) error {
	type chunk struct {
		attempt int
		end     int64
	}
	return batches(ctx, q, "runs", "id", func(keys []string) error {
		for _, run := range keys {
			var chunks []chunk
			err := q.each(ctx, func(row scanner) error {
				var c chunk
				err := row.Scan(&c.attempt, &c.end)
				chunks = append(chunks, c)
				return err
			}, `SELECT attempt, end_at FROM log_chunks WHERE run = ?`, run)
			if err != nil {
				return err
			}
			for _, c := range chunks {
				var plain []byte
				err := q.row(ctx, `SELECT data FROM log_chunks WHERE run = ? AND attempt = ? AND end_at = ?`, run, c.attempt, c.end).Scan(&plain)
				if err != nil {
					return err
				}
				sealed, err := s.keys.seal("log", chunkName(run, c.attempt, c.end), plain)
				if err != nil {
					return err
				}
				_, err = q.exec(ctx, `UPDATE log_chunks SET data = ? WHERE run = ? AND attempt = ? AND end_at = ?`, sealed, run, c.attempt, c.end)
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
}
