//go:build !race

package runner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// cloudRoot has a network, a cluster in it, and a node pool in that.
const cloudRoot = `
terraform {
  required_providers {
    cloud = { source = "holdfast-dev/cloud" }
  }
}
provider "cloud" { folder = "WORLD" }
resource "cloud_network" "net" { name = "net" }
resource "cloud_cluster" "main" {
  name   = "main"
  region = cloud_network.net.id
}
resource "cloud_node_pool" "pool" {
  name   = "pool"
  region = cloud_cluster.main.id
}
output "status" { value = cloud_cluster.main.status }
`

func destroyPlan(a *protocol.Assignment) { a.Destroy = true }

// TestDestroy: the plan of a destruction that a pull request shows is what the
// destruction compares itself with, and no other plan is.
func TestDestroy(t *testing.T) {
	t.Parallel()
	l := newLab(t, "cloud")
	files := map[string]string{"main.tf": cloudRoot}
	l.apply("run-1", files)

	ordinary, _ := l.run("ordinary", holdfast.RunPlan, files, nil)
	l.want(ordinary, "ordinary", holdfast.RunNoChanges, "")
	shown, starts := l.run("shown", holdfast.RunPlan, files, destroyPlan)
	l.want(shown, "shown", holdfast.RunPlanned, "")
	if want := (holdfast.Counts{Delete: 3, Outputs: 1}); l.plan("shown").Counts != want {
		t.Errorf("counts %+v, want %+v", l.plan("shown").Counts, want)
	}
	if diff := cmp.Diff(map[string]int{"plan": 1, "show": 1}, starts); diff != "" {
		t.Errorf("starts of the engine (-want +got):\n%s", diff)
	}
	if shown.InputDigest == ordinary.InputDigest {
		t.Error("an ordinary plan has the input of a destruction")
	}

	unseen, _ := l.run("unseen", holdfast.RunDestroy, files, func(a *protocol.Assignment) { a.Reviews = review("ordinary", ordinary) })
	l.want(unseen, "unseen", holdfast.RunPlanned, holdfast.ReasonPlanChanged)
	if unseen.InputDigest != shown.InputDigest || unseen.PlanDigest != shown.PlanDigest || !strings.Contains(unseen.Detail, "no destroy plan was reviewed") {
		t.Errorf("detail %q; input %s, want %s", unseen.Detail, unseen.InputDigest, shown.InputDigest)
	}
	// An apply never destroys, whatever plan it is given.
	other, _ := l.run("other", holdfast.RunApply, files, func(a *protocol.Assignment) { a.Reviews, a.Destroy = review("shown", shown), true })
	l.want(other, "other", holdfast.RunNoChanges, "")
	gone, starts := l.run("gone", holdfast.RunDestroy, files, func(a *protocol.Assignment) { a.Reviews = review("shown", shown) })
	l.want(gone, "gone", holdfast.RunApplied, "")
	if left, _ := filepath.Glob(filepath.Join(l.world, "*")); gone.Matched != "shown" || len(left) > 0 {
		t.Errorf("matched %q, left %v", gone.Matched, left)
	}
	if diff := cmp.Diff(map[string]int{"plan": 1, "show": 1, "apply": 1}, starts); diff != "" {
		t.Errorf("starts of the engine (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{}, l.resources("gone")); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}

	nothing, _ := l.run("again", holdfast.RunDestroy, files, nil)
	l.want(nothing, "again", holdfast.RunNoChanges, "")
	empty, _ := l.run("empty", holdfast.RunPlan, files, destroyPlan)
	l.want(empty, "empty", holdfast.RunNoChanges, "")
}

// TestDestroyNothing: of a cluster that never had a state there is nothing to
// destroy.
func TestDestroyNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	got, _ := l.run("run-1", holdfast.RunDestroy, map[string]string{"main.tf": `resource "terraform_data" "x" {}`}, nil)
	l.want(got, "run-1", holdfast.RunNoChanges, "")
	if diff := cmp.Diff([]string{}, l.resources("run-1")); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}

// TestDestroyFails: a destruction that fails says what went and what is left,
// and continues with what remains of what was reviewed.
func TestDestroyFails(t *testing.T) {
	t.Parallel()
	l := newLab(t, "cloud")
	files := map[string]string{"main.tf": cloudRoot}
	l.apply("run-1", files)
	shown, _ := l.run("shown", holdfast.RunPlan, files, destroyPlan)
	l.want(shown, "shown", holdfast.RunPlanned, "")
	reviewed := review("shown", shown)

	l.put("fail.delete.main", "deleting the cluster: DependencyViolation\nIt has load balancers that are still in use.\n")
	failed, starts := l.run("failed", holdfast.RunDestroy, files, func(a *protocol.Assignment) { a.Reviews = reviewed })
	l.want(failed, "failed", holdfast.RunErrored, "Conflict")
	f := failed.Failure
	if diff := cmp.Diff([]string{"cloud_node_pool.pool: destroyed"}, f.Completed); diff != "" {
		t.Errorf("completed (-want +got):\n%s", diff)
	}
	left := []string{"cloud_cluster.main", "cloud_network.net"}
	if diff := cmp.Diff(left, f.Remaining); diff != "" || !failed.Applying || f.Step != "apply" || f.Address != left[0] {
		t.Errorf("step %q, at %q, remaining (-want +got):\n%s", f.Step, f.Address, diff)
	}
	if diff := cmp.Diff(map[string]int{"plan": 1, "show": 1, "apply": 1}, starts); diff != "" {
		t.Errorf("starts of the engine (-want +got):\n%s", diff)
	}
	if got := l.resources("failed"); len(got) != 2 || !strings.HasPrefix(got[0], left[0]+" ") {
		t.Errorf("resources: %v", got)
	}

	l.remove("fail.delete.main")
	resumed, _ := l.run("resumed", holdfast.RunDestroy, files, func(a *protocol.Assignment) { a.Reviews, a.Resume = reviewed, true })
	l.want(resumed, "resumed", holdfast.RunApplied, "")
	if entries, _ := os.ReadDir(l.world); len(entries) > 0 || resumed.Matched != "shown" {
		t.Errorf("matched %q, left %v", resumed.Matched, entries)
	}
}

// TestDestroyIsWhatWasShown: an approved plan of a destruction is carried out if it
// is still what the destruction comes to, and shown again if it is not.
func TestDestroyIsWhatWasShown(t *testing.T) {
	t.Parallel()
	l := newLab(t, "cloud")
	files := map[string]string{"main.tf": cloudRoot}
	l.apply("run-1", files)
	held, _ := l.run("held", holdfast.RunDestroy, files, nil)
	l.want(held, "held", holdfast.RunPlanned, holdfast.ReasonPlanChanged)
	l.apply("run-2", map[string]string{"main.tf": cloudRoot + "resource \"cloud_network\" \"more\" { name = \"more\" }\n"})

	stale, _ := l.run("stale", holdfast.RunDestroy, files, func(a *protocol.Assignment) { a.Reviews = review("held", held) })
	l.want(stale, "stale", holdfast.RunPlanned, holdfast.ReasonPlanChanged)
	if stale.Applying || l.plan("stale").Counts.Delete != 4 || !strings.Contains(stale.Detail, "cloud_network.more: to be destroyed, which was not reviewed") {
		t.Errorf("applying %v, %q, counts %+v", stale.Applying, stale.Detail, l.plan("stale").Counts)
	}
	gone, _ := l.run("gone", holdfast.RunDestroy, files, func(a *protocol.Assignment) { a.Reviews = review("stale", stale) })
	l.want(gone, "gone", holdfast.RunApplied, "")
	if entries, _ := os.ReadDir(l.world); len(entries) > 0 || gone.Matched != "stale" {
		t.Errorf("matched %q, left %v", gone.Matched, entries)
	}
}
