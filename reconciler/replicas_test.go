package reconciler_test

import (
	"context"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// slowGit is slow to answer: something happens before its answer arrives.
type slowGit struct {
	reconciler.Git
	fetched, opened func()
}

func (g *slowGit) Fetch(ctx context.Context, repo string) (holdfast.Refs, error) {
	refs, err := g.Git.Fetch(ctx, repo)
	call(&g.fetched)
	return refs, err
}

func (g *slowGit) Tree(ctx context.Context, repo, revision string) (holdfast.Tree, error) {
	call(&g.opened)
	return g.Git.Tree(ctx, repo, revision)
}

func call(once *func()) {
	if do := *once; do != nil {
		*once = nil
		do()
	}
}

// A replica that was overtaken by another one while it looked at a head must not
// leave what that said on record: the document is back.
func TestAReplicaThatWasOvertaken(t *testing.T) {
	t.Parallel()
	for name, delay := range map[string]func(g *slowGit, do func()){
		"after it has fetched":    func(g *slowGit, do func()) { g.fetched = do },
		"while it reads the tree": func(g *slowGit, do func()) { g.opened = do },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := built(t, twoClusters())
			fast, git := f.r, &slowGit{Git: f.opts.Sources.Git}
			f.restart(func(o *reconciler.Options) { o.Sources.Git, o.Replica.Identity = git, "slow" })
			f.look()
			delay(git, func() {
				f.repo.Commit(master, "revert", map[string]string{"clusters/prod.yaml": document("prod")})
				f.must(fast.TakeIn(t.Context(), infra, 0))
			})
			f.repo.Commit(master, "remove", map[string]string{"clusters/prod.yaml": gitserver.Delete})
			f.must(f.r.TakeIn(t.Context(), infra, 0))
			f.settle()
			f.must(fast.Settle(t.Context()))
			if rec := f.cluster("prod"); rec.Desired.Removed || rec.Waiting != "" {
				t.Errorf("prod is removed %t, and waits for %q (%s)", rec.Desired.Removed, rec.Waiting, rec.WaitingDetail)
			}
			f.expectRuns("prod", "plan no_changes")
		})
	}
}
