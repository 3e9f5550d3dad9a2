package intake

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast"
)

// mergeResult returns the tree that merging a pull request gives. The forge's own merge
// is taken if it is that of the current base and head; a pull request of which only the
// base has moved is merged by us, without asking the forge.
func (p *pullRequests) mergeResult(
	ctx context.Context, repo Repository, pr holdfast.PullRequestRecord, known bool,
) (head, base holdfast.Revision, tree string, err error) {
	refs := p.mirror.last(repo.Name)
	if repo.Local && (!known || refs == nil) {
		if refs, err = p.mirror.fetch(ctx, repo.Name); err != nil {
			return "", "", "", err
		}
	}
	if repo.Local || known && refs != nil {
		if base, err = trackedHead(repo, refs); err != nil {
			return "", "", "", err
		}
		tree, err = p.opts.Sources.Git.Merge(ctx, repo.Name, base, pr.Head)
		if err == nil || repo.Local {
			return pr.Head, base, tree, err
		}
	}
	prRefs, err := p.mirror.fetchPullRequest(ctx, pr.PullRequestRef)
	if err != nil {
		return "", base, "", err
	}
	if base, err = trackedHead(repo, prRefs.Refs); err != nil {
		return "", "", "", err
	}
	if head = pr.Head; prRefs.Head != "" {
		head = prRefs.Head
	}
	if prRefs.Merge != "" {
		parents, err := p.opts.Sources.Git.Parents(ctx, repo.Name, prRefs.Merge)
		if err == nil && slices.Equal(parents, []holdfast.Revision{base, head}) {
			return head, base, string(prRefs.Merge), nil
		}
	}
	tree, err = p.opts.Sources.Git.Merge(ctx, repo.Name, base, head)
	return head, base, tree, err
}

func trackedHead(repo Repository, refs holdfast.Refs) (holdfast.Revision, error) {
	head := refs["refs/heads/"+repo.Branch]
	if head == "" {
		return "", fmt.Errorf("branch %q of %s: %w", repo.Branch, repo.Name, holdfast.ErrNotFound)
	}
	return head, nil
}
