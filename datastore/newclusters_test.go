package datastore_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
)

// newClusters are records that are new, and the beginnings of their histories.
func newClusters(n int) (records []holdfast.ClusterRecord, history []holdfast.Transition) {
	for i := range n {
		name := fmt.Sprintf("c%02d", i)
		records = append(records, holdfast.ClusterRecord{
			Name: name, Owner: "infra", Phase: holdfast.PhasePending, UpdatedAt: noon,
			Desired: holdfast.Desired{Revision: "abc", Document: holdfast.Cluster{
				Name: name, Project: "shop", DependsOn: []string{"c00"}, Labels: map[string]string{"tier": name},
			}},
		})
		history = append(history, holdfast.Transition{Cluster: name, At: noon, What: "phase", To: string(holdfast.PhasePending)})
	}
	return records, history
}

// TestCreateClusters: however many new clusters are stored together, it is one transaction;
// and each is on record as if it had been stored alone.
func TestCreateClusters(t *testing.T) {
	t.Parallel()
	path := filepath.Join(memory.Dir(t), "holdfast.db")
	store, ctx := openAt(t, datastore.Options{Path: path}), t.Context()
	records, history := newClusters(50)
	before := commitsIn(t, path)
	created := must[[]holdfast.ClusterRecord](t)(store.CreateClusters(ctx, records, history...))
	if got := commitsIn(t, path) - before; got != 1 {
		t.Errorf("50 clusters are stored in %d transactions", got)
	}
	alone := openAt(t, datastore.Options{Path: filepath.Join(memory.Dir(t), "alone.db")})
	for i, rec := range records {
		want := must[holdfast.ClusterRecord](t)(alone.SaveCluster(ctx, rec, history[i]))
		for what, got := range map[string]holdfast.ClusterRecord{
			"returned": created[i], "stored": must[holdfast.ClusterRecord](t)(store.Cluster(ctx, rec.Name)),
		} {
			if diff := cmp.Diff(want, got, digests); diff != "" {
				t.Errorf("%s of %s (-alone +together):\n%s", what, rec.Name, diff)
			}
		}
		if got := must[[]holdfast.Transition](t)(store.Transitions(ctx, rec.Name, 0)); !cmp.Equal(got, history[i:i+1]) {
			t.Errorf("the history of %s is %v", rec.Name, got)
		}
	}
	for what, filter := range map[string]holdfast.ClusterFilter{
		"label": {Labels: map[string]string{"tier": "c07"}}, "dependents": {DependsOn: "c00"}, "project": {Project: "shop"},
	} {
		got, want := must[[]string](t)(store.ClusterNames(ctx, filter)), must[[]string](t)(alone.ClusterNames(ctx, filter))
		if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
			t.Errorf("found by %s (-alone +together):\n%s", what, diff)
		}
	}
}

// TestCreateClustersThatThereAre: a record that somebody else has stored meanwhile stays as
// it is, and keeps none of the others from being stored.
func TestCreateClustersThatThereAre(t *testing.T) {
	t.Parallel()
	store, ctx := openSQLite(t), t.Context()
	theirs := must[holdfast.ClusterRecord](t)(store.SaveCluster(ctx, holdfast.ClusterRecord{Name: "c01", Owner: "other", UpdatedAt: noon}))
	records, history := newClusters(3)
	created := must[[]holdfast.ClusterRecord](t)(store.CreateClusters(ctx, records, history...))
	if len(created) != 2 || created[0].Name != "c00" || created[1].Name != "c02" {
		t.Errorf("created are %+v", created)
	}
	if diff := cmp.Diff(theirs, must[holdfast.ClusterRecord](t)(store.Cluster(ctx, "c01")), digests); diff != "" {
		t.Errorf("the record that there was (-want +got):\n%s", diff)
	}
	for name, want := range map[string]int{"c00": 1, "c01": 0, "c02": 1} {
		if got := must[[]holdfast.Transition](t)(store.Transitions(ctx, name, 0)); len(got) != want {
			t.Errorf("the history of %s is %v", name, got)
		}
	}
	if again := must[[]holdfast.ClusterRecord](t)(store.CreateClusters(ctx, records, history...)); len(again) != 0 {
		t.Errorf("created again are %+v", again)
	}

	more := []holdfast.ClusterRecord{{Name: "new", Owner: "infra"}, created[0]}
	if _, err := store.CreateClusters(ctx, more); err == nil {
		t.Error("a record that was read is created")
	}
	if names := must[[]string](t)(store.ClusterNames(ctx, holdfast.ClusterFilter{})); len(names) != 3 {
		t.Errorf("on record are %q", names)
	}
}
