// What is known of one repository, and how its branches become pull requests.

package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// repository is what is known of one. Its turn is held while its host is asked, which
// may hang: one turn for all of them would stop the others.
type repository struct {
	opts    Options
	name    string
	tracked string // branch

	turn chan struct{} // one look at the branches at a time: a branch becomes one pull request
	past map[holdfast.Revision]past
	seen map[int]holdfast.Revision // what the tracked branch was at when a merge was first seen, by pull request

	forgotAt time.Time // when pull requests that ended long ago were last removed
}

// take returns a repository whose branches nobody else looks at until it is released.
func (f *Forge) take(ctx context.Context, name string) (r *repository, release func(), err error) {
	r = f.repository(name)
	select {
	case r.turn <- struct{}{}:
		return r, func() { <-r.turn }, nil
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("look at the branches of %s: %w", name, context.Cause(ctx))
	}
}

func (f *Forge) repository(name string) *repository {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.repos[name]
	if r == nil {
		r = &repository{
			opts: f.opts, name: name, tracked: f.opts.Branches[name],
			turn: make(chan struct{}, 1), past: make(map[holdfast.Revision]past), seen: make(map[int]holdfast.Revision),
		}
		f.repos[name] = r
	}
	return r
}

// look updates the stored pull requests to what the branches say, and returns both. The
// caller has the turn.
func (r *repository) look(ctx context.Context) (holdfast.Refs, []holdfast.PullRequest, error) {
	refs, err := r.opts.Git.Fetch(ctx, r.name)
	if err != nil {
		return nil, nil, fmt.Errorf("fetch %s: %w", r.name, err)
	}
	prs, err := r.opts.Store.LocalPullRequests(ctx, r.name)
	if err != nil {
		return nil, nil, fmt.Errorf("list pull requests of %s: %w", r.name, err)
	}
	if prs, err = r.compare(ctx, refs, prs); err == nil {
		r.forget(ctx, refs)
	}
	return refs, prs, err
}

// forgetEvery is how often pull requests that ended long ago are removed.
const forgetEvery = 24 * time.Hour

// forget removes pull requests that ended long ago. One whose branch was left behind stays:
// without it, the branch would be a new pull request.
func (r *repository) forget(ctx context.Context, refs holdfast.Refs) {
	now := r.opts.Now()
	if now.Sub(r.forgotAt) < forgetEvery || refs["refs/heads/"+r.tracked] == "" {
		return
	}
	r.forgotAt = now
	r.opts.Store.ForgetLocalPullRequests(ctx, r.name, func(pr holdfast.PullRequest) bool {
		return refs["refs/heads/"+pr.Branch] != ""
	})
}

// compare updates stored pull requests to what the branches say.
func (r *repository) compare(
	ctx context.Context, refs holdfast.Refs, prs []holdfast.PullRequest,
) ([]holdfast.PullRequest, error) {
	base := refs["refs/heads/"+r.tracked]
	if base == "" {
		return prs, nil // nothing could be merged anywhere
	}
	var err error
	open := make(map[string]bool)
	for i, pr := range prs {
		if pr.State != holdfast.PullRequestOpen {
			continue
		}
		open[pr.Branch] = true
		if prs[i], err = r.follow(ctx, pr, refs["refs/heads/"+pr.Branch], base); err != nil {
			return nil, err
		}
	}
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		branch, ok := strings.CutPrefix(ref, "refs/heads/")
		if !ok || r.isTracked(branch) || open[branch] || isMerged(prs, branch, refs[ref]) {
			continue
		}
		if other, err := r.ofOther(ctx, refs, refs[ref]); err != nil && !isOfBranch(err) {
			return nil, err
		} else if other {
			continue
		}
		pr, err := r.open(ctx, branch, refs[ref], base)
		if err != nil {
			return nil, err
		}
		if pr.Number != 0 {
			prs = append(prs, pr)
		}
	}
	return prs, nil
}

// isOfBranch reports whether a branch could not be compared for what is in it, which anybody
// may have pushed: it is a pull request, whose own look says what is wrong with it, and
// keeps no other waiting.
func isOfBranch(err error) bool { return errors.Is(err, holdfast.ErrUnreadable) }

// isMerged reports whether a branch is what is left of a pull request that was
// merged: whatever happens to the tracked branch after, it is not a new one.
func isMerged(prs []holdfast.PullRequest, branch string, head holdfast.Revision) bool {
	return slices.ContainsFunc(prs, func(pr holdfast.PullRequest) bool {
		return pr.State == holdfast.PullRequestMerged && pr.Branch == branch && pr.Head == head
	})
}

// follow brings an open pull request up to date with its branch: a head of ""
// says that the branch is gone.
func (r *repository) follow(
	ctx context.Context, pr holdfast.PullRequest, head, base holdfast.Revision,
) (holdfast.PullRequest, error) {
	was := pr
	if head != "" {
		pr.Head = head
	}
	merged, err := r.mergedAt(ctx, pr.Head, base)
	switch {
	case err != nil && !isOfBranch(err):
		return pr, err
	case merged != "":
		pr.State, pr.MergeCommit, pr.MergedAt, pr.Mergeable = holdfast.PullRequestMerged, merged, r.opts.Now().UTC(), true
		r.seen[pr.Number] = base
	case head == "":
		pr.State = holdfast.PullRequestClosed
	}
	if reflect.DeepEqual(pr, was) {
		return pr, nil
	}
	pr.UpdatedAt = r.opts.Now().UTC()
	pr, err = r.opts.Store.SaveLocalPullRequest(ctx, pr)
	if err != nil {
		return pr, fmt.Errorf("store pull request %s: %w", pr.PullRequestRef, err)
	}
	return pr, nil
}

// open makes a pull request of a branch that has something to merge.
func (r *repository) open(
	ctx context.Context, branch string, head, base holdfast.Revision,
) (holdfast.PullRequest, error) {
	// Where it was merged does not matter here: of many old branches each would be
	// looked for in all that the tracked branch went through.
	if done, err := r.merged(ctx, head, base); err != nil && !isOfBranch(err) || done {
		return holdfast.PullRequest{}, err
	}
	merged, err := r.mergedAt(ctx, head, base)
	if err != nil && !isOfBranch(err) || merged != "" {
		return holdfast.PullRequest{}, err
	}
	pr := holdfast.PullRequest{
		PullRequestRef: holdfast.PullRequestRef{Repo: r.name},
		Title:          branch, Author: "local", State: holdfast.PullRequestOpen,
		Branch: branch, Head: head, BaseBranch: r.tracked,
		UpdatedAt: r.opts.Now().UTC(), Mergeable: true,
	}
	message, identity, err := r.proposedBy(ctx, head)
	if err != nil && !isOfBranch(err) {
		return pr, err
	}
	if identity != "" { // we have made it, and perhaps died before we said so
		pr.Title, _, _ = strings.Cut(message, "\n")
		pr.Author = botName
	}
	pr, err = r.opts.Store.SaveLocalPullRequest(ctx, pr)
	if err != nil {
		return pr, fmt.Errorf("store pull request of branch %q: %w", branch, err)
	}
	return pr, nil
}

// merged reports whether merging head into base would change nothing: after a
// merge, a squash or a rebase alike.
func (r *repository) merged(ctx context.Context, head, base holdfast.Revision) (bool, error) {
	if head == base {
		return true, nil
	}
	result, err := r.opts.Git.Merge(ctx, r.name, base, head)
	switch {
	case errors.Is(err, holdfast.ErrMergeConflict):
		return false, nil
	case errors.Is(err, holdfast.ErrNotFound):
		return false, nil // the head was never fetched: its branch came and went
	case err != nil:
		return false, fmt.Errorf("merge %s into %s: %w", head.Short(), base.Short(), err)
	}
	tree, err := r.opts.Git.Tree(ctx, r.name, string(base))
	if err != nil {
		return false, fmt.Errorf("open %s: %w", base.Short(), err)
	}
	id, err := tree.Hash(".")
	if err != nil {
		return false, fmt.Errorf("open %s: %w", base.Short(), err)
	}
	return result == id, nil
}
