package reconciler_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/proposals"
)

// proposalHost is the part of a forge in memory that takes our own pull requests.
type proposalHost struct {
	proposals map[string]proposals.PullRequest // by branch, as they were last made
}

func (h *codeHost) Propose(_ context.Context, repo string, p proposals.PullRequest) (holdfast.PullRequest, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.called("Propose"); err != nil {
		return holdfast.PullRequest{}, err
	}
	if h.proposals == nil {
		h.proposals = make(map[string]proposals.PullRequest)
	}
	last := holdfast.PullRequest{}
	for n, pr := range h.prs {
		if pr.Branch == p.Branch && n > last.Number {
			last = pr
		}
	}
	was, ours := h.proposals[p.Branch]
	switch {
	case last.Number == 0:
	case last.State != holdfast.PullRequestOpen && was.Identity() == p.Identity():
		return last, nil
	case last.State == holdfast.PullRequestOpen && (!ours || last.Head != commitOf(was)):
		return holdfast.PullRequest{}, fmt.Errorf("branch %q: %w", p.Branch, holdfast.ErrConflict)
	}
	if last.State != holdfast.PullRequestOpen {
		number := 1
		for n := range h.prs {
			number = max(number, n+1)
		}
		last = holdfast.PullRequest{
			PullRequestRef: holdfast.PullRequestRef{Repo: repo, Number: number}, Author: "holdfast",
			State: holdfast.PullRequestOpen, Branch: p.Branch, BaseBranch: p.BaseBranch,
		}
	}
	last.Title, last.Head, last.UpdatedAt = p.Title, commitOf(p), h.clock.Now()
	h.prs[last.Number], h.proposals[p.Branch] = last, p
	return last, nil
}

// commitOf is the id of the commit that a proposal makes: the same for the same.
func commitOf(p proposals.PullRequest) holdfast.Revision {
	var b bytes.Buffer
	fmt.Fprintln(&b, p.Base, p.Message)
	for _, path := range slices.Sorted(maps.Keys(p.Files)) {
		fmt.Fprintln(&b, path, len(p.Files[path]))
		b.Write(p.Files[path])
	}
	return holdfast.Revision(holdfast.DigestOf(b.Bytes()).Short())
}

func (h *codeHost) Withdraw(_ context.Context, ref holdfast.PullRequestRef, _ string, _ holdfast.Revision, _ string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.called("Withdraw"); err != nil {
		return err
	}
	pr, ok := h.prs[ref.Number]
	if !ok {
		return holdfast.ErrNotFound
	}
	if pr.State == holdfast.PullRequestOpen {
		pr.State, pr.UpdatedAt = holdfast.PullRequestClosed, h.clock.Now()
		h.prs[ref.Number] = pr
	}
	return nil
}
