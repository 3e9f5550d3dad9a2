package datastore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
)

// RunStore keeps runs and their attempts, and says which run an agent may claim.
type RunStore struct{ *records }

const runColumns = `id, heartbeat_at, step, posted_at, doc`

// scanRun reads runColumns. What Beat and Posted write is in its own columns: they
// leave the document and its version alone.
func (s *records) scanRun(ctx context.Context, row scanner) (holdfast.Run, error) {
	var (
		run                 holdfast.Run
		id, step            string
		heartbeatAt, posted int64
		doc                 []byte
	)
	if err := row.Scan(&id, &heartbeatAt, &step, &posted, &doc); err != nil {
		return holdfast.Run{}, err
	}
	if err := s.unseal(ctx, "run", id, doc, &run); err != nil {
		return holdfast.Run{}, err
	}
	run.HeartbeatAt, run.Step, run.PostedAt = fromNanos(heartbeatAt), step, fromNanos(posted)
	return run, nil
}

func (s *records) readRun(ctx context.Context, q querier, id, suffix string) (holdfast.Run, error) {
	run, err := s.scanRun(ctx, q.row(ctx, `SELECT `+runColumns+` FROM runs WHERE id = ?`+suffix, id))
	return run, notFound(err, "run", id)
}

// locationOf is where a cluster's state is in our own backend.
func locationOf(cluster string) string { return "clusters/" + cluster }

// Priorities that go before others.
const (
	writing   = 0  // what writes: until it is claimed, who may only plan gets nothing of its state
	releasing = -1 // what releases a lock, for which others wait
)

// priority is the order of claims: what writes goes first, what nobody waits for last.
// There may be a thousand samples at once, which nobody else's plan is to wait for.
func priority(run holdfast.Run) int {
	switch {
	case run.Kind == holdfast.RunUnlock:
		return releasing
	case run.Kind.Writes():
		return writing
	case run.First() && run.Status != holdfast.RunRetrying: // a retry keeps no pace
		return holdfast.PriorityFirst
	case run.Background:
		return 4
	case run.Kind == holdfast.RunDrift:
		return 3
	case run.Sample:
		return 2
	default:
		return 1
	}
}

// referencesOf are the runs that a run needs: the plans that were shown and reviewed.
func referencesOf(run holdfast.Run) []string {
	refs := []string{run.Shown}
	for _, review := range run.Reviews {
		refs = append(refs, review.Run)
	}
	return distinct(refs)
}

// claimAt is from when on a run may be claimed; NULL means not as it is.
func claimAt(run holdfast.Run) sql.NullInt64 {
	switch run.Status {
	case holdfast.RunQueued:
		return sql.NullInt64{Valid: true}
	case holdfast.RunRetrying:
		return sql.NullInt64{Int64: nanos(run.NotBefore), Valid: true}
	default:
		return sql.NullInt64{}
	}
}

// CreateRun stores a new run, and appends to the audit trail in the same transaction;
// the run's Version becomes 1, and its Runner that of its environment, which is pinned to
// one now if this is its first run.
func (s *RunStore) CreateRun(ctx context.Context, run holdfast.Run, trail ...holdfast.AuditEntry) error {
	return s.createRun(ctx, run, s.trail(trail))
}

func (s *records) trail(trail []holdfast.AuditEntry) func(ctx context.Context, q querier) error {
	return func(ctx context.Context, q querier) error {
		for _, entry := range trail {
			if err := s.audit(ctx, q, entry); err != nil {
				return fmt.Errorf("record %s: %w", entry.Action, err)
			}
		}
		return nil
	}
}

// newestRun goes through the runs of one cluster, which are few. PostgreSQL would look for the
// largest id of all runs, and go through these from there, if the maximum was of the column
// itself; SQLite would go through all runs of no pull request if it could, since two columns of
// their index are equal to something.
const newestRun = `SELECT COALESCE(MAX(id || ''), '') FROM runs WHERE cluster = ? AND pr_repo || '' = ? AND pr_number + 0 = ?`

// NewestRun returns the id of the newest run of what a request names; empty if there is none.
func (s *RunStore) NewestRun(ctx context.Context, of holdfast.Request) (id string, err error) {
	err = s.db.reader().row(ctx, newestRun, of.Cluster, of.PullRequest.Repo, of.PullRequest.Number).Scan(&id)
	if err != nil {
		return "", fmt.Errorf("look for the newest run of %q: %w", of.Cluster, err)
	}
	return id, nil
}

// CreateRunAfter is CreateRun if newest is what NewestRun says; an ErrConflict if somebody else
// has queued a run since that was asked.
func (s *RunStore) CreateRunAfter(ctx context.Context, run holdfast.Run, newest string, trail ...holdfast.AuditEntry) error {
	also := s.trail(trail)
	return s.createRun(ctx, run, func(ctx context.Context, q querier) error {
		if err := q.alone(ctx, ofCluster(run.Cluster)); err != nil {
			return err
		}
		var now string
		err := q.row(ctx, newestRun+` AND id <> ?`, run.Cluster, run.PullRequest.Repo, run.PullRequest.Number, run.ID).Scan(&now)
		if err != nil {
			return err
		}
		if now != newest {
			return fmt.Errorf("run %s was queued meanwhile: %w", now, holdfast.ErrConflict)
		}
		if err := inPlace(ctx, q, run); err != nil {
			return err
		}
		return also(ctx, q)
	})
}

// createRun stores a new run, and what also does in the same transaction.
func (s *records) createRun(ctx context.Context, run holdfast.Run, also func(context.Context, querier) error) error {
	if run.ID == "" || run.Cluster == "" || run.Kind == "" || run.Status == "" {
		return fmt.Errorf("create run %q: it needs an id, a cluster, a kind and a status", run.ID)
	}
	run.Version = 1
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		var err error
		if run.Runner, err = s.pinned(ctx, q, run.Document.EnvironmentKey()); err != nil {
			return err
		}
		doc, err := s.keys.SealJSON("run", run.ID, run)
		if err != nil {
			return err
		}
		_, err = q.exec(ctx, `INSERT INTO runs (id, cluster, kind, status, pr_repo, pr_number, state_location, priority,
				attempt, fence, claim_at, heartbeat_at, step, posted_at, created_at, version, provider, project, bundle, lane, doc)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			run.ID, run.Cluster, string(run.Kind), string(run.Status), run.PullRequest.Repo, run.PullRequest.Number,
			run.StateKey(), priority(run), run.Attempt, run.Fence, claimAt(run),
			nanos(run.HeartbeatAt), run.Step, nanos(run.PostedAt), nanos(run.CreatedAt), run.Version,
			run.Document.Provider, run.Document.Project, string(run.Bundle), laneOf(run), doc)
		if err != nil {
			return err
		}
		if err := addReferences(ctx, q, run); err != nil {
			return err
		}
		return also(ctx, q)
	})
	if err != nil && s.db.duplicate(err) {
		err = fmt.Errorf("it exists, or another run is running at %q: %w", run.StateKey(), holdfast.ErrConflict)
	}
	if err != nil {
		return fmt.Errorf("create run %q: %w", run.ID, err)
	}
	return nil
}

func addReferences(ctx context.Context, q querier, run holdfast.Run) error {
	if err := holdRuns(ctx, q, referencesOf(run)); err != nil {
		return err
	}
	for _, ref := range referencesOf(run) {
		if _, err := q.exec(ctx, `INSERT INTO run_references (holder, run) VALUES (?, ?) ON CONFLICT (holder, run) DO NOTHING`,
			"run:"+run.ID, ref); err != nil {
			return fmt.Errorf("write references: %w", err)
		}
	}
	return nil
}

// Run returns a run.
func (s *RunStore) Run(ctx context.Context, id string) (holdfast.Run, error) {
	return s.readRun(ctx, s.db.reader(), id, "")
}

// Brief returns what the columns say of a run. It decodes nothing.
func (s *RunStore) Brief(ctx context.Context, id string) (holdfast.RunBrief, error) {
	b := holdfast.RunBrief{AttemptRef: holdfast.AttemptRef{Run: id}}
	err := s.db.reader().row(ctx, `SELECT cluster, kind, status, attempt, fence, state_location, bundle FROM runs WHERE id = ?`, id).
		Scan(&b.Cluster, &b.Kind, &b.Status, &b.Attempt, &b.Fence, &b.StateLocation, &b.Bundle)
	return b, notFound(err, "run", id)
}

// Runs returns the runs that match, newest first. A list that is not of one cluster or pull
// request leaves out those that cannot be read: they decide about nothing but their own.
func (s *RunStore) Runs(ctx context.Context, filter holdfast.RunFilter) ([]holdfast.Run, error) {
	var c conditions
	if filter.Cluster != "" {
		c.Add(`cluster = ?`, filter.Cluster)
	}
	if pr := filter.PullRequest; pr != nil {
		if pr.IsZero() {
			c.Add(`pr_number = 0`)
		} else {
			c.Add(`pr_repo = ? AND pr_number = ?`, pr.Repo, pr.Number)
		}
	}
	in(&c, "kind", filter.Kinds)
	in(&c, "status", filter.Statuses)
	in(&c, "project", filter.Projects)
	if after := filter.After; after.ID != "" {
		at := nanos(after.CreatedAt)
		c.Add(`(created_at < ? OR created_at = ? AND id < ?)`, at, at, after.ID)
	}
	ofOne := filter.Cluster != "" || filter.PullRequest != nil && !filter.PullRequest.IsZero()
	return readable("runs", limitOr100(filter.Limit), func(limit int) ([]holdfast.Run, int, error) {
		return s.queryRuns(ctx, ofOne, c.Where()+` ORDER BY created_at DESC, id DESC LIMIT ? + 0`, append(c.Args, limit)...)
	})
}

// queryRuns reads some runs, and counts those that are damaged and left out; if all are
// needed, the first one is an error.
func (s *RunStore) queryRuns(ctx context.Context, all bool, suffix string, args ...any) (runs []holdfast.Run, damaged int, err error) {
	err = s.db.reader().each(ctx, func(row scanner) error {
		run, err := s.scanRun(ctx, row)
		if !all && errors.Is(err, holdfast.ErrDamaged) {
			damaged++
			return nil
		}
		runs = append(runs, run)
		return err
	}, `SELECT `+runColumns+` FROM runs`+suffix, args...)
	return runs, damaged, err
}

// limitOr100 is what the filters promise for a limit of zero.
func limitOr100(limit int) int {
	if limit <= 0 {
		return 100
	}
	return limit
}

// UpdateRun stores run if its Version is the stored one, and returns it with the
// next Version. Attempt, Fence and Agent stay as the claim set them, and only a
// claim makes a run running. A sign of life that came meanwhile is kept, and with it
// the step of a run that still runs.
func (s *RunStore) UpdateRun(ctx context.Context, run holdfast.Run) (holdfast.Run, error) {
	var stored holdfast.Run
	err := s.db.write(ctx, func(ctx context.Context, q querier) (err error) {
		old, err := s.readRun(ctx, q, run.ID, q.forUpdate)
		if err != nil {
			return err
		}
		if old.Status == holdfast.RunRunning && run.Status != holdfast.RunRunning {
			if err := q.alone(ctx, ofState(old.StateKey()), ofState(run.StateKey())); err != nil {
				return err
			}
		}
		stored, err = s.replaceRun(ctx, q, old, run)
		return err
	})
	if err != nil {
		return holdfast.Run{}, fmt.Errorf("update run %q: %w", run.ID, err)
	}
	s.wakers.wake(run.ID)
	return stored, nil
}

// replaceRun stores run over old, closes the attempt that ends with it, and
// releases the state lock that this attempt held, and notes a state that it
// could not save.
func (s *RunStore) replaceRun(ctx context.Context, q querier, old, run holdfast.Run) (holdfast.Run, error) {
	switch {
	case old.Version != run.Version:
		return run, fmt.Errorf("version %d, stored is %d: %w", run.Version, old.Version, holdfast.ErrConflict)
	case old.Status != holdfast.RunRunning && run.Status == holdfast.RunRunning:
		return run, errors.New("only a claim makes a run running")
	}
	run.Attempt, run.Fence, run.Agent, run.CreatedAt = old.Attempt, old.Fence, old.Agent, old.CreatedAt
	if run.HeartbeatAt.Before(old.HeartbeatAt) {
		run.HeartbeatAt = old.HeartbeatAt
		if run.Status == holdfast.RunRunning {
			run.Step = old.Step
		}
	}
	run.PostedAt = old.PostedAt // what posts comments sets it
	run.Version++
	if err := s.storeRun(ctx, q, run); err != nil {
		return run, err
	}
	if !slices.Equal(referencesOf(old), referencesOf(run)) {
		if err := holdRuns(ctx, q, referencesOf(run)); err != nil {
			return run, err
		}
		if err := replaceList(ctx, q, `run_references`, `holder`, `run`, "run:"+run.ID, referencesOf(run)); err != nil {
			return run, err
		}
	}
	if old.Status != holdfast.RunRunning || run.Status == holdfast.RunRunning {
		return run, nil
	}
	if err := s.closeAttempt(ctx, q, run); err != nil {
		return run, err
	}
	if err := dropDeadLocks(ctx, q, old.StateKey()); err != nil {
		return run, err
	}
	places := placing{s.records}
	if run.Kind == holdfast.RunApply && run.Begun {
		if err := places.fixPlace(ctx, q, places.placeOf(run)); err != nil {
			return run, err
		}
	}
	if err := places.noteMoved(ctx, q, run); err != nil {
		return run, err
	}
	return run, s.noteUnsaved(ctx, q, run)
}

func (s *records) storeRun(ctx context.Context, q querier, run holdfast.Run) error {
	doc, err := s.keys.SealJSON("run", run.ID, run)
	if err != nil {
		return err
	}
	_, err = q.exec(ctx, `UPDATE runs SET cluster = ?, kind = ?, status = ?, pr_repo = ?, pr_number = ?, state_location = ?,
			priority = ?, attempt = ?, fence = ?, claim_at = ?, heartbeat_at = ?, step = ?, posted_at = ?, version = ?, provider = ?, project = ?, bundle = ?, lane = ?, doc = ?
		WHERE id = ?`,
		run.Cluster, string(run.Kind), string(run.Status), run.PullRequest.Repo, run.PullRequest.Number, run.StateKey(),
		priority(run), run.Attempt, run.Fence, claimAt(run), nanos(run.HeartbeatAt), run.Step,
		nanos(run.PostedAt), run.Version, run.Document.Provider, run.Document.Project, string(run.Bundle), laneOf(run), doc, run.ID)
	if err != nil && q.duplicate(err) {
		return fmt.Errorf("another run is running at %q: %w", run.StateKey(), holdfast.ErrConflict)
	}
	return err
}
