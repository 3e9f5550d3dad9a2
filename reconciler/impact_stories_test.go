//go:build !race

package reconciler_test

import (
	"slices"
	"strings"
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

// Clusters whose documents name the version that is prepared have no root module yet:
// each is held against what was last applied of it, and of those of which that is
// nothing only such stand for one another whose root modules are made of the same.
func TestClustersThatWaitForAVersionAreNotAllAlike(t *testing.T) {
	t.Parallel()
	f := newShops(t)
	waiting := make(map[string]string)
	for name, says := range map[string][]string{
		"shop-a": {"any", ""}, "shop-c": {"any", "size: 1"}, "shop-b": {"any", "size: 9"}, "shop-d": {"other", ""},
		"new-a": {"any", ""}, "new-b": {"any", "size: 1"}, "new-c": {"any", "size: 7"}, "new-d": {"other", ""},
	} {
		waiting["clusters/"+name+".yaml"] = ofShop(name, says[0], "{name: web, version: 1.1.0}", says[1])
	}
	f.repo.Commit(master, "the version that will be", waiting)
	f.look()
	f.open(1, shop("1.1.0", "two"))
	impact := f.impact(1)
	var groups []string
	for _, g := range impact.Groups {
		var names []string
		for _, c := range g.Clusters {
			names = append(names, c.Name)
		}
		groups = append(groups, strings.Join(names, " "))
	}
	slices.Sort(groups)
	if want := []string{"new-a new-b", "new-c", "new-d", "shop-a shop-c", "shop-b"}; !slices.Equal(groups, want) || impact.Same != 1 {
		t.Errorf("groups %q and %d that stay the same, want %q and 1", groups, impact.Same, want)
	}
}
