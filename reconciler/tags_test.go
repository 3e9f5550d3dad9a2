package reconciler_test

import (
	"strings"
	"testing"
)

// settledShops are shops of which none is to be upgraded: how long a test takes does not
// depend on proposals.
func settledShops(t *testing.T) *fleet {
	t.Helper()
	f := newShops(t)
	f.repo.Commit(master, "no upgrades", map[string]string{"clusters/shop-c.yaml": ofShop("shop-c", "any", "{name: web, version: 1.0.0}", "size: 1")})
	f.look()
	return f
}

// A version that was used stays the commit that it was, although two tags can
// release it.
func TestAnotherTagDoesNotMoveAVersion(t *testing.T) {
	t.Parallel()
	faults := func(f *fleet) string { return f.cluster("shop-a").Desired.Faults.Error() }

	added := newShops(t) // released by v1.0.0
	added.repo.Commit(master, "another one", shop("1.0.0", "two"))
	added.repo.Tag("web/v1.0.0", master)
	added.look()
	if got := faults(added); !strings.Contains(got, "tag web/v1.0.0 was moved from") {
		t.Errorf("a more particular tag makes the version another one: %q", got)
	}
	added.repo.DeleteRef("refs/tags/web/v1.0.0")
	added.look()
	if got := faults(added); got != "" {
		t.Errorf("it is gone: %q", got)
	}

	deleted := newShops(t)
	deleted.repo.Tag("web/v1.0.0", "refs/tags/v1.0.0")
	deleted.look()
	if got := faults(deleted); got != "" {
		t.Errorf("two tags for one commit: %q", got)
	}
	deleted.repo.Commit(master, "another one", shop("1.0.0", "two"))
	deleted.repo.Tag("v1.0.0", master)
	deleted.repo.DeleteRef("refs/tags/web/v1.0.0")
	deleted.look()
	if got := faults(deleted); !strings.Contains(got, "tag v1.0.0 was moved from") {
		t.Errorf("the more general tag makes the version another one: %q", got)
	}
}

// A tag can be mended as long as only pull requests name the version that it
// releases. Once a branch has it, it stays.
func TestATagIsMendedUntilItIsUsed(t *testing.T) {
	t.Parallel()
	f := settledShops(t)
	f.repo.Commit(master, "1.1.0", shop("1.1.0", "a slip"))
	f.repo.Tag("v1.1.0", master)
	f.look()
	upgraded := map[string]string{"clusters/shop-a.yaml": ofShop("shop-a", "any", "{name: web, version: 1.1.0}")}
	f.open(1, upgraded)
	f.executeAll(planned)
	before := f.pullRequest(1)

	f.repo.Commit(master, "1.1.0 again", shop("1.1.0", "mended"))
	f.repo.Tag("v1.1.0", master)
	f.look()
	f.lookAt(1)
	rec := f.pullRequest(1)
	if len(rec.Faults) > 0 || len(rec.Clusters) != 1 || rec.Clusters[0].SourceDigest.Equal(before.Clusters[0].SourceDigest) {
		t.Fatalf("mended before anybody used it: faults %v, clusters %v", rec.Faults, f.affected(1))
	}
	f.repo.Commit(master, "upgrade", upgraded)
	f.look()
	if faults := f.cluster("shop-a").Desired.Faults; len(faults) > 0 {
		t.Fatalf("on the branch: %v", faults)
	}
	f.repo.Commit(master, "1.1.0 once more", shop("1.1.0", "too late"))
	f.repo.Tag("v1.1.0", master)
	f.look()
	if faults := f.cluster("shop-a").Desired.Faults.Error(); !strings.Contains(faults, "tag v1.1.0 was moved from") {
		t.Errorf("moved after it was used: %q", faults)
	}
}

// A tag whose template is broken is mended although a branch has its version already: no
// cluster could be planned with it.
func TestABrokenTagIsMendedAfterTheMerge(t *testing.T) {
	t.Parallel()
	f := settledShops(t)
	broken := shop("1.1.0", "one")
	for name := range broken {
		if strings.HasSuffix(name, "template.yaml") {
			broken[name] += "\nno such key: here\n"
		}
	}
	f.repo.Commit(master, "1.1.0", broken)
	f.repo.Tag("v1.1.0", master)
	f.look()
	f.repo.Commit(master, "upgrade", map[string]string{"clusters/shop-a.yaml": ofShop("shop-a", "any", "{name: web, version: 1.1.0}")})
	f.look()
	if faults := f.cluster("shop-a").Desired.Faults.Error(); !strings.Contains(faults, "no such key") {
		t.Fatalf("of a broken template: %q", faults)
	}
	f.repo.Commit(master, "1.1.0 mended", shop("1.1.0", "mended"))
	f.repo.Tag("v1.1.0", master)
	f.look()
	if rec := f.cluster("shop-a"); len(rec.Desired.Faults) > 0 || rec.Desired.SourceDigest == "" {
		t.Errorf("mended: %v", rec.Desired.Faults)
	}
	f.repo.Commit(master, "1.1.0 once more", shop("1.1.0", "too late"))
	f.repo.Tag("v1.1.0", master)
	f.look()
	if faults := f.cluster("shop-a").Desired.Faults.Error(); !strings.Contains(faults, "tag v1.1.0 was moved from") {
		t.Errorf("moved after it was used: %q", faults)
	}
}
