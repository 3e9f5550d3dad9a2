package lineage

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
)

// onRecord are the clusters of a repository whose tree has none of them.
type onRecord struct {
	Store
	records []holdfast.ClusterRecord
}

func (r onRecord) ClusterNames(context.Context, holdfast.ClusterFilter) ([]string, error) {
	var names []string
	for _, rec := range r.records {
		names = append(names, rec.Name)
	}
	return names, nil
}

func (r onRecord) Clusters(_ context.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterRecord, error) {
	return slices.DeleteFunc(slices.Clone(r.records), func(rec holdfast.ClusterRecord) bool {
		return !slices.Contains(filter.Names, rec.Name)
	}), nil
}

// TestNearName: the hint to a former name that nobody knows is the nearest of the clusters
// that are still there: nothing continues one that was destroyed or has another name.
func TestNearName(t *testing.T) {
	t.Parallel()
	there := func(name string) holdfast.ClusterRecord { return holdfast.ClusterRecord{Name: name} }
	gone := func(name string, reason holdfast.Reason) holdfast.ClusterRecord {
		return holdfast.ClusterRecord{Name: name, Deletion: &holdfast.Deletion{Reason: reason}}
	}
	for name, c := range map[string]struct {
		records []holdfast.ClusterRecord
		want    string // the name of the hint; empty: it has none
	}{
		"nobody":                            {nil, ""},
		"one that is near":                  {[]holdfast.ClusterRecord{there("production1")}, "production1"},
		"one that is far":                   {[]holdfast.ClusterRecord{there("staging")}, ""},
		"one that was destroyed":            {[]holdfast.ClusterRecord{gone("production1", holdfast.ReasonDestroyed)}, ""},
		"one that has another name":         {[]holdfast.ClusterRecord{gone("production1", holdfast.ReasonRenamed)}, ""},
		"the nearest one was destroyed":     {[]holdfast.ClusterRecord{gone("production1", holdfast.ReasonDestroyed), there("production22")}, "production22"},
		"all that are near were destroyed":  {[]holdfast.ClusterRecord{gone("production1", holdfast.ReasonDestroyed), gone("production22", holdfast.ReasonDestroyed), there("staging")}, ""},
		"the nearest one of those is there": {[]holdfast.ClusterRecord{there("production1"), gone("production22", holdfast.ReasonDestroyed)}, "production1"},
	} {
		reader := &Reader{store: onRecord{records: c.records}}
		hint, err := reader.nearName(t.Context(), &catalog.Catalog{Repo: "acme/fleet"}, holdfast.Cluster{RenamedFrom: "production", Path: "clusters/a.yaml"})
		want := "set renamedFrom: " + c.want + " if that is the cluster which continues"
		if c.want == "" {
			want = "use its recorded name"
		}
		if err != nil || !strings.HasPrefix(hint, want) {
			t.Errorf("%s: the hint is %q, %v, want %q", name, hint, err, want)
		}
	}
}
