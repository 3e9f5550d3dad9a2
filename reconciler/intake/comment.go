package intake

import (
	"context"
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
	switch _, err := p.Publisher.Intact(ctx, rec.PullRequest, was); {
	case err == nil:
	case rec.State == holdfast.PullRequestMerged:
		return fmt.Errorf("see what was reviewed: %w", err)
	default:
		// What it says will be seen to with the next change.
		p.opts.Logger.DebugContext(ctx, "comment was not looked for", "pull_request", rec.PullRequestRef, "err", err)
	}
	return nil
}
