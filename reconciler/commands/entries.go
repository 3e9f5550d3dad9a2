package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// forAnotherEntry returns which other entry of the same repository obeys a command,
// if any: that one which tracks the branch that the pull request is to be merged
// into. A comment does not name it, so that each entry gets each command.
func (h *Handler) forAnotherEntry(ctx context.Context, c holdfast.Command) (string, error) {
	repo := h.repos[c.PullRequest.Repo]
	if c.PullRequest.IsZero() || len(repo.Entries) < 2 {
		return "", nil
	}
	rec, err := h.opts.Store.PullRequest(ctx, c.PullRequest)
	base := rec.BaseBranch
	if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
		return "", fmt.Errorf("read pull request %s: %w", c.PullRequest, err)
	}
	if base != repo.Branch { // it may have been changed
		pr, err := h.opts.Forges[repo.Name].PullRequest(ctx, c.PullRequest)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return "", fmt.Errorf("ask for pull request %s: %w", c.PullRequest, err)
		}
		base = pr.BaseBranch
	}
	first := repo.Entries[0]
	for _, name := range repo.Entries {
		if h.repos[name].Branch == base {
			first = name
		}
	}
	if first == repo.Name {
		return "", nil
	}
	return first, nil
}
