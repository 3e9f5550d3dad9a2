package datastore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// LocalStore keeps what plain Git has no place for: pull requests, comments and
// statuses of the local forge.
type LocalStore struct{ *records }

// What a code host would keep for a plain Git repository that has none: pull
// requests, comments and statuses of the local forge.

// LocalPullRequests returns the pull requests of a repository, newest number first.
func (s *LocalStore) LocalPullRequests(ctx context.Context, repo string) ([]holdfast.PullRequest, error) {
	var found []holdfast.PullRequest
	err := s.db.reader().each(ctx, func(row scanner) error {
		ref := holdfast.PullRequestRef{Repo: repo}
		var doc []byte
		if err := row.Scan(&ref.Number, &doc); err != nil {
			return err
		}
		var pr holdfast.PullRequest
		err := s.keys.UnsealJSON("local pull request", ref.String(), doc, &pr)
		found = append(found, pr)
		return err
	}, `SELECT number, doc FROM local_pull_requests WHERE repo = ? ORDER BY number DESC`, repo)
	if err != nil {
		return nil, fmt.Errorf("list local pull requests of %q: %w", repo, err)
	}
	return found, nil
}

// SaveLocalPullRequest creates or replaces a pull request; one with number zero
// gets the repository's next.
func (s *LocalStore) SaveLocalPullRequest(ctx context.Context, pr holdfast.PullRequest) (holdfast.PullRequest, error) {
	if pr.Repo == "" {
		return holdfast.PullRequest{}, errors.New("save local pull request: it has no repository")
	}
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		if pr.Number == 0 {
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
		err := s.keys.UnsealJSON("local comment", strconv.FormatInt(id, 10), doc, &c)
		found = append(found, c)
		return err
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
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
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
