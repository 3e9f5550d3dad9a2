package github

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// Propose makes a branch with one commit and a pull request for it.
func (f *Client) Propose(_ context.Context, repo string, _ holdfast.Proposal) (holdfast.PullRequest, error) {
	return holdfast.PullRequest{}, fmt.Errorf("propose to %s: %w", repo, holdfast.ErrForbidden)
}

// Withdraw closes a pull request of ours.
func (f *Client) Withdraw(_ context.Context, ref holdfast.PullRequestRef, _ string, _ holdfast.Revision, _ string) error {
	return fmt.Errorf("withdraw %s: %w", ref, holdfast.ErrForbidden)
}
