package reconciler_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/protocol"
)

// TestAMergeOfWhatWasDestroyedLater: a merge that left nothing to apply says so still when
// its cluster was destroyed by a later one, also if the old name is used again.
func TestAMergeOfWhatWasDestroyedLater(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	said := func(when string) {
		t.Helper()
		f.post()
		rev := f.forge.get(1).MergeCommit
		if f.forge.status(rev, holdfast.ContextApply) != holdfast.StatusSuccess {
			t.Errorf("%s: holdfast/apply of the rename: %q", when, f.forge.told(rev, holdfast.ContextApply))
		}
	}
	nothing := func(protocol.Assignment) protocol.Result { return protocol.Result{Status: holdfast.RunNoChanges} }
	f.open(1, map[string]string{
		"clusters/prod.yaml": strings.ReplaceAll(renamedDocument("live", "prod"), "infra/live", "infra/prod"),
	})
	f.executeAll(nothing)
	f.post()
	f.merge(1, byMerge)
	f.executeAll(nothing)
	said("merged")

	f.open(2, map[string]string{"clusters/prod.yaml": gitserver.Delete})
	f.executeAll(withEngine)
	f.post()
	f.merge(2, byMerge)
	f.executeAll(withEngine)
	f.post()
	f.restart()
	f.look()
	f.lookAt(1)
	said("destroyed")
	if rec := f.cluster("live"); rec.Phase != holdfast.PhaseDeleted {
		t.Fatalf("live is %s and waits for %q", rec.Phase, rec.Waiting)
	}

	f.open(3, map[string]string{"clusters/prod.yaml": document("prod")})
	f.executeAll(withEngine)
	f.post()
	f.merge(3, byMerge)
	f.executeAll(withEngine)
	f.restart()
	f.look()
	f.lookAt(1)
	said("the name is used again")
}
