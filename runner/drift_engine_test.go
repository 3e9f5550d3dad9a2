//go:build !race

package runner_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// driftRoot has a file and some objects of a cloud.
const driftRoot = `
terraform {
  backend "http" {}
  required_providers {
    local = { source = "hashicorp/local" }
    cloud = { source = "holdfast-dev/cloud" }
  }
}
provider "cloud" { folder = "WORLD" }
resource "local_file" "conf" {
  content  = "as it was applied"
  filename = "WORLD/conf"
}
resource "cloud_cluster" "main" {
  name     = "main"
  size     = 3
  password = "correct-horse-battery"
  tags     = { team = "payments", stage = "prod" }
  scaling {
    min = 1
    max = 5
  }
}
resource "cloud_node_pool" "pool" {
  for_each = toset(["blue", "green"])
  name     = each.key
}
resource "terraform_data" "reader" { input = cloud_cluster.main.status }
`

// TestDriftOfARealEngine: what changed outside, and what is gone, is told apart,
// with what it was and what it is.
func TestDriftOfARealEngine(t *testing.T) {
	t.Parallel()
	l := newLab(t, "local", "cloud")
	files := map[string]string{"main.tf": driftRoot}
	l.apply("run-1", files)

	clean, starts := l.run("drift-clean", holdfast.RunDrift, files, nil)
	l.want(clean, "drift-clean", holdfast.RunNoChanges, "")
	if plan := l.plan("drift-clean"); len(plan.Drift) > 0 {
		t.Errorf("drift where nothing changed: %+v", plan.Drift)
	}
	if diff := cmp.Diff(map[string]int{"plan": 1, "show": 1}, starts); diff != "" {
		t.Errorf("starts of the engine in a check (-want +got):\n%s", diff)
	}

	l.edit("cloud_cluster.main", func(object map[string]any) {
		object["size"], object["status"], object["password"] = 7, "upgrading", "battery-horse-correct"
		object["tags"] = map[string]string{"team": "payments", "owner": "eve"}
		object["scaling"] = []map[string]int{{"min": 1, "max": 9}}
	})
	l.remove("cloud_node_pool.green.json")
	l.put("conf", "edited by hand")

	found, _ := l.run("drift-found", holdfast.RunDrift, files, nil)
	l.want(found, "drift-found", holdfast.RunPlanned, "")
	plan := l.plan("drift-found")
	if diff := cmp.Diff([]string{
		"delete cloud_node_pool.pool[\"green\"]",
		"delete local_file.conf",
		"update cloud_cluster.main",
	}, actions(plan.Drift)); diff != "" {
		t.Errorf("drift (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		`password: "(sensitive value)" → "(sensitive value)"`,
		`scaling[0].max: 5 → 9`,
		`size: 3 → 7`,
		`status: "ready" → "upgrading"`,
		`tags.owner:  → "eve"`,
		`tags.stage: "prod" → `,
	}, driftOf(plan, "cloud_cluster.main")); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"create cloud_node_pool.pool[\"green\"]", "create local_file.conf",
		"update cloud_cluster.main", "update terraform_data.reader",
	}, sorted(actions(plan.Changes))); diff != "" {
		t.Errorf("what an apply would do (-want +got):\n%s", diff)
	}
	for _, part := range []string{
		"Objects have changed outside of", "will perform the following actions", "Plan: 2 to add, 2 to change, 0 to destroy.",
	} {
		if !strings.Contains(plan.Text, part) {
			t.Errorf("the text lacks %q:\n%s", part, plan.Text)
		}
	}
	for name, sink := range l.server.sinks(t, "drift-found") {
		if strings.Contains(sink, "correct-horse") || strings.Contains(sink, "horse-correct") {
			t.Errorf("%s holds the password", name)
		}
	}
	want := []string{
		"cloud_cluster.main cloud_cluster registry.terraform.io/holdfast-dev/cloud cloud_cluster-main",
		`cloud_node_pool.pool["blue"] cloud_node_pool registry.terraform.io/holdfast-dev/cloud cloud_node_pool-blue`,
		`cloud_node_pool.pool["green"] cloud_node_pool registry.terraform.io/holdfast-dev/cloud cloud_node_pool-green`,
		"local_file.conf local_file registry.terraform.io/hashicorp/local dae6ac0dbb2f2a31ff5cf2bc18fe8e1b9a2ecd4b",
		"terraform_data.reader terraform_data terraform.io/builtin/terraform UUID",
	}
	got := l.resources("drift-found")
	if len(got) != len(want) {
		t.Fatalf("resources: %v", got)
	}
	want[3], got[3] = "", strings.TrimPrefix(got[3], got[3][:len(got[3])]) // the id is a hash of the content
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}

	// The same drift is the same; more of it has others.
	again, _ := l.run("drift-again", holdfast.RunDrift, files, nil)
	l.want(again, "drift-again", holdfast.RunPlanned, "")
	if now := l.plan("drift-again").Drift; !reflect.DeepEqual(plan.Drift, now) || again.PlanDigest != found.PlanDigest {
		t.Errorf("the same drift is another one: %+v, was %+v", now, plan.Drift)
	}
	l.edit("cloud_cluster.main", func(object map[string]any) { object["size"] = 8 })
	more, _ := l.run("drift-more", holdfast.RunDrift, files, nil)
	l.want(more, "drift-more", holdfast.RunPlanned, "")
	if reflect.DeepEqual(plan.Drift, l.plan("drift-more").Drift) {
		t.Error("another drift is the same")
	}

	// It is reverted by an apply of exactly what the check has found.
	reverted, _ := l.run("revert", holdfast.RunApply, files, func(a *protocol.Assignment) { a.Reviews = review("drift-more", more) })
	l.want(reverted, "revert", holdfast.RunApplied, "")
	gone, _ := l.run("drift-gone", holdfast.RunDrift, files, nil)
	l.want(gone, "drift-gone", holdfast.RunNoChanges, "")
	if plan := l.plan("drift-gone"); len(plan.Drift) > 0 {
		t.Errorf("drift after it was reverted: %+v", plan.Drift)
	}
}

// driftOf returns a line for each attribute of a resource that has drifted.
func driftOf(plan holdfast.Plan, address string) []string {
	var lines []string
	for _, change := range plan.Drift {
		if change.Address == address {
			for _, a := range change.Attributes {
				lines = append(lines, fmt.Sprintf("%s: %s → %s", a.Path, a.Before, a.After))
			}
		}
	}
	return lines
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

// TestDriftWithoutChanges: what has drifted without an apply reverting it is told,
// though the plan has nothing to do; what only moves has not drifted.
func TestDriftWithoutChanges(t *testing.T) {
	t.Parallel()
	l := newLab(t, "cloud")
	root := "terraform {\n  required_providers {\n    cloud = { source = \"holdfast-dev/cloud\" }\n  }\n}\nprovider \"cloud\" { folder = \"WORLD\" }\n"
	l.apply("run-1", map[string]string{"main.tf": root + "resource \"cloud_network\" \"old\" { name = \"net\" }\n"})
	l.edit("cloud_network.net", func(object map[string]any) { object["status"] = "degraded" })
	files := map[string]string{"main.tf": root + "resource \"cloud_network\" \"old\" { name = \"net\" }\n"}
	harmless, _ := l.run("drift-1", holdfast.RunDrift, files, nil)
	l.want(harmless, "drift-1", holdfast.RunNoChanges, "")
	if diff := cmp.Diff([]string{`status: "ready" → "degraded"`}, driftOf(l.plan("drift-1"), "cloud_network.old")); diff != "" {
		t.Errorf("drift (-want +got):\n%s", diff)
	}

	l.edit("cloud_network.net", func(object map[string]any) { object["status"] = "ready" })
	moved := map[string]string{"main.tf": root + "resource \"cloud_network\" \"new\" { name = \"net\" }\nmoved {\n  from = cloud_network.old\n  to = cloud_network.new\n}\n"}
	planned, _ := l.run("drift-2", holdfast.RunDrift, moved, nil)
	l.want(planned, "drift-2", holdfast.RunPlanned, "")
	if plan := l.plan("drift-2"); len(plan.Drift) > 0 || plan.Counts != (holdfast.Counts{Move: 1}) {
		t.Errorf("counts %+v, drift %+v", plan.Counts, plan.Drift)
	}
}

func actions(changes []holdfast.ResourceChange) []string {
	var out []string
	for _, c := range changes {
		out = append(out, fmt.Sprintf("%s %s", c.Action, c.Address))
	}
	return out
}
