package reconciler_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// The examples and tests of a template look like clusters, and are not: not at
// the first look, not with a push, and not with a template that comes later.
func TestExamplesOfATemplateAreNotClusters(t *testing.T) {
	t.Parallel()
	files := twoClusters()
	files["blue/template.yaml"] = webTemplate("one")["templates/web/template.yaml"]
	files["blue/examples/basic.yaml"] = document("basic")
	everywhere := func(o *reconciler.Options) { o.Sources.Repositories[0].Clusters = []string{"**/*.yaml"} }
	f := newFleet(t, files, everywhere)
	f.adopt()
	f.repo.Commit(master, "another", map[string]string{"blue/tests/more.yaml": document("more"), "green/examples/x.yaml": document("x"), "infra/x/main.tf": module("one")})
	f.look()
	for _, name := range []string{"basic", "more"} {
		if _, err := f.store.Cluster(t.Context(), name); err == nil {
			t.Errorf("%s is a cluster", name)
		}
	}
	f.executeAll(good)
	f.expectRuns("x", "plan planned")

	// What was a cluster does not go by becoming an example: nobody has removed it.
	f.repo.Commit(master, "a template", map[string]string{"green/template.yaml": files["blue/template.yaml"]})
	f.look()
	if rec := f.cluster("x"); rec.Desired.Removed || !strings.Contains(rec.Desired.Missing, "still there") {
		t.Errorf("removed %t, missing %q", rec.Desired.Removed, rec.Desired.Missing)
	}
	f.repo.Commit(master, "no template", map[string]string{"green/template.yaml": gitserver.Delete})
	f.look()
	if rec := f.cluster("x"); rec.Desired.Missing != "" {
		t.Errorf("it is there again, and missing: %q", rec.Desired.Missing)
	}
}
