package reconciler_test

import (
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/protocol"
)

// A name that its repository has removed during the first apply, or after one that has
// failed in the middle, is not free: its state holds what that apply has made. Another
// repository's document of that name is taken in once nothing is left, without another
// commit there.
func TestANameIsNotFreeDuringItsFirstApply(t *testing.T) {
	t.Parallel()
	notBegun := func(a protocol.Assignment) protocol.Result {
		result := failing(a)
		result.Applying = false
		return result
	}
	for name, tc := range map[string]struct {
		early  bool // the apply ends before its document goes
		ends   func(protocol.Assignment) protocol.Result
		leaves bool // there is something to destroy
	}{
		"it ends well":             {ends: withEngine, leaves: true},
		"it fails":                 {ends: failing, leaves: true},
		"it has failed before":     {early: true, ends: failing, leaves: true},
		"it fails without a start": {ends: notBegun},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := built(t, twoClusters())
			second, look := withOther(t, f)
			look()
			f.open(1, map[string]string{"clusters/net.yaml": document("net"), "infra/net/main.tf": module("one")})
			f.executeAll(withEngine)
			f.merge(1, byMerge)
			apply := f.claim()
			if tc.early {
				f.finish(apply, tc.ends(apply))
			}
			second.Commit(master, "net", map[string]string{"clusters/net.yaml": document("net"), "infra/net/main.tf": module("two")})
			look()
			f.repo.Commit(master, "remove", map[string]string{"clusters/net.yaml": gitserver.Delete})
			f.look()
			second.Commit(master, "more", map[string]string{"README.md": "more"})
			look()
			if rec := f.cluster("net"); rec.Owner != infra {
				t.Errorf("during its first apply, it was given to %s", rec.Owner)
			}
			if !tc.early {
				f.finish(apply, tc.ends(apply))
			}
			if tc.leaves {
				if rec := f.cluster("net"); rec.Owner != infra || rec.Deletion != nil {
					t.Errorf("after its first apply, it belongs to %s, and is %s", rec.Owner, rec.Phase)
				}
				f.executeAll(withEngine)
				f.apply("net")
				if order := f.writes(withEngine); !slices.Equal(order, []string{"net"}) || !f.newestOf("net", holdfast.RunDestroy).Destroys() {
					t.Errorf("%v were written to", order)
				}
			}
			rec := f.cluster("net")
			if rec.Owner != other || rec.Deletion != nil || rec.Applied.Run != "" {
				t.Errorf("when nothing is left it belongs to %s, is %s, and %q was applied", rec.Owner, rec.Phase, rec.Applied.Run)
			}
		})
	}
}

// Open pull requests of the other repository are looked at again as well.
func TestANameThatIsFreeIsNotAFault(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	second, look := withOther(t, f)
	look()
	ref := holdfast.PullRequestRef{Repo: other, Number: 1}
	head := second.CommitOn("new", master, "new", map[string]string{"clusters/prod.yaml": document("prod"), "infra/prod/main.tf": module("one")})
	f.forge.set(holdfast.PullRequest{
		PullRequestRef: ref, Author: "bob", State: holdfast.PullRequestOpen, Branch: "new", Head: holdfast.Revision(head), BaseBranch: master, Mergeable: true,
	})
	f.must(f.r.TakeIn(t.Context(), other, 1))
	f.settle()
	faults := func() holdfast.Faults {
		rec, err := f.store.PullRequest(t.Context(), ref)
		f.must(err)
		return rec.Faults
	}
	if len(faults()) == 0 {
		t.Error("another repository's name is not a fault")
	}
	f.repo.Commit(master, "remove", map[string]string{"clusters/prod.yaml": gitserver.Delete})
	f.look()
	f.executeAll(withEngine)
	f.apply("prod")
	f.executeAll(withEngine)
	if rec := f.cluster("prod"); rec.Deletion == nil {
		t.Fatalf("prod is %s, and waits for %q", rec.Phase, rec.Waiting)
	}
	if all := faults(); len(all) > 0 {
		t.Errorf("the name is free, and the faults are %v", all)
	}
}

// What a cluster stands on is not destroyed before it, although its first apply has failed
// and its document is gone as well.
func TestAParentDoesNotGoBeforeWhatWasHalfMade(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	files["clusters/base.yaml"], files["infra/base/main.tf"] = document("base"), module("one")
	f := built(t, files)
	f.open(1, map[string]string{"clusters/web.yaml": document("web", "dependsOn: [base]"), "infra/web/main.tf": module("one")})
	f.executeAll(withEngine)
	f.merge(1, byMerge)
	f.executeAll(failing)
	f.repo.Commit(master, "remove", map[string]string{"clusters/base.yaml": gitserver.Delete, "clusters/web.yaml": gitserver.Delete})
	f.look()
	f.executeAll(withEngine)
	var order []string
	for _, name := range []string{"base", "web", "base"} {
		f.apply(name)
		order = append(order, f.writes(withEngine)...)
	}
	if !slices.Equal(order, []string{"web", "base"}) {
		t.Errorf("destroyed in the order %v; base waits for %q: %s", order, f.cluster("base").Waiting, f.cluster("base").WaitingDetail)
	}
}
