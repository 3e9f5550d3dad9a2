package datastore

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// StoreCommand stores a command once and reports whether it is new: the same id
// is the same command, and so is the same line of the same comment, by whatever
// way it came. It fills in Shown and ShownHead from the pull request's comment
// as it was on the forge when a comment's command was written: what was posted
// later, while the delivery was lost or we were away, nobody meant.
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
	err := s.db.write(ctx, func(ctx context.Context, q querier) (err error) {
		if c.CommentID != "" && !c.PullRequest.IsZero() {
			if c.Shown, c.ShownHead, err = shown(ctx, q, c.PullRequest, c.CreatedAt); err != nil {
				return err
			}
		}
		doc, err := s.keys.SealJSON("command", c.ID, c)
		if err != nil {
			return err
		}
		line := holdfast.DigestOf([]byte(c.Text))
		stored, err = q.exec(ctx, `INSERT INTO commands (id, repo, comment_id, line, status, created_at, doc) VALUES (?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT DO NOTHING`,
			c.ID, c.PullRequest.Repo, c.CommentID, string(line), string(c.Status), nanos(c.CreatedAt), doc)
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

// Commands returns the commands with that status, oldest first.
func (s *PullRequestStore) Commands(ctx context.Context, status holdfast.CommandStatus) ([]holdfast.Command, error) {
	var found []holdfast.Command
	err := s.db.reader().each(ctx, func(row scanner) error {
		c, err := s.scanCommand(row)
		found = append(found, c)
		return err
	}, `SELECT id, doc FROM commands WHERE status = ? ORDER BY created_at, id`, string(status))
	if err != nil {
		return nil, fmt.Errorf("list %s commands: %w", status, err)
	}
	return found, nil
}

// FinishCommand stores Status, Reply and DoneAt; a zero DoneAt becomes now.
func (s *PullRequestStore) FinishCommand(ctx context.Context, c holdfast.Command) error {
	err := s.db.write(ctx, func(ctx context.Context, q querier) error {
		stored, err := s.scanCommand(q.row(ctx, `SELECT id, doc FROM commands WHERE id = ?`+q.forUpdate, c.ID))
		if err := notFound(err, "command", c.ID); err != nil {
			return err
		}
		stored.Status, stored.Reply, stored.DoneAt = c.Status, c.Reply, c.DoneAt
		if stored.DoneAt.IsZero() {
			stored.DoneAt = s.now()
		}
		doc, err := s.keys.SealJSON("command", c.ID, stored)
		if err != nil {
			return err
		}
		_, err = q.exec(ctx, `UPDATE commands SET status = ?, doc = ? WHERE id = ?`, string(stored.Status), doc, c.ID)
		return err
	})
	if err != nil {
		return fmt.Errorf("finish command %q: %w", c.ID, err)
	}
	return nil
}

// barCommands bars the commands of a pull request's comments that were not carried out
// yet: their authors may have read what somebody else had written. Stamps of forges do
// not tell them from those that come after the comment was written again.
func (s *Store) barCommands(ctx context.Context, q querier, pr holdfast.PullRequestRef) error {
	var waiting []holdfast.Command
	err := q.each(ctx, func(row scanner) error {
		c, err := s.scanCommand(row)
		asks := c.Verb == holdfast.VerbApprove || c.Verb == holdfast.VerbApply
		if err == nil && asks && c.PullRequest == pr && c.CommentID != "" && len(c.Shown) > 0 && c.Barred == "" {
			waiting = append(waiting, c)
		}
		return err
	}, `SELECT id, doc FROM commands WHERE repo = ? AND status = ?`, pr.Repo, string(holdfast.CommandReceived))
	if err != nil {
		return err
	}
	for _, c := range waiting {
		c.Barred = holdfast.BarredByEdit
		doc, err := s.keys.SealJSON("command", c.ID, c)
		if err != nil {
			return err
		}
		if _, err := q.exec(ctx, `UPDATE commands SET doc = ? WHERE id = ?`, doc, c.ID); err != nil {
			return err
		}
	}
	return nil
}
