package reconciler_test

import (
	"strings"
	"testing"
)

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
