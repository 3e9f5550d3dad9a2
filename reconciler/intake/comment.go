package intake

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/agenda"
)

// keepComment asks to write our comment again if somebody has deleted or edited it: a
// plan that nobody sees cannot be reviewed. Was is the state of the pull request on
// record.
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

// commentsLooked is for how many open pull requests each poll of their repository looks for
// the comment: no list of a code host shows what was deleted. All of them have their turn,
// and the cost of a poll does not grow with what is open.
const commentsLooked = 5

// lookForComments looks for our comments in some open pull requests, and asks to write
// those again that somebody has deleted or edited without our knowing. One that cannot be
// looked for does not keep the others waiting, as they may always come after it.
func (p *poller) lookForComments(ctx context.Context, repo Repository) error {
	if repo.Local {
		return nil
	}
	open, err := p.opts.Store.OpenPullRequests(ctx, repo.Name)
	if err != nil {
		return err
	}
	var failed []error
	for _, number := range p.comments.Next(repo.Name, slices.Sorted(maps.Keys(open)), commentsLooked) {
		ref := holdfast.PullRequestRef{Repo: repo.Name, Number: number}
		rec, err := p.opts.Store.PullRequest(ctx, ref)
		if rec.Damaged { // code hosts list only what has changed
			p.Agenda.Look(agenda.Look{Repo: repo.Name, Number: number})
			continue
		}
		if err == nil {
			_, err = p.Publisher.Intact(ctx, rec.PullRequest, rec.State)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("pull request %s: %w", ref, err))
		}
	}
	return errors.Join(failed...)
}
