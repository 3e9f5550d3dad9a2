package reconciler_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast"
)

// proposalHost is the part of a forge in memory that takes our own pull requests.
type proposalHost struct {
	proposals map[string]holdfast.Proposal // by branch, as they were last made
	heads     map[string]holdfast.Revision // of branches, whoever pushed them
	withdrawn map[int]string               // why, by number
}

// pushes lets a person push to a branch.
func (h *codeHost) pushes(branch string, head holdfast.Revision) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.heads == nil {
		h.heads = make(map[string]holdfast.Revision)
	}
	h.heads[branch] = head
	for n, pr := range h.prs {
		if pr.Branch == branch && pr.State == holdfast.PullRequestOpen {
			pr.Head, pr.UpdatedAt = head, h.clock.Now()
			h.prs[n] = pr
		}
	}
}

// proposed returns what was last proposed on a branch.
func (h *codeHost) proposed(branch string) (holdfast.Proposal, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p, ok := h.proposals[branch]
	return p, ok
}

func (h *codeHost) Propose(_ context.Context, repo string, p holdfast.Proposal) (holdfast.PullRequest, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.called("Propose"); err != nil {
		return holdfast.PullRequest{}, err
	}
	if h.heads == nil {
		h.heads = make(map[string]holdfast.Revision)
	}
	if h.proposals == nil {
		h.proposals = make(map[string]holdfast.Proposal)
	}
	was, ours := h.proposals[p.Branch]
	head := commitOf(p)
	switch at := h.heads[p.Branch]; at {
	case "", head, p.Head:
	default:
		if !ours || at != commitOf(was) {
			return holdfast.PullRequest{}, fmt.Errorf("branch %q: %w", p.Branch, holdfast.ErrConflict)
		}
	}
	number := 0
	for n, pr := range h.prs {
		if pr.Branch == p.Branch && n > number {
			number = n
		}
	}
	pr, ok := h.prs[number]
	if ok && pr.State != holdfast.PullRequestOpen && was.Message == p.Message {
		return pr, nil
	}
	if !ok || pr.State != holdfast.PullRequestOpen {
		number = 1
		for n := range h.prs {
			number = max(number, n+1)
		}
		pr = holdfast.PullRequest{
			PullRequestRef: holdfast.PullRequestRef{Repo: repo, Number: number},
			Author:         "holdfast", State: holdfast.PullRequestOpen,
			Branch: p.Branch, BaseBranch: p.BaseBranch, URL: fmt.Sprintf("https://forge.example/%s/%d", repo, number),
		}
	}
	pr.Title, pr.Head, pr.UpdatedAt = p.Title, head, h.clock.Now()
	h.prs[number], h.heads[p.Branch], h.proposals[p.Branch] = pr, head, p
	return pr, nil
}

// commitOf is the id of the commit that a proposal makes: the same for the same.
func commitOf(p holdfast.Proposal) holdfast.Revision {
	var b bytes.Buffer
	fmt.Fprintln(&b, p.Base, p.Message)
	for _, path := range slices.Sorted(maps.Keys(p.Files)) {
		fmt.Fprintln(&b, path, len(p.Files[path]))
		b.Write(p.Files[path])
	}
	return holdfast.Revision(holdfast.DigestOf(b.Bytes()).Short())
}

func (h *codeHost) Withdraw(
	_ context.Context, ref holdfast.PullRequestRef, branch string, head holdfast.Revision, why string,
) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.called("Withdraw"); err != nil {
		return err
	}
	pr, ok := h.prs[ref.Number]
	if !ok {
		return holdfast.ErrNotFound
	}
	if h.heads[branch] == head {
		delete(h.heads, branch)
	}
	if pr.State != holdfast.PullRequestOpen {
		return nil
	}
	if h.withdrawn == nil {
		h.withdrawn = make(map[int]string)
	}
	pr.State, pr.UpdatedAt = holdfast.PullRequestClosed, h.clock.Now()
	h.prs[ref.Number], h.withdrawn[ref.Number] = pr, why
	return nil
}
