package intake

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// keepComment has our comment written again if somebody has deleted or edited it: a
// plan that nobody sees is not one that somebody reviews. Was is the state of the pull
// request on record.
func (p *pullRequests) keepComment(
	ctx context.Context, repo Repository, was holdfast.PullRequestState, rec *holdfast.PullRequestRecord,
) error {
	if repo.Local || rec.State == holdfast.PullRequestClosed {
		return nil
	}
	post, ok, err := p.Publisher.Comment(ctx, rec.PullRequestRef)
	if !ok || err != nil {
		return err
	}
	found, err := p.opts.Sources.Forges[repo.Name].Comment(ctx, rec.PullRequestRef, post.ExternalID)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return p.Publisher.CommentLost(ctx, post)
	case err != nil:
		// What it says will be seen to with the next change.
		p.opts.Logger.DebugContext(ctx, "comment was not looked for", "pull_request", rec.PullRequestRef, "err", err)
		return nil
	case p.Publisher.Untouched(post, found):
		return nil
	}
	return p.commentEdited(ctx, was, rec, post, found)
}

// commentEdited has our comment written again that somebody else has edited.
// Everybody who may write can do that, and nobody who reads it can tell: what it
// showed counts as shown, and as approved, only from when it is there again, unless
// it was edited after the merge, and a look since the merge had found it as it was: of
// several edits a forge tells the time of the last one only.
func (p *pullRequests) commentEdited(
	ctx context.Context, was holdfast.PullRequestState, rec *holdfast.PullRequestRecord, post holdfast.Post, found holdfast.Comment,
) error {
	var seen, since time.Time
	switch {
	case rec.State != holdfast.PullRequestMerged:
	case was == holdfast.PullRequestMerged && found.UpdatedAt.After(rec.MergedAt):
		seen = rec.MergedAt
	default:
		since = rec.MergedAt.Add(time.Second) // it may be there again within that of the merge
	}
	edited, err := p.Publisher.CommentEdited(ctx, post, seen, since)
	if err != nil || !edited {
		return err
	}
	p.opts.Logger.WarnContext(ctx, "somebody has edited the comment with the plans: it is written again",
		"pull_request", rec.PullRequestRef, "comment", found.ID, "edited_at", found.UpdatedAt)
	rec.Approvals = slices.Clone(rec.Approvals)
	for i := range rec.Approvals {
		a := &rec.Approvals[i]
		if a.Ended == "" && a.CommentID != "" && !a.At.Before(found.UpdatedAt.Truncate(time.Second)) {
			a.Ended = "somebody had edited the comment with the plans"
		}
	}
	return nil
}
