package datastore

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// RepositoryStore keeps what is known of repositories: what was taken in of them, the
// commits that tags were recorded with, leases, and the audit trail.
type RepositoryStore struct{ *records }

// RepositoryState returns what is remembered of a repository.
func (s *RepositoryStore) RepositoryState(ctx context.Context, repo string) (holdfast.RepositoryState, error) {
	state := holdfast.RepositoryState{Repo: repo}
	var seen, polled int64
	err := s.db.reader().row(ctx, `SELECT head, comments_seen, polled_at, last_error FROM repository_states WHERE repo = ?`, repo).
		Scan(&state.Head, &seen, &polled, &state.LastError)
	if err := notFound(err, "repository", repo); err != nil {
		return holdfast.RepositoryState{}, err
	}
	state.CommentsSeen, state.PolledAt = fromNanos(seen), fromNanos(polled)
	return state, nil
}

// SaveRepositoryState creates or replaces what is remembered of a repository.
func (s *RepositoryStore) SaveRepositoryState(ctx context.Context, source holdfast.RepositoryState) error {
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `INSERT INTO repository_states (repo, head, comments_seen, polled_at, last_error) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (repo) DO UPDATE SET head = excluded.head, comments_seen = excluded.comments_seen,
				polled_at = excluded.polled_at, last_error = excluded.last_error`,
			source.Repo, string(source.Head), nanos(source.CommentsSeen), nanos(source.PolledAt), source.LastError)
		return err
	})
	if err != nil {
		return fmt.Errorf("save repository %q: %w", source.Repo, err)
	}
	return nil
}

// PinTag records that a repository's tag is rev and returns rev; if the tag was
// recorded before, it returns what was recorded.
func (s *RepositoryStore) PinTag(ctx context.Context, repo, tag string, rev holdfast.Revision) (holdfast.Revision, error) {
	const recorded = `SELECT revision FROM tags WHERE repo = ? AND tag = ?`
	var pinned holdfast.Revision
	if err := s.db.reader().row(ctx, recorded, repo, tag).Scan(&pinned); err == nil {
		return pinned, nil
	}
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		if _, err := q.exec(ctx, `INSERT INTO tags (repo, tag, revision) VALUES (?, ?, ?) ON CONFLICT (repo, tag) DO NOTHING`,
			repo, tag, string(rev)); err != nil {
			return err
		}
		return q.row(ctx, recorded, repo, tag).Scan(&pinned)
	})
	if err != nil {
		return "", fmt.Errorf("pin tag %q of %q: %w", tag, repo, err)
	}
	return pinned, nil
}

// MovePin records that a repository's tag is to, if it is recorded as from.
func (s *RepositoryStore) MovePin(ctx context.Context, repo, tag string, from, to holdfast.Revision) error {
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `UPDATE tags SET revision = ? WHERE repo = ? AND tag = ? AND revision = ?`, string(to), repo, tag, string(from))
		return err
	})
	if err != nil {
		return fmt.Errorf("record tag %q of %q again: %w", tag, repo, err)
	}
	return nil
}

// maxSkew is how far apart the clocks of those who claim something may be. What is
// claimed for longer than that and its time was claimed by a clock that was wrong,
// and must not be held until the time that it believed in.
const maxSkew = time.Hour

// longestPause is longer than what has failed is put off for: what is to be tried again
// later than that was put off by a clock that was wrong, and is tried now.
const longestPause = 24 * time.Hour

// by is the parameter of [dialect.clock] for a time of a caller: what is between that and the
// time that the servers agree on, or of SQLite the time itself.
func (s *records) by(at time.Time) int64 {
	if s.db.server == nil {
		return nanos(at)
	}
	return int64(at.Sub(s.now()))
}

// Lease makes owner the holder of name for ttl from now, if nobody else holds
// it, and reports whether owner does. A ttl of zero gives it back. What is compared is the
// time of the database, of SQLite that of the callers.
func (s *RepositoryStore) Lease(ctx context.Context, name, owner string, now time.Time, ttl time.Duration) (bool, error) {
	var held int64
	err := s.db.writeRelaxed(ctx, func(ctx context.Context, q querier) (err error) {
		held, err = q.exec(ctx, `INSERT INTO leases (name, owner, expires_at) VALUES (?, ?, `+q.clock+`)
			ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at
			WHERE leases.owner = excluded.owner OR leases.expires_at <= `+q.clock+` OR leases.expires_at > `+q.clock,
			name, owner, s.by(now.Add(ttl)), s.by(now), s.by(now.Add(ttl+maxSkew)))
		return err
	})
	if err != nil {
		return false, fmt.Errorf("lease %q to %q: %w", name, owner, err)
	}
	return held > 0, nil
}

// Audit appends to the audit trail. A zero At becomes now.
func (s *RepositoryStore) Audit(ctx context.Context, entry holdfast.AuditEntry) error {
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		return s.audit(ctx, q, entry)
	})
	if err != nil {
		return fmt.Errorf("record %s of %q: %w", entry.Action, entry.Object, err)
	}
	return nil
}

func (s *records) audit(ctx context.Context, q querier, entry holdfast.AuditEntry) error {
	if entry.At.IsZero() {
		entry.At = s.now()
	}
	if entry.Origin == "" {
		entry.Origin = holdfast.OriginOf(ctx)
	}
	_, err := q.exec(ctx, `INSERT INTO audit (recorded_at, actor, action, object, detail, origin) VALUES (?, ?, ?, ?, ?, ?)`,
		nanos(entry.At), entry.Actor, entry.Action, entry.Object, entry.Detail, entry.Origin)
	return err
}

// AuditTrail returns what was done to object, newest first; an empty object
// selects all, a limit of zero means 100.
func (s *RepositoryStore) AuditTrail(ctx context.Context, object string, limit int) ([]holdfast.AuditEntry, error) {
	trail, _, err := s.AuditPage(ctx, object, 0, limit)
	return trail, err
}

// AuditPage is AuditTrail for a part of it: what comes before the place that a former
// part gave, zero for none. It returns its own place, zero if there is nothing in it.
func (s *RepositoryStore) AuditPage(ctx context.Context, object string, before int64, limit int) (trail []holdfast.AuditEntry, place int64, err error) {
	var c conditions
	if object != "" {
		c.Add(`object = ?`, object)
	}
	if before > 0 {
		c.Add(`id < ?`, before)
	}
	err = s.db.reader().each(ctx, func(row scanner) error {
		var entry holdfast.AuditEntry
		var at int64
		err := row.Scan(&place, &at, &entry.Actor, &entry.Action, &entry.Object, &entry.Detail, &entry.Origin)
		entry.At = fromNanos(at)
		trail = append(trail, entry)
		return err
	}, `SELECT id, recorded_at, actor, action, object, detail, origin FROM audit`+c.Where()+` ORDER BY id DESC LIMIT ? + 0`,
		append(c.Args, limitOr100(limit))...)
	if err != nil {
		return nil, 0, fmt.Errorf("read audit trail: %w", err)
	}
	return trail, place, nil
}
