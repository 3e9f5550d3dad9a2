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
	now, err := h.opts.Store.Command(ctx, c.ID)
	switch {
	case err != nil && !errors.Is(err, holdfast.ErrNotFound):
		return fmt.Errorf("read command %s: %w", c.ID, err)
	case err == nil && now.Barred != "": // since this one was read
		return refusal(now.Barred)
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
	const words = refusal(holdfast.BarredByEdit)
	for _, id := range c.Shown {
		run, err := h.opts.Store.Run(ctx, id)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return fmt.Errorf("read run %s: %w", id, err)
		}
		// It was posted when the command was written. If it is not now, or was
		// posted since, somebody else has noticed the edit meanwhile.
		if err == nil && (run.PostedAt.IsZero() || run.PostedAt.After(c.CreatedAt)) {
			return words
		}
	}
	forge := h.opts.Forges[c.PullRequest.Repo]
	post, ok, err := h.Publisher.Comment(ctx, c.PullRequest)
	if err != nil || !ok || forge == nil {
		return err
	}
	found, err := forge.Comment(ctx, c.PullRequest, post.ExternalID)
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return fmt.Errorf("read the comment with the plans of %s: %w", c.PullRequest, err)
	}
	if err == nil && !h.Publisher.Untouched(post, found) {
		if now, _, err := h.Publisher.Comment(ctx, c.PullRequest); err != nil || now.Wanted != post.Wanted {
			return err // we have written it ourselves meanwhile
		}
		h.Agenda.Look(agenda.Look{Repo: c.PullRequest.Repo, Number: c.PullRequest.Number})
		return words
	}
	return nil
}
