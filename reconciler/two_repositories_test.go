package reconciler_test

import (
	"context"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// twoGits reads the repository "other" from a second source.
type twoGits struct {
	reconciler.Git
	second reconciler.Git
}

func (g *twoGits) of(repo string) reconciler.Git {
	if repo == "other" {
		return g.second
	}
	return g.Git
}

func (g *twoGits) Fetch(ctx context.Context, repo string) (holdfast.Refs, error) {
	return g.of(repo).Fetch(ctx, repo)
}

func (g *twoGits) Tree(ctx context.Context, repo, revision string) (holdfast.Tree, error) {
	return g.of(repo).Tree(ctx, repo, revision)
}

func (g *twoGits) Diff(ctx context.Context, repo, from, to string) ([]holdfast.TreeChange, error) {
	return g.of(repo).Diff(ctx, repo, from, to)
}

func (g *twoGits) Parents(ctx context.Context, repo string, rev holdfast.Revision) ([]holdfast.Revision, error) {
	return g.of(repo).Parents(ctx, repo, rev)
}

func (g *twoGits) IsAncestor(ctx context.Context, repo string, a, b holdfast.Revision) (bool, error) {
	return g.of(repo).IsAncestor(ctx, repo, a, b)
}

func (g *twoGits) Merge(ctx context.Context, repo string, base, head holdfast.Revision) (string, error) {
	return g.of(repo).Merge(ctx, repo, base, head)
}
