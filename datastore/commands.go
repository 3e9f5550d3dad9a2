package datastore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// StoreCommand stores a command once and reports whether it is new: the same id is the
// same command, and so is the same line of the same comment, by whatever way it came. It
// fills in Shown and ShownHead, also of an approval through the API that names no plan,
// from the pull request's comment as it was on the forge when a comment's command was
// written: what was posted later, while the delivery was lost or the server was down,
// nobody meant. One that was withdrawn already is not stored.
func (s *PullRequestStore) StoreCommand(ctx context.Context, c holdfast.Command) (bool, error) {
	if c.ID == "" {
		return false, errors.New("store command: it has no id")
	}
	if c.Status == "" {
		c.Status = holdfast.CommandReceived
	}
	if c.CreatedAt.IsZero() {
		c.CreatedAt = s.now()
	}
	var stored int64
	given := c
	err := s.db.write(ctx, func(ctx context.Context, q querier) (err error) {
		c := given
		if err := q.alone(ctx, ofPullRequest(c.PullRequest)); err != nil {
			return err
		}
		shows := c.CommentID != "" || c.Verb == holdfast.VerbApprove && c.Shown == nil
		if shows && !c.PullRequest.IsZero() {
			at := c.CreatedAt
			if c.CommentID == "" {
				at = time.Time{} // it is given now: our clock may not be the forge's
			}
			if c.Shown, c.ShownHead, err = shown(ctx, q, c.PullRequest, at); err != nil {
				return err
			}
		}
		doc, err := s.keys.SealJSON("command", c.ID, c)
		if err != nil {
			return err
		}
		line := holdfast.DigestOf([]byte(c.Text))
		stored, err = q.exec(ctx, `INSERT INTO commands (id, repo, comment_id, line, status, created_at, doc) SELECT ?, ?, ?, ?, ?, ?, ?
			WHERE NOT EXISTS (SELECT 1 FROM commands WHERE repo = ? AND comment_id = ? AND line = '' AND created_at > ?) ON CONFLICT DO NOTHING`,
			c.ID, c.PullRequest.Repo, c.CommentID, string(line), string(c.Status), nanos(c.CreatedAt), doc,
			c.PullRequest.Repo, c.CommentID, nanos(c.Said))
		return err
	})
	if err != nil {
		return false, fmt.Errorf("store command %q: %w", c.ID, err)
	}
	return stored > 0, nil
}

func (s *records) scanCommand(row scanner) (holdfast.Command, error) {
	var id string
	var doc []byte
	var c holdfast.Command
	if err := row.Scan(&id, &doc); err != nil {
		return c, err
	}
	return c, s.keys.UnsealJSON("command", id, doc, &c)
}

// Command returns a command.
func (s *PullRequestStore) Command(ctx context.Context, id string) (holdfast.Command, error) {
	c, err := s.scanCommand(s.db.reader().row(ctx, `SELECT id, doc FROM commands WHERE id = ?`, id))
	return c, notFound(err, "command", id)
}

// Commands returns the readable commands with that status, in the order in which they were
// given: code hosts have seconds, number their comments, and a comment may have several.
func (s *PullRequestStore) Commands(ctx context.Context, status holdfast.CommandStatus) ([]holdfast.Command, error) {
	var found []holdfast.Command
	err := s.db.reader().each(ctx, func(row scanner) error {
		c, err := s.scanCommand(row)
		if err != nil { // the others are to be carried out
			s.log.WarnContext(ctx, "a command cannot be read", "err", err)
			return nil
		}
		found = append(found, c)
		return nil
	}, `SELECT id, doc FROM commands WHERE status = ? ORDER BY created_at, length(comment_id), comment_id, rowid`, string(status))
	if err != nil {
		return nil, fmt.Errorf("list %s commands: %w", status, err)
	}
	return found, nil
}

// FinishCommand stores Status, CommandResult and DoneAt; a zero DoneAt becomes now.
func (s *PullRequestStore) FinishCommand(ctx context.Context, c holdfast.Command) error {
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		stored, err := s.scanCommand(q.row(ctx, `SELECT id, doc FROM commands WHERE id = ?`+q.forUpdate, c.ID))
		if err := notFound(err, "command", c.ID); err != nil {
			return err
		}
		stored.Status, stored.DoneAt, stored.CommandResult = c.Status, c.DoneAt, c.CommandResult
		if stored.DoneAt.IsZero() {
			stored.DoneAt = s.now()
		}
		return s.saveCommand(ctx, q, stored)
	})
	if err != nil {
		return fmt.Errorf("finish command %q: %w", c.ID, err)
	}
	return nil
}

func (s *records) saveCommand(ctx context.Context, q querier, c holdfast.Command) error {
	doc, err := s.keys.SealJSON("command", c.ID, c)
	if err != nil {
		return err
	}
	_, err = q.exec(ctx, `UPDATE commands SET status = ?, doc = ? WHERE id = ?`, string(c.Status), doc, c.ID)
	return err
}

// WithdrawCommands bars the commands that a comment gave before some time and that were
// not carried out yet. Those that reach us later are not stored: a command without a
// line keeps the time.
func (s *PullRequestStore) WithdrawCommands(ctx context.Context, comment holdfast.Comment, before time.Time, why string) error {
	ref := comment.PullRequest
	id := holdfast.CommandID(ref.Repo, comment.ID, -1)
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		if err := q.alone(ctx, ofPullRequest(ref)); err != nil {
			return err
		}
		doc, err := s.keys.SealJSON("command", id, holdfast.Command{ID: id, PullRequest: ref, CommentID: comment.ID, Barred: why})
		if err != nil {
			return err
		}
		if _, err = q.exec(ctx, `INSERT INTO commands (id, repo, comment_id, line, status, created_at, doc) VALUES (?, ?, ?, '', ?, ?, ?)
			ON CONFLICT (id) DO UPDATE SET created_at = CASE WHEN commands.created_at > excluded.created_at
				THEN commands.created_at ELSE excluded.created_at END`,
			id, ref.Repo, comment.ID, string(holdfast.CommandRefused), nanos(before), doc); err != nil {
			return err
		}
		return s.barCommands(ctx, q, ref, why, func(c holdfast.Command) bool { return c.CommentID == comment.ID && c.Said.Before(before) })
	})
	if err != nil {
		return fmt.Errorf("withdraw the commands of comment %s: %w", comment.ID, err)
	}
	return nil
}

// barCommands bars some of the commands of a pull request that were not carried out yet.
func (s *records) barCommands(ctx context.Context, q querier, pr holdfast.PullRequestRef, why string, some func(holdfast.Command) bool) error {
	var barred []holdfast.Command
	err := q.each(ctx, func(row scanner) error {
		c, err := s.scanCommand(row)
		if err == nil && c.PullRequest == pr && c.Barred == "" && some(c) {
			c.Barred = why
			barred = append(barred, c)
		}
		return nil // what cannot be read is not carried out
	}, `SELECT id, doc FROM commands WHERE repo = ? AND status = ? ORDER BY id`+q.forUpdate, pr.Repo, string(holdfast.CommandReceived))
	for i := 0; i < len(barred) && err == nil; i++ {
		err = s.saveCommand(ctx, q, barred[i])
	}
	return err
}
