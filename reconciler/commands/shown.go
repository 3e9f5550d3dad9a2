package commands

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
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

// stillShown refuses what a comment says of plans if our comment, which showed them,
// was edited by somebody else: who wrote it may have read another thing.
func (h *Handler) stillShown(ctx context.Context, c holdfast.Command) error {
	forge := h.opts.Forges[c.PullRequest.Repo]
	for {
		post, there, err := h.Publisher.Comment(ctx, c.PullRequest)
		if err != nil {
			return err
		}
		touched := false
		if there && forge != nil { // else whoever writes it looks first
			found, err := forge.Comment(ctx, c.PullRequest, post.ExternalID)
			if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
				return fmt.Errorf("read the comment with the plans of %s: %w", c.PullRequest, err)
			}
			touched = err != nil || !h.Publisher.Untouched(post, found)
		}
		// Only now: before a comment is written again, what waits is barred.
		if err := h.barred(ctx, c); err != nil || !touched {
			return err
		}
		now, _, err := h.Publisher.Comment(ctx, c.PullRequest)
		switch {
		case err != nil:
			return err
		case now.Wanted == post.Wanted:
			h.Agenda.Look(agenda.Look{Repo: c.PullRequest.Repo, Number: c.PullRequest.Number})
			return refusal(holdfast.BarredByEdit)
		}
		// We are writing it ourselves.
	}
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
