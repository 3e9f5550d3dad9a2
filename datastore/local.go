package datastore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// LocalStore keeps what plain Git has no place for: pull requests, comments and
// statuses of the local forge.
type LocalStore struct {
	*records
	retention time.Duration // of pull requests that have ended; negative: forever

	mu    sync.Mutex
	ended map[holdfast.PullRequestRef]holdfast.PullRequest // as they were read: they are asked for with each look, and do not change; guarded
}

func newLocalStore(r *records, retention time.Duration) *LocalStore {
	return &LocalStore{records: r, retention: retention, ended: make(map[holdfast.PullRequestRef]holdfast.PullRequest)}
}

// What a code host would keep for a plain Git repository that has none: pull
// requests, comments and statuses of the local forge.

// LocalPullRequests returns the pull requests of a repository that can be read, newest
// number first.
func (s *LocalStore) LocalPullRequests(ctx context.Context, repo string) ([]holdfast.PullRequest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var refs []holdfast.PullRequestRef
	err := s.db.reader().each(ctx, func(row scanner) error {
		ref := holdfast.PullRequestRef{Repo: repo}
		err := row.Scan(&ref.Number)
		refs = append(refs, ref)
		return err
	}, `SELECT number FROM local_pull_requests WHERE repo = ? ORDER BY number DESC`, repo)
	var found []holdfast.PullRequest
	for _, ref := range refs {
		pr, ok := s.ended[ref]
		if !ok && err == nil {
			pr, ok, err = s.readLocal(ctx, ref)
		}
		if ok {
			found = append(found, pr)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list local pull requests of %q: %w", repo, err)
	}
	return found, nil
}

// readLocal reads a pull request, and remembers one that has ended. For one that cannot
// be read it returns what is known of it: otherwise its branch would become another pull
// request. It is false if that cannot be read either: the others continue without it.
func (s *LocalStore) readLocal(ctx context.Context, ref holdfast.PullRequestRef) (pr holdfast.PullRequest, ok bool, err error) {
	var doc []byte
	err = s.db.reader().row(ctx, `SELECT doc FROM local_pull_requests WHERE repo = ? AND number = ?`, ref.Repo, ref.Number).Scan(&doc)
	if errors.Is(err, sql.ErrNoRows) {
		return pr, false, nil
	} else if err != nil {
		return pr, false, err
	}
	if s.unseal(ctx, "local pull request", ref.String(), doc, &pr) != nil {
		rec, err := (&PullRequestStore{s.records}).PullRequest(ctx, ref)
		if err != nil || rec.Damaged {
			return pr, false, nil
		}
		pr = rec.PullRequest
	}
	if pr.State != holdfast.PullRequestOpen {
		s.ended[ref] = pr
	}
	return pr, true, nil
}

// ForgetLocalPullRequests removes the pull requests of a repository that ended before the
// retention and that no record is of, without those that needed reports, and without the
// highest number: none is given twice. What fails is logged, and tried again next time.
func (s *LocalStore) ForgetLocalPullRequests(ctx context.Context, repo string, needed func(holdfast.PullRequest) bool) {
	removed := removals{}
	defer removed.report(ctx, s.log)
	if err := s.forgetLocal(ctx, repo, needed, removed); err != nil {
		s.log.WarnContext(ctx, "pull requests that ended long ago were not removed", "repo", repo, "err", err)
	}
}

func (s *LocalStore) forgetLocal(
	ctx context.Context, repo string, needed func(holdfast.PullRequest) bool, removed removals,
) error {
	if s.retention < 0 {
		return nil
	}
	prs, err := s.LocalPullRequests(ctx, repo)
	if err != nil {
		return err
	}
	before := s.now().Add(-s.retention)
	old := slices.DeleteFunc(prs, func(pr holdfast.PullRequest) bool {
		return pr.State == holdfast.PullRequestOpen || !pr.UpdatedAt.Before(before) || needed(pr)
	})
	for some := range slices.Chunk(old, 500) {
		gone := 0
		err := s.db.write(ctx, func(ctx context.Context, q querier) error {
			gone = 0
			if err := q.alone(ctx, ofRepository(repo)); err != nil {
				return err
			}
			for _, pr := range some {
				n, err := q.exec(ctx, `DELETE FROM local_pull_requests WHERE repo = ? AND number = ?
					AND number < (SELECT MAX(l.number) FROM local_pull_requests AS l WHERE l.repo = local_pull_requests.repo)
					AND NOT `+knownPull("local_pull_requests.repo", "local_pull_requests.number"), repo, pr.Number)
				if err != nil {
					return fmt.Errorf("remove %s: %w", pr, err)
				}
				gone += int(n)
			}
			return nil
		})
		if err != nil {
			return err
		}
		removed.add("pull requests of a repository without a code host", keyEnded, gone)
		for _, pr := range some {
			s.changedLocal(pr.PullRequestRef)
		}
	}
	return nil
}

// changedLocal has a pull request read again.
func (s *LocalStore) changedLocal(ref holdfast.PullRequestRef) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ended, ref)
}

// SaveLocalPullRequest creates or replaces a pull request; one with number zero
// gets the repository's next.
func (s *LocalStore) SaveLocalPullRequest(ctx context.Context, pr holdfast.PullRequest) (holdfast.PullRequest, error) {
	if pr.Repo == "" {
		return holdfast.PullRequest{}, errors.New("save local pull request: it has no repository")
	}
	given := pr.Number
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		if pr.Number = given; given == 0 {
			if err := q.alone(ctx, ofRepository(pr.Repo)); err != nil {
				return err
			}
			if err := q.row(ctx, `SELECT COALESCE(MAX(number), 0) + 1 FROM local_pull_requests WHERE repo = ?`, pr.Repo).Scan(&pr.Number); err != nil {
				return err
			}
		}
		doc, err := s.keys.SealJSON("local pull request", pr.String(), pr)
		if err != nil {
			return err
		}
		_, err = q.exec(ctx, `INSERT INTO local_pull_requests (repo, number, doc) VALUES (?, ?, ?)
			ON CONFLICT (repo, number) DO UPDATE SET doc = excluded.doc`, pr.Repo, pr.Number, doc)
		return err
	})
	s.changedLocal(pr.PullRequestRef)
	if err != nil {
		return holdfast.PullRequest{}, fmt.Errorf("save local pull request %s: %w", pr, err)
	}
	return pr, nil
}

// LocalComments returns the comments of a pull request, oldest first.
func (s *LocalStore) LocalComments(ctx context.Context, ref holdfast.PullRequestRef) ([]holdfast.Comment, error) {
	return s.localComments(ctx, `repo = ? AND number = ?`, ref.Repo, ref.Number)
}

// LocalCommentsSince returns the comments of all pull requests of a repository
// that were created or edited at since or later, oldest first.
func (s *LocalStore) LocalCommentsSince(ctx context.Context, repo string, since time.Time) ([]holdfast.Comment, error) {
	return s.localComments(ctx, `repo = ? AND updated_at >= ?`, repo, nanos(since))
}

func (s *LocalStore) localComments(ctx context.Context, where string, args ...any) ([]holdfast.Comment, error) {
	var found []holdfast.Comment
	err := s.db.reader().each(ctx, func(row scanner) error {
		var id int64
		var doc []byte
		if err := row.Scan(&id, &doc); err != nil {
			return err
		}
		var c holdfast.Comment
		name := strconv.FormatInt(id, 10)
		if s.unseal(ctx, "local comment", name, doc, &c) == nil {
			found = append(found, c)
		}
		return nil
	}, `SELECT id, doc FROM local_comments WHERE `+where+` ORDER BY id`, args...)
	if err != nil {
		return nil, fmt.Errorf("list local comments: %w", err)
	}
	return found, nil
}

// SaveLocalComment creates a comment, if it has no id, or edits the one with its
// id. A zero CreatedAt or, of an edit, UpdatedAt becomes now. ErrNotFound if
// there is none with that id.
func (s *LocalStore) SaveLocalComment(ctx context.Context, c holdfast.Comment) (holdfast.Comment, error) {
	created := c.ID == ""
	if c.CreatedAt.IsZero() && created {
		c.CreatedAt = s.now()
	}
	if c.UpdatedAt.IsZero() {
		c.UpdatedAt = s.now()
		if created {
			c.UpdatedAt = c.CreatedAt
		}
	}
	given := c
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		c = given
		id, err := s.placeComment(ctx, q, &c)
		if err != nil {
			return err
		}
		doc, err := s.keys.SealJSON("local comment", c.ID, c)
		if err != nil {
			return err
		}
		_, err = q.exec(ctx, `UPDATE local_comments SET updated_at = ?, doc = ? WHERE id = ?`, nanos(c.UpdatedAt), doc, id)
		return err
	})
	if err != nil {
		return holdfast.Comment{}, fmt.Errorf("save local comment on %s: %w", c.PullRequest, err)
	}
	return c, nil
}

// placeComment finds or makes the row of a comment and gives c what it has from before.
func (s *LocalStore) placeComment(ctx context.Context, q querier, c *holdfast.Comment) (int64, error) {
	var id int64
	if c.ID == "" {
		err := q.row(ctx, `INSERT INTO local_comments (repo, number, updated_at, doc) VALUES (?, ?, ?, '') RETURNING id`,
			c.PullRequest.Repo, c.PullRequest.Number, nanos(c.UpdatedAt)).Scan(&id)
		c.ID = strconv.FormatInt(id, 10)
		return id, err
	}
	id, err := strconv.ParseInt(c.ID, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("comment %q: %w", c.ID, holdfast.ErrNotFound)
	}
	var doc []byte
	err = q.row(ctx, `SELECT doc FROM local_comments WHERE id = ? AND repo = ? AND number = ?`+q.forUpdate,
		id, c.PullRequest.Repo, c.PullRequest.Number).Scan(&doc)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("comment %q: %w", c.ID, holdfast.ErrNotFound)
	}
	if err != nil {
		return 0, err
	}
	var old holdfast.Comment
	if err := s.keys.UnsealJSON("local comment", c.ID, doc, &old); err != nil {
		return 0, err
	}
	if c.CreatedAt.IsZero() {
		c.CreatedAt = old.CreatedAt
	}
	if c.Author == "" {
		c.Author, c.Bot = old.Author, old.Bot
	}
	return id, nil
}

// SaveLocalStatus sets a commit status of a repository: one for each revision and context.
func (s *LocalStore) SaveLocalStatus(ctx context.Context, repo string, status holdfast.CommitStatus) error {
	doc, err := s.keys.SealJSON("local status", statusName(repo, status.Revision, status.Context), status)
	if err != nil {
		return fmt.Errorf("save local status: %w", err)
	}
	err = s.db.write(ctx, func(ctx context.Context, q querier) error {
		_, err := q.exec(ctx, `INSERT INTO local_statuses (repo, revision, context, set_at, doc) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (repo, revision, context) DO UPDATE SET set_at = excluded.set_at, doc = excluded.doc`,
			repo, string(status.Revision), status.Context, nanos(s.now()), doc)
		return err
	})
	if err != nil {
		return fmt.Errorf("save local status %s of %s: %w", status.Context, status.Revision.Short(), err)
	}
	return nil
}

func statusName(repo string, rev holdfast.Revision, statusContext string) string {
	return repo + "\x00" + string(rev) + "\x00" + statusContext
}

// LocalStatuses returns the statuses of a commit, by context.
func (s *LocalStore) LocalStatuses(ctx context.Context, repo string, rev holdfast.Revision) ([]holdfast.CommitStatus, error) {
	var found []holdfast.CommitStatus
	err := s.db.reader().each(ctx, func(row scanner) error {
		var statusContext string
		var doc []byte
		if err := row.Scan(&statusContext, &doc); err != nil {
			return err
		}
		var status holdfast.CommitStatus
		err := s.keys.UnsealJSON("local status", statusName(repo, rev, statusContext), doc, &status)
		found = append(found, status)
		return err
	}, `SELECT context, doc FROM local_statuses WHERE repo = ? AND revision = ? ORDER BY context`, repo, string(rev))
	if err != nil {
		return nil, fmt.Errorf("list local statuses of %s: %w", rev.Short(), err)
	}
	return found, nil
}
