package intake

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// keepComment has our comment written again if somebody has deleted or edited it: a
// plan that nobody sees is not one that somebody reviews. Was is the state of the pull
// request on record.
func (p *pullRequests) keepComment(
	ctx context.Context, repo Repository, was holdfast.PullRequestState, rec holdfast.PullRequestRecord,
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
		post.ExternalID = ""
	case err != nil && rec.State == holdfast.PullRequestMerged && was != holdfast.PullRequestMerged:
		return fmt.Errorf("read the comment with the plans of %s: %w", rec.PullRequestRef, err) // it says what was reviewed
	case err != nil:
		// What it says will be seen to with the next change.
		p.opts.Logger.DebugContext(ctx, "comment was not looked for", "pull_request", rec.PullRequestRef, "err", err)
		return nil
	case p.Publisher.Untouched(post, found):
		return nil
	}
	_, err = p.Publisher.CommentEdited(ctx, post, rec.PullRequest, was, found)
	return err
}
