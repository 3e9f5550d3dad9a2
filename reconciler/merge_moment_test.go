package reconciler_test

import (
	"context"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// headStore has something happen before the state of a repository is read.
type headStore struct {
	reconciler.Store
	before func() // once; nil: nothing
}

func (s *headStore) RepositoryState(ctx context.Context, repo string) (holdfast.RepositoryState, error) {
	if before := s.before; before != nil {
		s.before = nil
		before()
	}
	return s.Store.RepositoryState(ctx, repo)
}

// A branch is taken in while one of its merges is being shown, after the record of a cluster
// was read: the merge is not said to have nothing to apply.
func TestBranchIsTakenInWhileAMergeIsShown(t *testing.T) {
	t.Parallel()
	f := newFleet(t, twoClusters())
	f.adopt()
	f.open(2, map[string]string{"infra/prod/main.tf": module("two")})
	f.executeAll(good)
	store := &headStore{Store: f.store}
	f.restart(func(o *reconciler.Options) { o.Store = store })
	f.mergeUnnoticed(2, byMerge)
	f.must(f.r.TakeIn(t.Context(), infra, 2))

	taken := false
	store.before = func() {
		taken = true
		f.must(f.r.TakeIn(t.Context(), infra, 0))
	}
	f.must(f.r.Show(t.Context(), holdfast.PullRequestRef{Repo: infra, Number: 2}))
	f.post()
	if !taken {
		t.Fatal("the branch was not taken in")
	}
	for _, status := range f.forge.told(f.forge.get(2).MergeCommit, holdfast.ContextApply) {
		if !strings.HasPrefix(status, string(holdfast.StatusPending)) {
			t.Errorf("nothing is applied, and its status is %q", status)
		}
	}
	f.settle()
	f.executeAll(good)
	f.ticks()
	told := f.forge.told(f.forge.get(2).MergeCommit, holdfast.ContextApply)
	if len(told) == 0 || !strings.HasPrefix(told[len(told)-1], string(holdfast.StatusSuccess)) {
		t.Errorf("its statuses were %q", told)
	}
}
