//go:build !race

package reconciler_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// TestImpactIsWhatItWouldBeAfresh has all kinds of things change below an open
// pull request: what is told then is what a process tells that has never seen it.
func TestImpactIsWhatItWouldBeAfresh(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("makes everything twice")
	}
	f := newShops(t, func(o *reconciler.Options) { o.Sources.Repositories[0].Samples = -1 })
	f.repo.Commit(master, "beside", map[string]string{"clusters/shop-p.yaml": ofShop("shop-p", "any", "{path: ../templates/web}")})
	f.look()
	f.open(1, shop("1.1.0", "two"))
	steps := []struct {
		name string
		do   func()
	}{
		{"another variable", func() {
			f.repo.Commit(master, "edit", map[string]string{"clusters/shop-a.yaml": ofShop("shop-a", "any", "{name: web, version: 1.0.0}", "size: 9")})
		}},
		{"another provider", func() {
			f.repo.Commit(master, "edit", map[string]string{"clusters/shop-b.yaml": ofShop("shop-b", "other", "{name: web, version: 1.0.0}")})
		}},
		{"more clusters", func() {
			f.repo.Commit(master, "add", map[string]string{
				"clusters/shop-e.yaml": ofShop("shop-e", "any", "{name: web, version: 1.1.0}"),
				"clusters/shop-f.yaml": ofShop("shop-f", "any", "{path: ../templates/web}"),
			})
		}},
		{"a document elsewhere", func() {
			f.repo.Commit(master, "move", map[string]string{
				"clusters/shop-d.yaml":      deleted,
				"clusters/more/shop-d.yaml": ofShop("shop-d", "other", "{name: web, version: 1.0.0}"),
			})
		}},
		{"a document at fault", func() {
			f.repo.Commit(master, "break", map[string]string{"clusters/shop-c.yaml": ofShop("shop-c", "any", "{name: web, version: 1.0.0}", "sizes: 1")})
		}},
		{"another proposal", func() { f.push(1, shop("1.1.0", "three")) }},
		{"a proposal that refuses", func() {
			f.push(1, shop("2.0.0", "three", "size: {type: integer, default: 1, maximum: 5}"))
		}},
		{"what it refuses is elsewhere", func() {
			f.repo.Commit(master, "move", map[string]string{
				"clusters/shop-a.yaml":      deleted,
				"clusters/more/shop-a.yaml": ofShop("shop-a", "any", "{name: web, version: 1.0.0}", "size: 9"),
			})
		}},
		{"the pull request edits a document", func() {
			f.push(1, map[string]string{"clusters/shop-p.yaml": ofShop("shop-p", "any", "{path: ../templates/web}", "size: 2")})
		}},
		{"the branch edits it in the same way", func() {
			f.repo.Commit(master, "edit", map[string]string{"clusters/shop-p.yaml": ofShop("shop-p", "any", "{path: ../templates/web}", "size: 2")})
		}},
		{"another base", func() {
			f.repo.Commit(master, "template", map[string]string{"templates/web/modules/page/main.tf": module("another page")})
		}},
		{"a tag for a version that is waited for", func() { f.repo.Tag("web/v1.1.0", master) }},
		{"a tag that moves", func() { f.repo.Tag("v1.0.0", master) }},
		{"a document that goes", func() { f.repo.Commit(master, "remove", map[string]string{"clusters/shop-e.yaml": deleted}) }},
	}
	told := make(map[string]bool)
	for _, step := range steps {
		step.do()
		f.look()
		f.lookAt(1)
		remembered := f.impact(1)
		f.restart()
		f.look()
		f.lookAt(1)
		if diff := cmp.Diff(f.impact(1), remembered); diff != "" {
			t.Fatalf("%s: (-afresh +remembered)\n%s", step.name, diff)
		}
		told[fmt.Sprintf("%+v", remembered)] = true
		// So that the next step is one from something remembered.
		f.repo.Commit(master, "again", map[string]string{"clusters/again.yaml": ofShop(fmt.Sprintf("again-%d", len(told)), "other", "{name: web, version: 1.0.0}")})
		f.look()
		f.lookAt(1)
	}
	if len(told) < len(steps)*2/3 {
		t.Errorf("of %d steps there were %d impacts: they change too little", len(steps), len(told))
	}
}

// countedVersions counts how often a version of a template was asked for, which
// is once for each time that a cluster is rendered.
type countedVersions struct {
	reconciler.Store
	asked *atomic.Int64
}

func (s countedVersions) PinTag(ctx context.Context, repo, tag string, rev holdfast.Revision) (holdfast.Revision, error) {
	s.asked.Add(1)
	return s.Store.PinTag(ctx, repo, tag, rev)
}

// TestImpactOfOthersIsNotMadeAgain has one document edited below a pull request
// that changes the template of many: only that one is rendered again.
func TestImpactOfOthersIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	rendered := func(n int) int64 {
		files := shop("1.0.0", "one")
		for i := range n {
			files[fmt.Sprintf("clusters/s%d.yaml", i)] = ofShop(fmt.Sprintf("s%d", i), "any", "{name: web, version: 1.0.0}", fmt.Sprintf("size: %d", i))
		}
		var asked atomic.Int64
		f := newFleet(t, files, func(o *reconciler.Options) {
			o.Sources.Repositories[0].Samples, o.Store = -1, countedVersions{o.Store, &asked}
		})
		f.repo.Tag("v1.0.0", master)
		f.look()
		f.open(1, shop("1.1.0", "two"))
		if total := reachOf(f.impact(1)); len(total) != n {
			t.Fatalf("%d clusters change, want %d", len(total), n)
		}
		asked.Store(0)
		f.repo.Commit(master, "edit", map[string]string{"clusters/s1.yaml": ofShop("s1", "other", "{name: web, version: 1.0.0}")})
		f.look()
		f.lookAt(1)
		if total := reachOf(f.impact(1)); len(total) != n-1 {
			t.Errorf("%d clusters change, want %d", len(total), n-1)
		}
		return asked.Load()
	}
	if few, many := rendered(4), rendered(24); few != many || few == 0 {
		t.Errorf("of 4 clusters versions were asked for %d times, of 24 %d times", few, many)
	}
}
