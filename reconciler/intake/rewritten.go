package intake

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// leftLooked is how many of the last merges are looked for in a branch that was forced to
// another history.
const leftLooked = 100

// markLeft records which merges a branch has lost that was forced to another history, and
// which it has again, and shows these.
func (b *branches) markLeft(ctx context.Context, repo Repository, now branchHead) error {
	if !now.rewritten {
		return nil
	}
	last, err := b.opts.Store.PullRequests(ctx, holdfast.PullRequestFilter{
		Repo: repo.Name, States: []holdfast.PullRequestState{holdfast.PullRequestMerged}, ByMerge: true, Limit: leftLooked,
	})
	if err != nil {
		return fmt.Errorf("list merged pull requests of %q: %w", repo.Name, err)
	}
	for _, pr := range last {
		left, err := b.leftFor(ctx, pr, now)
		if err != nil {
			return err
		}
		if left == pr.Left {
			continue
		}
		pr.Left = left
		if _, err := b.opts.Store.SavePullRequest(ctx, pr); err != nil {
			return fmt.Errorf("record pull request %s: %w", pr.PullRequestRef, err)
		}
		b.Publisher.Show(pr.PullRequestRef)
	}
	return nil
}

// leftFor is the head that has lost a merge which the branch had; empty if it has it, or
// never had it.
func (b *branches) leftFor(ctx context.Context, pr holdfast.PullRequestRecord, now branchHead) (holdfast.Revision, error) {
	has := func(head holdfast.Revision) (bool, error) {
		in, err := b.opts.Sources.Git.IsAncestor(ctx, pr.Repo, pr.MergeCommit, head)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return false, fmt.Errorf("look for %s in %s: %w", pr.PullRequestRef, head.Short(), err)
		}
		return in, nil
	}
	if pr.MergeCommit == "" {
		return pr.Left, nil
	}
	if in, err := has(now.revision); in || err != nil {
		return "", err
	}
	if had, err := has(now.former); !had || err != nil {
		return pr.Left, err
	}
	return now.revision, nil
}
