//go:build !race

package reconciler_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
)

func TestAChainIsDestroyedBackwards(t *testing.T) {
	t.Parallel()
	f := built(t, chain())
	f.repo.Commit(master, "more", many(60)) // so that three are not many
	f.look()
	f.executeAll(unchanged)
	f.open(1, map[string]string{
		"clusters/network.yaml": gitserver.Delete, "clusters/cluster.yaml": gitserver.Delete, "clusters/app.yaml": gitserver.Delete,
	})
	f.executeAll(withEngine)
	f.merge(1, byMerge)
	if rec := f.cluster("network"); rec.Waiting != holdfast.ReasonHasDependents {
		t.Errorf("network waits for %q", rec.Waiting)
	}
	if order := f.writes(withEngine); !slices.Equal(order, []string{"app", "cluster", "network"}) {
		t.Errorf("destroyed in the order %v", order)
	}
	if rec := f.cluster("network"); rec.Phase != holdfast.PhaseDeleted {
		t.Errorf("network is %s and waits for %q", rec.Phase, rec.Waiting)
	}
}

func TestAChainIsAppliedInItsOrder(t *testing.T) {
	t.Parallel()
	f := built(t, chain())
	f.open(1, changeAll("two"))
	f.executeAll(withEngine)
	if run := f.newest("app"); !slices.Equal(run.Provisional, []string{"cluster"}) {
		t.Errorf("the plan of app is provisional for %v", run.Provisional)
	}
	if body := f.comment(1); !strings.Contains(body, "rovisional") {
		t.Errorf("the comment does not say so:\n%s", body)
	}
	f.merge(1, byMerge)
	if rec := f.cluster("app"); rec.Waiting != holdfast.ReasonDependencyPending {
		t.Errorf("app waits for %q (%s)", rec.Waiting, rec.WaitingDetail)
	}
	order := f.writes(withEngine)
	chained := slices.DeleteFunc(slices.Clone(order), func(name string) bool { return name == "beside" })
	if !slices.Equal(chained, []string{"network", "cluster", "app"}) || len(order) != 4 {
		t.Errorf("applied in the order %v", order)
	}
	for _, name := range []string{"network", "cluster", "app", "beside"} {
		if rec := f.cluster(name); rec.Waiting != "" || !rec.Applied.SourceDigest.Equal(rec.Desired.SourceDigest) {
			t.Errorf("%s waits for %q (%s)", name, rec.Waiting, rec.WaitingDetail)
		}
	}
}
