package commands

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// atOnce is how old a comment is at most when its command is carried out at once. Whoever
// sees nothing happen for longer may have taken it back.
const atOnce = 10 * time.Second

// stillSaid refuses what a comment does not say any longer. The comment is read again only
// if its command has waited: deliveries tell of what changes, but may be lost.
func (h *Handler) stillSaid(ctx context.Context, c holdfast.Command) error {
	if c.CommentID == "" {
		return nil
	}
	if err := h.barred(ctx, c); err != nil {
		return err
	}
	forge := h.opts.Forges[c.PullRequest.Repo]
	if _, waited := h.waited.Load(c.ID); forge == nil || !waited && h.opts.Now().Sub(c.CreatedAt) < atOnce {
		return nil
	}
	found, err := forge.Comment(ctx, c.PullRequest, c.CommentID)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return refusal("the comment was deleted before this was carried out")
	case err != nil:
		return fmt.Errorf("read comment %s on %s again: %w", c.CommentID, c.PullRequest, err)
	case found.UpdatedAt.After(c.Said):
		return refusal("the comment was edited before this was carried out; write the command in a new comment")
	}
	return nil
}

// stillShown refuses what was said of plans if our comment, which showed them, was edited
// by somebody else: its author may have read another thing.
func (h *Handler) stillShown(ctx context.Context, c holdfast.Command) error {
	pr, err := h.opts.Store.PullRequest(ctx, c.PullRequest)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read pull request %s: %w", c.PullRequest, err)
	}
	intact, err := h.Publisher.Intact(ctx, pr.PullRequest, pr.State)
	if err != nil {
		return err
	}
	// Only now: before a comment is written again, what waits is barred.
	if err := h.barred(ctx, c); err != nil || intact {
		return err
	}
	return refusal(holdfast.BarredByEdit)
}

// barred refuses a command that is not to be carried out any longer, if that was said since
// it was read.
func (h *Handler) barred(ctx context.Context, c holdfast.Command) error {
	now, err := h.opts.Store.Command(ctx, c.ID)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("read command %s: %w", c.ID, err)
	case now.Barred != "":
		return refusal(now.Barred)
	}
	return nil
}
