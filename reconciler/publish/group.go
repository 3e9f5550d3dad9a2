package publish

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
)

// PlanStatus returns the plan status of a pull request's head as it is on the
// forge; the zero value if what it should be is not there yet.
func (p *Publisher) PlanStatus(ctx context.Context, pr holdfast.PullRequestRecord) (holdfast.CommitStatus, error) {
	post, err := p.opts.Store.Post(ctx, statusKey(pr.Repo, pr.Head, holdfast.ContextPlan))
	switch {
	case errors.Is(err, holdfast.ErrNotFound), err == nil && post.Posted != post.Wanted:
		return holdfast.CommitStatus{}, nil
	case err != nil:
		return holdfast.CommitStatus{}, fmt.Errorf("read plan status of %s: %w", pr.PullRequestRef, err)
	default:
		return post.Status, nil
	}
}

// Judged reports whether the status of a merge group's commit is final.
func (p *Publisher) Judged(ctx context.Context, repo string, commit holdfast.Revision) (bool, error) {
	post, err := p.opts.Store.Post(ctx, statusKey(repo, commit, holdfast.ContextPlan))
	if errors.Is(err, holdfast.ErrNotFound) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("read status of %s: %w", commit.Short(), err)
	}
	return post.Status.State != holdfast.StatusPending, nil
}

// WantGroup sets the plan status of the commit of a merge group.
func (p *Publisher) WantGroup(ctx context.Context, repo string, status holdfast.CommitStatus) error {
	return p.wantStatus(ctx, outgoing.Post{Repo: repo, Status: status}, true)
}
