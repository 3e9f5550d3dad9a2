package reconciler_test

import (
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// A template's pull request is not green while a repository has never been read, or
// cannot be: all clusters of the template may be there.
func TestATemplateIsNotGreenWhileClustersAreUnread(t *testing.T) {
	t.Parallel()
	f := newFleet(t, webTemplate("one"))
	second, lookAtOther := withOther(t, f)
	second.Commit(master, "a cluster", map[string]string{"clusters/far.yaml": document("far"), "infra/far/main.tf": module("one")})
	f.open(1, webTemplate("two"))
	f.post()
	head := f.pullRequest(1).Head
	want := "error repository other could not be read: its clusters are not counted"
	if told := f.forge.told(head, holdfast.ContextPlan); len(told) == 0 || told[len(told)-1] != want {
		t.Errorf("statuses are %q, want %q", told, want)
	}
	lookAtOther()
	f.lookAt(1)
	f.post()
	if told := f.forge.told(head, holdfast.ContextPlan); !slices.Contains(told, "success template web: no cluster uses it") {
		t.Errorf("after it was read, statuses are %q", told)
	}
}

// One that was read and has no commit yet has no clusters.
func TestATemplateDoesNotWaitForAnEmptyRepository(t *testing.T) {
	t.Parallel()
	f := newFleet(t, webTemplate("one"))
	_, lookAtOther := withOther(t, f)
	lookAtOther()
	f.look()
	f.open(1, webTemplate("two"))
	f.post()
	if state := f.forge.status(f.pullRequest(1).Head, holdfast.ContextPlan); state != holdfast.StatusSuccess {
		t.Errorf("status is %q: %q", state, f.forge.told(f.pullRequest(1).Head, holdfast.ContextPlan))
	}
}

// A repository that may not define clusters has none that are not counted.
func TestATemplateDoesNotWaitForRepositoriesWithoutClusters(t *testing.T) {
	t.Parallel()
	f := newFleet(t, webTemplate("one"))
	withOther(t, f)
	f.restart(func(o *reconciler.Options) { o.Sources.Repositories[1].Clusters = nil })
	f.look()
	f.open(1, webTemplate("two"))
	f.post()
	if state := f.forge.status(f.pullRequest(1).Head, holdfast.ContextPlan); state != holdfast.StatusSuccess {
		t.Errorf("status is %q", state)
	}
}
