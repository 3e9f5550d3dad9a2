package datastore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// A sweeper removes what nothing needs any longer.
type sweeper struct {
	*records
	retention Retention
}

// Retention says how much of the past is kept. Whatever it says, these stay: runs that
// have not ended, those that a cluster's record refers to (its last apply, its last
// drift check, what reverted a drift, what destroyed it), those whose plans a run that
// is kept was reviewed with or applies, those of open pull requests, plans of merged
// ones that no apply has used yet (to a sample none ever does), and applies that failed
// since the last one that did not: what they have left is to be destroyed with them.
type Retention struct {
	// Runs is how many runs of each cluster are kept, newest first, with their
	// attempts, logs and plans: so many of its tracked branch, and so many plans of
	// pull requests. Zero means 100; fewer than 50 are 50, as decisions look back so
	// far; negative keeps all. Those of a cluster that no longer exists, or that only a
	// pull request had, go once the last of them is older than Ended.
	Runs int
	// DriftRuns is how many drift checks of each cluster are kept: so many that
	// found drift or what else an apply would change, and so many others, as a row
	// of failed ones must not take away what the last good one found; and so many
	// attempts to put its state right, of which a backend that refuses causes one every
	// few minutes. Zero means 5, one is 2; negative keeps all.
	DriftRuns int
	// Logs is how long a log is kept after its attempt has ended. Zero means as long as its run.
	Logs time.Duration
	// Audit is how long the audit trail is kept. Zero means forever.
	Audit time.Duration
	// Ended is how long pull requests are kept after they were closed or merged, with
	// what was shown of them and said in them. Zero means 180 days; less than 30 days
	// is 30, negative keeps all. One whose merge a cluster waits with stays. It is also
	// how long the older versions of the state of a cluster that no longer exists are
	// kept after its last run.
	Ended time.Duration
	// States is how many versions of each state are kept. Zero means 50.
	States int
}

const keepAll = 1 << 60

func (r *Retention) complete() {
	switch {
	case r.Ended == 0:
		r.Ended = endedKept
	case r.Ended > 0:
		r.Ended = max(r.Ended, endedFewest)
	}
	if r.States <= 0 {
		r.States = 50
	}
	for _, number := range []struct {
		value                 *int
		ordinary, fewest, all int
	}{{&r.Runs, 100, 50, keepAll}, {&r.DriftRuns, 5, 2, keepAll}} {
		switch {
		case *number.value == 0:
			*number.value = number.ordinary
		case *number.value < 0:
			*number.value = number.all
		default:
			*number.value = max(*number.value, number.fewest)
		}
	}
}

// The sizes of what is done at once. A transaction of each takes a few
// milliseconds; whoever waits to write goes in between.
const (
	pruneClusters = 50
	pruneFound    = 500
	pruneRuns     = 20
	pruneChunks   = 64 // of up to 64 KiB
	pruneRows     = 500
)

// prunable is of runs AS r that nothing still needs.
const prunable = `NOT (r.` + unfinished + `)
	AND NOT EXISTS (SELECT 1 FROM run_references AS k WHERE k.run = r.id)
	AND NOT EXISTS (SELECT 1 FROM unsaved_states AS u WHERE u.run = r.id OR u.job = r.id)
	AND NOT EXISTS (SELECT 1 FROM pull_requests AS p WHERE p.repo = r.pr_repo AND p.number = r.pr_number
		AND (p.state = 'open' OR p.state = 'merged' AND r.posted_at > 0
			AND EXISTS (SELECT 1 FROM pull_request_clusters AS a WHERE a.repo = p.repo AND a.number = p.number AND a.cluster = r.cluster)
			AND EXISTS (SELECT 1 FROM summaries AS l WHERE l.name = r.cluster AND r.created_at > l.applied_at)))
	AND NOT (r.kind IN ('apply', 'destroy') AND r.status IN ('errored', 'interrupted', 'canceled') AND EXISTS (SELECT 1 FROM summaries AS l
		WHERE l.name = r.cluster AND l.phase <> 'Deleted' AND r.created_at > l.applied_at))`

// prune removes what is beyond the retention and older than before, in small
// transactions. It returns how many runs and bundles it has removed. What is
// left when it fails or dies is whole, and is found by the next one: the rows of
// a run go together, and blobs after their rows. A step that fails keeps no other one
// from its work.
func (s *sweeper) prune(ctx context.Context, before time.Time) (int, error) {
	gone := removals{}
	defer gone.report(ctx, s.log)
	runs, err := s.pruneRuns(ctx, before, gone)
	bundles, bundlesErr := s.pruneBundles(ctx)
	errs := []error{described("prune runs", err), described("prune bundles", bundlesErr)}
	for _, step := range []struct {
		name  string
		prune func(context.Context, removals) error
	}{
		{"prune logs", s.pruneLogs},
		{"prune audit trail", s.pruneAudit},
		{"prune ended pull requests", s.pruneEnded},
		{"prune states", s.pruneStates},
		{"prune impacts", func(ctx context.Context, _ removals) error { return s.pruneImpacts(ctx) }},
		{"prune changes", func(ctx context.Context, _ removals) error { return s.pruneChanges(ctx) }},
	} {
		errs = append(errs, described(step.name, step.prune(ctx, gone)))
	}
	return runs + bundles, errors.Join(errs...)
}

func described(step string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", step, err)
}

// texts runs a query for the values of one column.
func texts(ctx context.Context, q querier, query string, args ...any) ([]string, error) {
	var list []string
	err := q.each(ctx, func(row scanner) error {
		var text string
		err := row.Scan(&text)
		list = append(list, text)
		return err
	}, query, args...)
	return list, err
}

func (s *sweeper) pruneRuns(ctx context.Context, before time.Time, gone removals) (int, error) {
	removed := 0
	for last := ""; ; {
		clusters, err := texts(ctx, s.db.reader(), `SELECT DISTINCT cluster FROM runs WHERE cluster > ? ORDER BY cluster LIMIT ? + 0`, last, pruneClusters)
		if err != nil || len(clusters) == 0 {
			return removed, err
		}
		first := last
		last = clusters[len(clusters)-1]
		for more := true; more; {
			found, err := s.beyond(ctx, first, last, before)
			if err != nil {
				return removed, err
			}
			n := 0
			for key, runs := range found {
				some, err := s.removeRuns(ctx, runs)
				gone.add("runs", key, some)
				if n += some; err != nil {
					return removed + n, err
				}
			}
			removed += n
			more = n > 0 && len(found[keyRuns])+len(found[keyEnded]) == pruneFound
		}
	}
}

// beyond returns runs of the clusters after first up to last that nothing needs, by the key
// that they are beyond: those that are not among the newest of their kind, and all of
// clusters that no longer exist, if the last one is from long ago.
func (s *sweeper) beyond(ctx context.Context, first, last string, before time.Time) (map[string][]string, error) {
	found := make(map[string][]string)
	return found, s.db.reader().each(ctx, func(row scanner) error {
		var id string
		var older bool
		err := row.Scan(&id, &older)
		key := map[bool]string{true: keyRuns, false: keyEnded}[older]
		found[key] = append(found[key], id)
		return err
	}, `SELECT r.id, r.older FROM (SELECT o.*, o.place > CASE WHEN o.class IN ('drift', 'finding', 'state', 'unlock') THEN CAST(? AS BIGINT) ELSE CAST(? AS BIGINT) END AS older FROM (
			SELECT c.*, ROW_NUMBER() OVER (PARTITION BY cluster, class ORDER BY created_at DESC, id DESC) AS place,
				MAX(created_at) OVER (PARTITION BY cluster) AS newest FROM (
				SELECT id, cluster, kind, status, created_at, posted_at, pr_repo, pr_number,
					CASE WHEN kind = 'drift' AND status = 'planned' THEN 'finding' WHEN kind IN ('drift', 'state', 'unlock') THEN kind
						WHEN kind = 'plan' AND pr_number <> 0 THEN 'pull request' ELSE 'branch' END AS class
				FROM runs WHERE cluster > ? AND cluster <= ?) AS c) AS o) AS r
		WHERE (r.older OR r.newest < ? AND NOT EXISTS (SELECT 1 FROM summaries AS l WHERE l.name = r.cluster AND l.phase <> 'Deleted'))
			AND r.created_at < ? AND `+prunable+` LIMIT ? + 0`,
		s.retention.DriftRuns, s.retention.Runs, first, last, s.endedBefore(), nanos(before), pruneFound)
}

func (s *sweeper) removeRuns(ctx context.Context, runs []string) (int, error) {
	removed := 0
	for len(runs) > 0 {
		if err := ctx.Err(); err != nil {
			return removed, err
		}
		some := runs[:min(len(runs), pruneRuns)]
		runs = runs[len(some):]
		for _, id := range some {
			if err := s.removeLargeLogs(ctx, id); err != nil {
				return removed, err
			}
		}
		var unused []content
		n := 0
		err := s.db.write(ctx, func(ctx context.Context, q querier) error {
			unused, n = nil, 0
			for _, id := range some {
				gone, contents, err := removeRun(ctx, q, id)
				if err != nil {
					return fmt.Errorf("run %q: %w", id, err)
				}
				if gone {
					n++
				}
				unused = append(unused, contents...)
			}
			return nil
		})
		if err != nil {
			return removed, err
		}
		removed += n
		s.drop(ctx, unused...)
	}
	return removed, nil
}

// removeRun removes all rows of a run, unless something needs it by now, and
// returns what they had in the bucket.
func removeRun(ctx context.Context, q querier, id string) (bool, []content, error) {
	if err := holdRun(ctx, q, id); err != nil {
		return false, nil, err
	}
	var n int
	if err := q.row(ctx, `SELECT COUNT(*) FROM runs AS r WHERE r.id = ? AND `+prunable, id).Scan(&n); err != nil || n == 0 {
		return false, nil, err
	}
	var unused []content
	err := q.each(ctx, func(row scanner) error {
		var c content
		err := row.Scan(&c.key)
		unused = append(unused, c)
		return err
	}, `SELECT blob FROM artefacts WHERE run = ? AND inline IS NULL`, id)
	if err != nil {
		return false, nil, err
	}
	for _, statement := range []string{
		`DELETE FROM log_chunks WHERE run = ?`,
		`DELETE FROM artefacts WHERE run = ?`,
		`DELETE FROM tickets WHERE run = ?`,
		`DELETE FROM attempts WHERE run = ?`,
		`DELETE FROM run_references WHERE holder = 'run:' || ?`,
		`DELETE FROM runs WHERE id = ?`,
	} {
		if _, err := q.exec(ctx, statement, id); err != nil {
			return false, nil, err
		}
	}
	return true, unused, nil
}

// removeLargeLogs removes the logs of a run that are too large to go together with it.
func (s *sweeper) removeLargeLogs(ctx context.Context, run string) error {
	var large []int
	err := s.db.reader().each(ctx, func(row scanner) error {
		var attempt int
		err := row.Scan(&attempt)
		large = append(large, attempt)
		return err
	}, `SELECT attempt FROM attempts WHERE run = ? AND ended_at > 0 AND log_size > ?`, run, maxLogRange)
	if err != nil {
		return err
	}
	for _, attempt := range large {
		err := s.removeLog(ctx, run, attempt, `SELECT COUNT(*) FROM runs AS r WHERE r.id = ? AND `+prunable)
		if err != nil {
			return err
		}
	}
	return nil
}

// removeLog removes a log from its end on, some of it at a time, as long as the
// condition counts the run: what is left is a log that ends where it ends.
func (s *sweeper) removeLog(ctx context.Context, run string, attempt int, condition string) error {
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := s.db.writeRelaxed(ctx, func(ctx context.Context, q querier) error {
			var n, from int64
			if err := q.row(ctx, condition, run).Scan(&n); err != nil || n == 0 {
				more = false
				return err
			}
			err := q.row(ctx, `SELECT COUNT(*), COALESCE(MIN(end_at), 0) FROM (SELECT end_at FROM log_chunks
				WHERE run = ? AND attempt = ? ORDER BY end_at DESC LIMIT ? + 0) AS newest`, run, attempt, pruneChunks).Scan(&n, &from)
			if err != nil {
				return err
			}
			more = n == pruneChunks
			if _, err := q.exec(ctx, `DELETE FROM log_chunks WHERE run = ? AND attempt = ? AND end_at >= ?`, run, attempt, from); err != nil {
				return err
			}
			_, err = q.exec(ctx, `UPDATE attempts SET log_size = COALESCE((SELECT MAX(end_at) FROM log_chunks WHERE run = ? AND attempt = ?), 0)
				WHERE run = ? AND attempt = ?`, run, attempt, run, attempt)
			return err
		})
		if err != nil {
			return fmt.Errorf("log of run %q: %w", run, err)
		}
	}
	return nil
}

// pruneLogs removes the logs of attempts that ended too long ago.
func (s *sweeper) pruneLogs(ctx context.Context, gone removals) error {
	if s.retention.Logs <= 0 {
		return nil
	}
	before := nanos(s.now().Add(-s.retention.Logs))
	for {
		var old []holdfast.AttemptRef
		err := s.db.reader().each(ctx, func(row scanner) error {
			var ref holdfast.AttemptRef
			err := row.Scan(&ref.Run, &ref.Attempt)
			old = append(old, ref)
			return err
		}, `SELECT run, attempt FROM attempts WHERE ended_at > 0 AND log_size > 0 AND ended_at < ? ORDER BY ended_at LIMIT ? + 0`, before, pruneRows)
		if err != nil || len(old) == 0 {
			return err
		}
		for _, ref := range old {
			if err := s.removeLog(ctx, ref.Run, ref.Attempt, `SELECT COUNT(*) FROM runs WHERE id = ?`); err != nil {
				return err
			}
			gone.add("logs", "retention.logs", 1)
		}
	}
}

// unusedBundle is of bundles AS b that no run and no record needs, and that
// nobody has asked for since a time.
const unusedBundle = `b.used_at < ? AND NOT EXISTS (SELECT 1 FROM runs AS r WHERE r.bundle = b.digest)
	AND NOT EXISTS (SELECT 1 FROM summaries AS l WHERE l.applied_bundle = b.digest AND l.applied_bundle <> '')`

func (s *sweeper) pruneBundles(ctx context.Context) (int, error) {
	removed := 0
	before := nanos(s.now().Add(-bundleGrace))
	for {
		if err := ctx.Err(); err != nil {
			return removed, err
		}
		found, err := texts(ctx, s.db.reader(), `SELECT b.digest FROM bundles AS b WHERE `+unusedBundle+` LIMIT ? + 0`, before, pruneRuns)
		if err != nil || len(found) == 0 {
			return removed, err
		}
		var unused []content
		err = s.db.write(ctx, func(ctx context.Context, q querier) error {
			unused = nil
			for _, digest := range found {
				var c content
				err := q.row(ctx, `DELETE FROM bundles AS b WHERE b.digest = ? AND `+unusedBundle+` RETURNING blob, inline`, digest, before).
					Scan(&c.key, &c.inline)
				if errors.Is(err, sql.ErrNoRows) {
					continue // somebody needs it by now
				}
				if err != nil {
					return err
				}
				unused = append(unused, c)
			}
			return nil
		})
		if err != nil {
			return removed, err
		}
		removed += len(unused)
		s.drop(ctx, unused...)
		if len(unused) == 0 {
			return removed, nil
		}
	}
}

// pruneAudit removes the oldest entries of the audit trail.
func (s *sweeper) pruneAudit(ctx context.Context, gone removals) error {
	if s.retention.Audit <= 0 {
		return nil
	}
	before := nanos(s.now().Add(-s.retention.Audit))
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		var n int64
		err := s.db.write(ctx, func(ctx context.Context, q querier) (err error) {
			n, err = q.exec(ctx, `DELETE FROM audit WHERE recorded_at < ? AND id IN (SELECT id FROM audit ORDER BY id LIMIT ? + 0)`, before, pruneRows)
			return err
		})
		if err != nil || n == 0 {
			return err
		}
		gone.add("audit entries", "retention.audit", int(n))
	}
}

// Sweep removes what is beyond the retention, and from the bucket what no record
// refers to: remains of writes that a crash cut short. Younger than age, which
// should be hours, anything may belong to what is in progress and stays. It returns
// how many runs, bundles and remains were removed.
func (s *sweeper) Sweep(ctx context.Context, age time.Duration) (int, error) {
	if age <= 0 {
		return 0, fmt.Errorf("sweep: age %s", age)
	}
	// To records from a backup whatever was stored after it is left over: nobody has looked yet whether it is,
	// and another server may be using it.
	if mark, err := s.restored(ctx); err != nil || mark != 0 {
		return 0, err
	}
	before := s.now().Add(-age)
	pruned, pruneErr := s.prune(ctx, before)
	swept, err := s.sweepBucket(ctx, before)
	if err := errors.Join(pruneErr, err); err != nil {
		return pruned + swept, fmt.Errorf("sweep: %w", err)
	}
	return pruned + swept, nil
}
