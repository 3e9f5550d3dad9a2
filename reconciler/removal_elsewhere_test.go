package reconciler_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// keptElsewhere is the path and line of the document by which another repository continues prod.
const keptElsewhere = `clusters/shop.yaml:1 of repository "other"`

// missesFor fails unless prod counts as missing for what another repository says.
func (f *fleet) missesFor(want, when string) {
	f.t.Helper()
	rec := f.cluster("prod")
	if rec.Desired.Removed || rec.Waiting != holdfast.ReasonMissing || !strings.Contains(rec.Desired.Missing, want) {
		f.t.Errorf("%s: prod waits for %q, removed: %v, missing: %q", when, rec.Waiting, rec.Desired.Removed, rec.Desired.Missing)
	}
	f.noDestroy("prod", when)
}

// A cluster is not destroyed while a document of another repository says that it continues
// from it, whichever of the two came first, and also after a restart. It is once that is
// taken back.
func TestADocumentElsewhereKeepsACluster(t *testing.T) {
	t.Parallel()
	remove := map[string]string{"clusters/prod.yaml": gitserver.Delete}
	for name, laterThere := range map[string]bool{"there first": false, "removed first": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := built(t, twoClusters())
			second, look := withOther(t, f)
			there := func() {
				second.Commit(master, "shop", map[string]string{
					"clusters/shop.yaml": renamedDocument("shop", "prod"), "infra/shop/main.tf": module("one"),
				})
				look()
			}
			if !laterThere {
				there()
				f.open(1, remove)
				if faults := f.pullRequest(1).Faults.Error(); !strings.Contains(faults, keptElsewhere) {
					t.Errorf("the pull request that removes it says %s", faults)
				}
			}
			f.repo.Commit(master, "remove", remove)
			f.look()
			if laterThere {
				if rec := f.cluster("prod"); !rec.Desired.Removed {
					t.Fatalf("it is not removed: %+v", rec.Desired)
				}
				there()
			}
			f.missesFor(keptElsewhere, "with the document there")
			f.restart()
			f.look() // before the other repository is fetched
			f.missesFor(keptElsewhere, "after a restart")
			rec := f.cluster("prod")
			if rec.Desired.HeirIn != other {
				t.Errorf("on record it continues in %q", rec.Desired.HeirIn)
			}
			rec.Desired.HeirIn = "" // as an earlier version has left it
			_, err := f.store.SaveCluster(t.Context(), rec)
			f.must(err)
			f.restart()
			f.look()
			f.missesFor(keptElsewhere, "after a restart with a record of an earlier version")
			look()
			f.missesFor(keptElsewhere, "once the other repository is read again")
			second.Commit(master, "another one", map[string]string{"clusters/shop.yaml": document("shop")})
			look()
			if rec := f.cluster("prod"); !rec.Desired.Removed {
				t.Errorf("taken back there, it is not removed: %+v", rec.Desired)
			}
		})
	}
}

// A repository that may not define such a cluster cannot keep one from being destroyed.
func TestWhoMayNotHaveAClusterKeepsNone(t *testing.T) {
	t.Parallel()
	f := built(t, twoClusters())
	second, look := withOther(t, f)
	f.restart(func(o *reconciler.Options) {
		o.Grants.Allow = func(repo string, c holdfast.Cluster, _ string) error {
			if repo == other && c.Project == "p" {
				return holdfast.ErrForbidden
			}
			return nil
		}
	})
	f.look()
	second.Commit(master, "shop", map[string]string{
		"clusters/shop.yaml": strings.Replace(renamedDocument("shop", "prod"), "project: p", "project: q", 1), "infra/shop/main.tf": module("one"),
	})
	look()
	f.repo.Commit(master, "remove", map[string]string{"clusters/prod.yaml": gitserver.Delete})
	f.look()
	if rec := f.cluster("prod"); !rec.Desired.Removed {
		t.Errorf("it is missing: %q", rec.Desired.Missing)
	}
}
