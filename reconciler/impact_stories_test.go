//go:build !race

package reconciler_test

import (
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// Whatever write is the last one before a crash, the next process comes to the
// same impact, the same samples and one plan of each.
func TestCrashesWhileAnImpactIsRecorded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("begins again at every write")
	}
	died := make(map[string]bool)
	for left := 0; ; left++ {
		f := newShops(t)
		store := &mortal{Store: f.store, left: left}
		f.restart(func(o *reconciler.Options) { o.Store = assessing{store} })
		head := f.repo.CommitOn("branch-1", master, "change", shop("1.1.0", "two"))
		f.repo.SetPullRequest(1, head, "")
		f.forge.set(holdfast.PullRequest{
			PullRequestRef: holdfast.PullRequestRef{Repo: infra, Number: 1}, Author: "bob", State: holdfast.PullRequestOpen,
			Branch: "branch-1", Head: holdfast.Revision(head), BaseBranch: master, Mergeable: true,
		})
		if f.r.TakeIn(t.Context(), infra, 0) == nil && f.r.TakeIn(t.Context(), infra, 1) == nil {
			_ = f.r.Settle(t.Context())
		}
		died[store.last] = true
		f.restart(func(o *reconciler.Options) { o.Store = f.store })
		f.look()
		f.lookAt(1)
		f.executeAll(planned)
		f.post()
		if got := f.samples(1); !slices.Equal(got, []string{"shop-c"}) || len(f.impact(1).Groups) != 1 {
			t.Errorf("after %d writes (%s): samples %v", left, store.last, got)
		}
		f.expectRuns("shop-c", "plan no_changes", "plan planned")
		if !store.dead {
			break
		}
	}
	for _, write := range []string{"SaveImpacts", "SavePullRequest", "CreateRun plan", "Want"} {
		if !died[write] {
			t.Errorf("no crash at %s", write)
		}
	}
}
