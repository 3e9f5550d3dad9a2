package datastore

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore/seal"
)

// A rebuilder fills columns that a migration has added.
type rebuilder struct{ *records }

// rebuild fills what a migration has added and only records can tell. It is
// begun again if a crash cuts it short.
func (s *rebuilder) rebuild(ctx context.Context) error {
	for _, step := range []struct {
		name string
		fill func(ctx context.Context, q querier) error
	}{
		{"names", s.rebuildNames}, // before what reads records
		{"runs", s.rebuildRuns},
		{"clusters", s.rebuildClusters},
		{"logs", s.rebuildLogs},
		{"merges", s.rebuildMerges},
		{"environments", s.rebuildEnvironments}, // after clusters
		{"places", s.rebuildPlaces},
	} {
		name, fill := step.name, step.fill
		var wanted int
		if err := s.db.reader().row(ctx, `SELECT COUNT(*) FROM rebuilds WHERE name = ?`, name).Scan(&wanted); err != nil {
			return fmt.Errorf("rebuild %s: %w", name, err)
		}
		if wanted == 0 {
			continue
		}
		began := s.now()
		err := s.db.write(ctx, func(ctx context.Context, q querier) error {
			if err := q.alone(ctx, "rebuild"); err != nil {
				return err
			}
			err := q.row(ctx, `SELECT COUNT(*) FROM rebuilds WHERE name = ?`, name).Scan(&wanted)
			if err != nil || wanted == 0 { // another server was faster
				return err
			}
			if err := fill(ctx, q); err != nil {
				return err
			}
			_, err = q.exec(ctx, `DELETE FROM rebuilds WHERE name = ?`, name)
			return err
		})
		if err != nil {
			return fmt.Errorf("rebuild %s: %w", name, err)
		}
		s.log.InfoContext(ctx, "rebuilt columns", "action", name, "duration", s.now().Sub(began))
	}
	return nil
}

// skipped reports whether a record is left as it is since it is damaged: it is in the log. One
// that was written with a key that is not there is not, as the key may come back, and what is
// rebuilt is rebuilt once.
func skipped(err error) bool {
	return errors.Is(err, holdfast.ErrDamaged) && !errors.Is(err, seal.ErrNoKey)
}

// rebuildBatch is how many records are in memory at once.
const rebuildBatch = 500

// batches calls do with the values of a text column that is a primary key, some
// at a time, in their order.
func batches(ctx context.Context, q querier, table, column string, do func(keys []string) error) error {
	for last, more := "", true; more; {
		keys, err := texts(ctx, q, `SELECT `+column+` FROM `+table+` WHERE `+column+` > ? ORDER BY `+column+` LIMIT ? + 0`, last, rebuildBatch)
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
			run, err := s.readRun(ctx, q, id, q.forUpdate)
			if skipped(err) {
				run, err = runOfColumns(ctx, q, id)
			}
			if err != nil {
				return err
			}
			if _, err := q.exec(ctx, `UPDATE runs SET provider = ?, project = ?, bundle = ?, priority = ?, lane = ? WHERE id = ?`,
				run.Document.Provider, run.Document.Project, string(run.Bundle), priority(run), laneOf(run), id); err != nil {
				return err
			}
			if err := addReferences(ctx, q, run); err != nil {
				return err
			}
		}
		return nil
	})
}

// runOfColumns is what is known of a run whose record is damaged. It is in a lane as all others
// are: whoever gets to it passes over it.
func runOfColumns(ctx context.Context, q querier, id string) (holdfast.Run, error) {
	run := holdfast.Run{ID: id}
	err := q.row(ctx, `SELECT kind, status, pr_repo, pr_number, provider, project, bundle FROM runs WHERE id = ?`, id).
		Scan(&run.Kind, &run.Status, &run.PullRequest.Repo, &run.PullRequest.Number, &run.Document.Provider, &run.Document.Project, &run.Bundle)
	return run, err
}

func (s *rebuilder) rebuildClusters(ctx context.Context, q querier) error {
	return batches(ctx, q, "clusters", "name", func(keys []string) error {
		for _, name := range keys {
			var doc []byte
			var c holdfast.ClusterRecord
			if err := q.row(ctx, `SELECT doc FROM clusters WHERE name = ?`+q.forUpdate, name).Scan(&doc); err != nil {
				return err
			}
			err := s.unseal(ctx, "cluster", name, doc, &c)
			switch {
			case err == nil:
				err = storeSummary(ctx, q, c)
			case skipped(err):
				err = addSummary(ctx, q, name)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// addSummary gives a cluster whose record is damaged a summary, if it has none: without one it
// would count as a cluster that does not exist, and its name as free.
func addSummary(ctx context.Context, q querier, name string) error {
	var known int
	err := q.row(ctx, `SELECT COUNT(*) FROM summaries WHERE name = ?`, name).Scan(&known)
	if err != nil || known > 0 {
		return err
	}
	return storeSummary(ctx, q, holdfast.ClusterRecord{Name: name})
}

// rebuildMerges fills in when pull requests were merged.
func (s *rebuilder) rebuildMerges(ctx context.Context, q querier) error {
	prs := PullRequestStore{s.records}
	note := func(pr holdfast.PullRequestRecord) error {
		_, err := q.exec(ctx, `UPDATE pull_request_clusters SET merged_at = ? WHERE repo = ? AND number = ?`, nanos(pr.MergedAt), pr.Repo, pr.Number)
		return err
	}
	return prs.eachPullRequest(ctx, q, note, `pull_requests AS p WHERE p.state = ?`, string(holdfast.PullRequestMerged))
}

// rebuildEnvironments pins the environments that have run before there were runners.
func (s *rebuilder) rebuildEnvironments(ctx context.Context, q querier) error {
	_, err := q.exec(ctx, `INSERT INTO environments (project, name, runner, rule, pinned_at)
		SELECT DISTINCT project, environment, CAST(? AS TEXT), '', CAST(? AS BIGINT) FROM summaries
		WHERE project <> '' AND environment <> '' AND (applied_run <> '' OR EXISTS (SELECT 1 FROM runs WHERE runs.cluster = summaries.name))
		ON CONFLICT (project, name) DO NOTHING`, holdfast.LocalRunner, nanos(s.now()))
	return err
}

// rebuildNames gives the fields of records that had other names the present ones.
func (s *rebuilder) rebuildNames(ctx context.Context, q querier) error {
	for _, t := range []struct {
		kind, table, name string
		rename            func(read func(into any) error) (any, error)
	}{
		{"run", "runs", "id", renamedRun},
		{"cluster", "clusters", "name", renamedCluster},
		{"pull request", "pull_requests", "repo || '#' || number", renamedPullRequest},
	} {
		names := make(map[int64]string)
		err := q.each(ctx, func(row scanner) error {
			var id int64
			var name string
			err := row.Scan(&id, &name)
			names[id] = name
			return err
		}, `SELECT rowid, `+t.name+` FROM `+t.table)
		if err != nil {
			return err
		}
		for id, name := range names {
			var doc []byte
			if err := q.row(ctx, `SELECT doc FROM `+t.table+` WHERE rowid = ?`+q.forUpdate, id).Scan(&doc); err != nil {
				return err
			}
			rec, err := t.rename(func(into any) error { return s.unseal(ctx, t.kind, name, doc, into) })
			if skipped(err) {
				continue
			} else if err != nil {
				return err
			}
			if doc, err = s.keys.SealJSON(t.kind, name, rec); err != nil {
				return err
			}
			if _, err := q.exec(ctx, `UPDATE `+t.table+` SET doc = ? WHERE rowid = ?`, doc, id); err != nil {
				return err
			}
		}
	}
	return nil
}

func renamedRun(read func(into any) error) (any, error) {
	var run holdfast.Run
	var was struct{ Trial bool }
	err := cmp.Or(read(&run), read(&was))
	run.Sample = run.Sample || was.Trial
	return run, err
}

func renamedCluster(read func(into any) error) (any, error) {
	var c holdfast.ClusterRecord
	var was struct {
		Ending *holdfast.Deletion
		Drift  struct{ Remedy string }
	}
	err := cmp.Or(read(&c), read(&was))
	c.Deletion, c.Drift.Revert = cmp.Or(c.Deletion, was.Ending), cmp.Or(c.Drift.Revert, was.Drift.Remedy)
	return c, err
}

func renamedPullRequest(read func(into any) error) (any, error) {
	var pr holdfast.PullRequestRecord
	var was struct {
		AllTrials bool
		Clusters  []struct{ Trial, Deleted bool }
	}
	err := cmp.Or(read(&pr), read(&was))
	pr.AllSamples = pr.AllSamples || was.AllTrials
	for i, was := range was.Clusters {
		pr.Clusters[i].Sample, pr.Clusters[i].Removed = pr.Clusters[i].Sample || was.Trial, pr.Clusters[i].Removed || was.Deleted
	}
	return pr, err
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
				sealed, err := s.keys.Seal("log", chunkName(run, c.attempt, c.end), plain)
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
