package e2e_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// A pull request that changes a template says what that would do to every cluster
// that is made from it, wherever its document is; its merge applies only what is
// made from the very folder.
func TestTemplatePullRequestSaysItsBlastRadius(t *testing.T) {
	t.Parallel()
	w, infra, blueprints := newBlueprints(t, nil)
	blueprints.commit(document("lab", "template: {path: ../kubernetes}", "provider: demo", "region: eu-1", "variables: {node_count: 1}"))
	w.start()
	w.untilWaiting("lab", "Unreviewed")
	pr := infra.open(join(
		on("dev-a", "1.4.2", "node_count: 1"),
		on("dev-m", "1.4.2", "node_count: 1, enable_monitoring: true"),
		on("prod-ha", "1.4.2", "node_count: 3, high_availability: true"),
		upgrading("up-a", "1.4.2", "~> 1.4", "node_count: 1"),
		upgrading("up-ha", "1.4.2", "~> 1.4", "node_count: 3, high_availability: true"),
		upgrading("old", "1.4.2", "~> 1.4.0", "node_count: 1"),
	))
	pr.untilPlanned("6 clusters")
	pr.untilComment("kubernetes 1.4.2")
	pr.merge()
	w.do("apply lab")
	pr.untilApplied("applied 6 clusters")
	w.untilPhase("lab", holdfast.PhaseActive)

	// The nodes' module is another file for all, and a new control plane for some.
	next := blueprint{version: "1.5.0", nodes: "second", replaces: "v2", watch: "graphs"}
	change := blueprints.open(next.files())
	change.untilPlanned("kubernetes")
	change.untilComment(
		"1.4.2 → 1.5.0 (being prepared)", "used by 7 clusters", "**Applied by this merge**", "`lab`",
		"**By upgrade pull requests**, in acme/infra", "`up-a`", "**Only by hand**", "`old`", "`dev-a`",
		"`dev-m`", "/holdfast plan --all",
		// A sample of those that are highly available is planned, and tells it of both.
		"**1: control plane replaced**", "❔ <b>1</b> not planned", "4 of the 7 clusters whose root module changes",
	)
	for name, want := range map[string]int{"up-ha": 2, "prod-ha": 1, "old": 1, "dev-a": 1} {
		if n := w.kinds(name)[holdfast.RunPlan]; n != want {
			t.Errorf("%s was planned %d times, want %d: one of each group is a sample", name, n, want)
		}
	}

	ask := change.say(dev, "/holdfast plan --all")
	change.untilReacted(ask, holdfast.ReactionDone)
	blueprints.untilStatus(change.head, holdfast.ContextPlan, holdfast.StatusSuccess, "2 control planes replaced")
	change.untilComment(
		"**2: control plane replaced**", "`module.nodes.terraform_data.control_plane`",
		"`prod-ha`", "`up-ha`", "All 7 clusters whose root module changes are planned.",
	)

	change.merge()
	blueprints.untilStatus(change.merged, holdfast.ContextApply, holdfast.StatusSuccess)
	w.untilIdle()
	for name, want := range map[string]int{"dev-a": 1, "dev-m": 1, "prod-ha": 1, "up-a": 1, "up-ha": 1, "old": 1} {
		if got := w.kinds(name)[holdfast.RunApply]; got != want {
			t.Errorf("%s was applied %d times, want %d", name, got, want)
		}
	}
	if digest := w.record("lab").Applied.SourceDigest; digest != w.record("lab").Desired.SourceDigest {
		t.Errorf("lab is not what the branch says")
	}
}

// What a template's change would do is known again when the clusters are others.
func TestBlastRadiusFollowsTheFleet(t *testing.T) {
	t.Parallel()
	w, infra, blueprints := newBlueprints(t, nil)
	blueprints.config["samples"] = 0
	infra.commit(on("dev-a", "1.4.2", "node_count: 1"))
	w.start()
	change := blueprints.open(blueprint{version: "1.5.0", nodes: "second", replaces: "v1", watch: "graphs"}.files())
	blueprints.untilStatus(change.head, holdfast.ContextPlan, holdfast.StatusSuccess)
	change.untilComment("used by 1 cluster", "`dev-a`")

	// One is already on the version that is being prepared: it waits for it.
	infra.push(join(on("dev-b", "1.4.2", "node_count: 1"), on("soon", "1.5.0", "node_count: 2")))
	w.untilWaiting("soon", "Invalid")
	change.push(files{"README.md": "Other words.\n"})
	blueprints.untilStatus(change.head, holdfast.ContextPlan, holdfast.StatusSuccess)
	change.untilComment("used by 3 clusters", "`dev-b`", "**When 1.5.0 is released**, in acme/infra: `soon`")

	change.merge()
	blueprints.untilStatus(change.merged, holdfast.ContextApply, holdfast.StatusSuccess)
	blueprints.releases("1.5.0")
	w.untilWaiting("soon", "Unreviewed")
}

// A minor version that refuses what was valid is an error, and says whom it would
// refuse; so is a template that cannot be read.
func TestTemplatePullRequestsThatBreak(t *testing.T) {
	t.Parallel()
	w, infra, blueprints := newBlueprints(t, nil)
	infra.commit(join(
		on("small", "1.4.2", "node_count: 2"), on("large", "1.4.2", "node_count: 8"),
		upgrading("larger", "1.4.2", "~> 1.4", "node_count: 9"),
	))
	blueprints.config["samples"] = 0
	w.start()
	for _, name := range []string{"small", "large", "larger"} {
		w.untilWaiting(name, "Unreviewed")
	}
	before := len(w.engineCalls())

	narrow := oneFourTwo
	narrow.version, narrow.maxNodes = "1.5.0", 5
	minor := blueprints.open(narrow.files())
	blueprints.untilStatus(minor.head, holdfast.ContextPlan, holdfast.StatusFailure, "kubernetes")
	minor.untilComment(
		"cannot be released as it is", "after 1.4.2 it must not break documents", "Set a new major version", "variable node",
		"`large` at `clusters/large.yaml:11:27` in acme/infra", "clusters/larger.yaml:11:", "at most 5",
	)
	if body := minor.comment(); strings.Contains(body, "clusters/small.yaml") {
		t.Errorf("a cluster is refused that is valid:\n%s", body)
	}

	narrow.version = "2.0.0"
	major := blueprints.open(narrow.files())
	blueprints.untilStatus(major.head, holdfast.ContextPlan, holdfast.StatusSuccess)
	major.untilComment("1.4.2 → 2.0.0 (being prepared)", "**2 refused**", "clusters/large.yaml:11:")

	wrong := strings.Replace(oneFourTwo.files()["kubernetes/template.yaml"], "        - name: nodes\n          source:", "        - name: nodes\n          sorce:", 1)
	broken := blueprints.open(files{"kubernetes/template.yaml": wrong})
	blueprints.untilStatus(broken.head, holdfast.ContextPlan, holdfast.StatusFailure, "kubernetes/template.yaml:15")
	broken.untilComment("kubernetes/template.yaml:15:11", "sorce", "source")
	if calls := w.engineCalls()[before:]; len(calls) > 0 {
		t.Errorf("the engine was started for what can be seen without it: %q", calls)
	}
}
