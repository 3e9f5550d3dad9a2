package reconciler_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/protocol"
)

// onBase is a fleet with a cluster web on base, and the assignment of the first apply of web,
// which is running.
func onBase(t *testing.T) (*fleet, protocol.Assignment) {
	t.Helper()
	files := twoClusters()
	files["clusters/base.yaml"], files["infra/base/main.tf"] = document("base"), module("one")
	f := built(t, files)
	f.open(1, map[string]string{"clusters/web.yaml": document("web", "dependsOn: [base]"), "infra/web/main.tf": module("one")})
	f.executeAll(withEngine)
	f.merge(1, byMerge)
	a := f.claim()
	if a.Kind != apply || a.Cluster != "web" {
		t.Fatalf("handed out was a %s of %q", a.Kind, a.Cluster)
	}
	return f, a
}

// executeOthers executes all runs while another one is executed, and returns the clusters
// that were written to.
func (f *fleet) executeOthers(running protocol.Assignment) (written []string) {
	f.t.Helper()
	for a := f.claim(running.AttemptRef); a.Run != ""; a = f.claim(running.AttemptRef) {
		if a.Kind.Writes() {
			written = append(written, a.Cluster)
		}
		f.must(f.store.PutArtefact(f.t.Context(), a.AttemptRef, protocol.ArtefactPlan, strings.NewReader("{}")))
		f.finish(a, withEngine(a))
	}
	f.post()
	return written
}

// A cluster is not destroyed under another one whose first apply is running, although the
// document of that no longer depends on it; nor while that apply has failed half-way. It
// is destroyed as soon as an apply has ended well that does not depend on it.
func TestAParentDoesNotGoDuringAFirstApply(t *testing.T) {
	t.Parallel()
	f, web := onBase(t)
	f.repo.Commit(master, "alone", map[string]string{"clusters/web.yaml": document("web")})
	f.look()
	f.open(2, map[string]string{"clusters/base.yaml": gitserver.Delete})
	f.executeOthers(web)
	f.merge(2, byMerge)
	waits := func(when string, written []string) {
		t.Helper()
		rec := f.cluster("base")
		if rec.Waiting != holdfast.ReasonHasDependents || !strings.Contains(rec.WaitingDetail, "web") || len(written) > 0 {
			t.Fatalf("%s, base waits for %q (%s), and written to are %v", when, rec.Waiting, rec.WaitingDetail, written)
		}
	}
	waits("during the first apply of web", f.executeOthers(web))
	f.finish(web, failing(web))
	waits("after it has failed", f.writes(withEngine))
	f.apply("web")
	if order := f.writes(withEngine); !slices.Equal(order, []string{"web", "base"}) {
		t.Errorf("afterwards written to are %v; base waits for %q (%s)", order, f.cluster("base").Waiting, f.cluster("base").WaitingDetail)
	}
}

// A cluster that was removed is destroyed once nothing depends on it, without a further
// commit.
func TestAParentGoesOnceNothingDependsOnIt(t *testing.T) {
	t.Parallel()
	f, web := onBase(t)
	f.finish(web, withEngine(web))
	f.open(2, map[string]string{"clusters/base.yaml": gitserver.Delete})
	f.executeAll(withEngine)
	f.merge(2, byMerge)
	if order := f.writes(withEngine); len(order) > 0 || f.cluster("base").Waiting != holdfast.ReasonHasDependents {
		t.Fatalf("written to are %v; base waits for %q (%s)", order, f.cluster("base").Waiting, f.cluster("base").WaitingDetail)
	}
	f.repo.Commit(master, "alone", map[string]string{"clusters/web.yaml": document("web")})
	f.look()
	if order := f.writes(withEngine); !slices.Equal(order, []string{"base"}) {
		t.Errorf("written to are %v; base waits for %q (%s)", order, f.cluster("base").Waiting, f.cluster("base").WaitingDetail)
	}
}

// Under another name a cluster keeps the parents of all applies that it has left half done,
// and not only those of the last one.
func TestARenamedClusterKeepsItsParents(t *testing.T) {
	t.Parallel()
	f, web := onBase(t)
	f.finish(web, failing(web))
	f.repo.Commit(master, "alone", map[string]string{"clusters/web.yaml": document("web"), "infra/web/main.tf": module("two")})
	f.look()
	f.executeAll(withEngine)
	f.apply("web")
	if order := f.writes(failing); !slices.Equal(order, []string{"web"}) {
		t.Fatalf("written to are %v", order)
	}
	f.repo.Commit(master, "rename", map[string]string{
		"clusters/web.yaml": gitserver.Delete, "clusters/site.yaml": renamedDocument("site", "web"), "infra/site/main.tf": module("two"),
	})
	f.look()
	f.open(2, map[string]string{"clusters/base.yaml": gitserver.Delete})
	f.executeAll(withEngine)
	f.merge(2, byMerge)
	order, rec := f.writes(withEngine), f.cluster("base")
	if len(order) > 0 || rec.Waiting != holdfast.ReasonHasDependents || !strings.Contains(rec.WaitingDetail, "site") {
		t.Fatalf("written to are %v; base waits for %q (%s)", order, rec.Waiting, rec.WaitingDetail)
	}
	f.apply("site")
	if order := f.writes(withEngine); !slices.Equal(order, []string{"site", "base"}) {
		t.Errorf("afterwards written to are %v; base waits for %q (%s)", order, f.cluster("base").Waiting, f.cluster("base").WaitingDetail)
	}
}
