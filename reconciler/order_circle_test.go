package reconciler_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/protocol"
)

// removedBy merges a pull request that removes clusters, says the word that their number
// may need, and returns those that were destroyed, in order.
func (f *fleet) removedBy(number int, names ...string) []string {
	f.t.Helper()
	gone := map[string]string{}
	for _, name := range names {
		gone["clusters/"+name+".yaml"] = gitserver.Delete
	}
	f.open(number, gone)
	f.executeAll(withEngine)
	f.merge(number, byMerge)
	order := f.writes(withEngine)
	f.post()
	f.command(number, "alice", "/holdfast apply")
	return append(order, f.writes(withEngine)...)
}

// Clusters that depend on each other in a circle, by documents that are at fault or by
// changes that were applied one by one, are destroyed once all of them are removed: in
// the order in which they were applied, where there is one.
func TestACircleIsDestroyed(t *testing.T) {
	t.Parallel()
	dependsOn := func(name string, parents ...string) map[string]string {
		return map[string]string{"clusters/" + name + ".yaml": document(name, "dependsOn: ["+strings.Join(parents, ", ")+"]")}
	}
	for name, tc := range map[string]struct {
		pushed   []map[string]string
		names    []string // as they are to be destroyed
		anyOrder bool
	}{
		"of one": {pushed: []map[string]string{dependsOn("app", "app", "cluster")}, names: []string{"app"}},
		"of two": {
			pushed: []map[string]string{{"clusters/app.yaml": document("app")}, dependsOn("network", "cluster")},
			names:  []string{"cluster", "network"},
		},
		"of three": {pushed: []map[string]string{dependsOn("network", "app")}, names: []string{"app", "cluster", "network"}},
		"that was never applied": {pushed: []map[string]string{
			{"clusters/app.yaml": document("app"), "clusters/cluster.yaml": document("cluster")},
			{
				"clusters/app.yaml": document("app", "dependsOn: [network]"), "clusters/cluster.yaml": document("cluster", "dependsOn: [app]"),
				"clusters/network.yaml": document("network", "dependsOn: [cluster]"),
			},
		}, names: []string{"app", "cluster", "network"}, anyOrder: true},
		"without a fault": {pushed: []map[string]string{
			{"clusters/app.yaml": document("app"), "clusters/cluster.yaml": document("cluster", "dependsOn: [network]", "apply: {onMerge: false}")},
			{"clusters/cluster.yaml": document("cluster", "apply: {onMerge: false}"), "infra/cluster/main.tf": module("two")},
			dependsOn("network", "cluster"),
		}, names: []string{"cluster", "network"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := built(t, chain())
			for _, files := range tc.pushed {
				f.repo.Commit(master, "change", files)
				f.look()
				f.executeAll(withEngine)
			}
			order := f.removedBy(1, tc.names...)
			if tc.anyOrder {
				slices.Sort(order)
			}
			if !slices.Equal(order, tc.names) {
				t.Errorf("destroyed in the order %v", order)
			}
			for _, name := range tc.names {
				if rec := f.cluster(name); rec.Phase != holdfast.PhaseDeleted {
					t.Errorf("%s is %s and waits for %q: %s", name, rec.Phase, rec.Waiting, rec.WaitingDetail)
				}
			}
		})
	}
}

// One of a circle waits as long as another one that depends on it is not removed.
func TestACircleOfWhichOneIsRemoved(t *testing.T) {
	t.Parallel()
	f := built(t, chain())
	f.repo.Commit(master, "circle", map[string]string{"clusters/network.yaml": document("network", "dependsOn: [app]")})
	f.look()
	for number, name := range []string{"network", "cluster"} {
		if order := f.removedBy(1+number, name); len(order) > 0 {
			t.Errorf("%v are destroyed", order)
		}
		if rec := f.cluster(name); rec.Waiting != holdfast.ReasonHasDependents {
			t.Errorf("%s waits for %q: %s", name, rec.Waiting, rec.WaitingDetail)
		}
	}
	order := f.removedBy(3, "app")
	for _, number := range []int{2, 1} { // they have become many meanwhile
		f.command(number, "alice", "/holdfast apply")
		order = append(order, f.writes(withEngine)...)
	}
	if !slices.Equal(order, []string{"app", "cluster", "network"}) {
		t.Errorf("destroyed in the order %v", order)
	}
}

// What an apply has begun with and not ended well counts as what was applied.
func TestRemovedAfterAFailedApply(t *testing.T) {
	t.Parallel()
	files := chain()
	files["clusters/app.yaml"], files["clusters/cluster.yaml"] = document("app"), document("cluster")
	f := built(t, files)
	f.open(1, map[string]string{"clusters/network.yaml": document("network", "dependsOn: [app]"), "infra/network/main.tf": module("two")})
	f.executeAll(withEngine)
	f.merge(1, byMerge)
	f.executeAll(func(a protocol.Assignment) protocol.Result {
		if a.Kind.Writes() {
			return failing(a)
		}
		return withEngine(a)
	})
	if order := f.removedBy(2, "app", "network"); !slices.Equal(order, []string{"network", "app"}) {
		t.Errorf("destroyed in the order %v", order)
	}
}
