package e2e_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// chain are three clusters that stand on one another, and one beside the last
// that stands on the first alone. Each keeps a file with its generation.
func (w *world) chain(generation string, code ...string) files {
	w.t.Helper()
	return join(
		keeps("network", "a="+generation), w.fileModule("network", ""),
		keeps("cluster", "a="+generation, "dependsOn: [network]"), w.fileModule("cluster", strings.Join(code, "\n")),
		keeps("app", "a="+generation, "dependsOn: [cluster]"), w.fileModule("app", ""),
		keeps("sibling", "a="+generation, "dependsOn: [network]"), w.fileModule("sibling", ""),
	)
}

// order are the calls of the engine that have changed something, by cluster.
func (w *world) order() []string {
	w.t.Helper()
	var names []string
	for _, call := range w.engineCalls() {
		if command, name, _ := strings.Cut(call, " "); command == "apply" {
			names = append(names, name)
		}
	}
	return names
}

// before fails the test unless the engine has changed each cluster after the one
// before it.
func before(t *testing.T, order []string, chain ...string) {
	t.Helper()
	for i := range chain[1:] {
		first, second := slices.Index(order, chain[i]), slices.Index(order, chain[i+1])
		if first < 0 || second < first {
			t.Errorf("the order was %q, want %q before %q", order, chain[i], chain[i+1])
		}
	}
}

// What stands on something else is applied after it, and destroyed before it.
func TestClustersFollowTheirOrder(t *testing.T) {
	t.Parallel()
	w := newFleet(t, nil)
	w.start()
	fleet := w.fleet()
	pr := fleet.open(join(w.chain("one"), w.keeper("alone", "a=one")))
	pr.untilPlanned("5 clusters: 5 to create")
	pr.untilComment("provisional: planned before `network` is applied", "provisional: planned before `cluster` is applied")

	w.hold("apply", "network")
	pr.merge()
	w.untilHeld("apply", "network")
	w.untilWaiting("cluster", "DependencyPending")
	w.do("describe cluster cluster", "DependencyPending", "network is ")
	w.until("who stands alone continues", func() (bool, string) {
		rec := w.record("alone")
		return rec.Phase == holdfast.PhaseActive, string(rec.Phase)
	})
	if got := w.order(); slices.Contains(got, "cluster") || slices.Contains(got, "sibling") || slices.Contains(got, "app") {
		t.Errorf("the engine has applied %q", got)
	}
	w.release("apply", "network")
	pr.untilApplied("applied 5 clusters: 5 created")
	before(t, w.order(), "network", "cluster", "app")
	before(t, w.order(), "network", "sibling")
	w.do("describe cluster cluster", "  ┌─ network  Active\n  cluster\n  └─ app  Active")
	w.do("describe cluster network", "  network\n  ├─ cluster  Active\n  │  └─ app  Active\n  └─ sibling  Active")

	// All of it goes. So many at once wait for a person, who is asked once, and then
	// for one another.
	applied := len(w.order())
	last := fleet.open(gone("network", "cluster", "app", "sibling"))
	last.untilPlanned("4 to be destroyed")
	last.merge()
	w.untilWaiting("app", "MassDeletion")
	w.untilWaiting("network", "HasDependents")
	last.untilComment("**MassDeletion**", "waiting for these to be destroyed first: cluster, sibling")
	last.say(dev, "/holdfast apply")
	last.untilApplied("4 destroyed")
	before(t, w.order()[applied:], "app", "cluster", "network")
	before(t, w.order()[applied:], "sibling", "network")
	for _, name := range []string{"network", "cluster", "app", "sibling"} {
		if got := w.things(name); got != "" {
			t.Errorf("%s has left %q", name, got)
		}
	}
}

// When one fails in the middle of a chain, what stands on it waits and what does
// not continues. When it is mended the rest follows.
func TestFailureStopsDependents(t *testing.T) {
	t.Parallel()
	w := newFleet(t, nil)
	w.start()
	fleet := w.fleet()
	fragile := `
resource "terraform_data" "fragile" {
  depends_on = [local_file.node]

  provisioner "local-exec" {
    command = "test -e ` + w.path("mended") + ` || { echo it broke in the middle >&2; exit 7; }"
  }
}
`
	pr := fleet.open(w.chain("one", fragile))
	pr.untilPlanned("4 clusters: 5 to create")
	pr.merge()
	w.untilWaiting("cluster", "ApplyFailed")
	w.untilWaiting("app", "DependencyFailed")
	w.untilPhase("sibling", holdfast.PhaseActive)
	fleet.untilStatus(pr.merged, holdfast.ContextApply, holdfast.StatusFailure)
	pr.untilComment("**DependencyFailed** `app`", "it broke in the middle", "terraform_data.fragile")
	w.do("describe cluster app", "  ┌─ network  Active", "cluster  Failed", "DependencyFailed")
	w.untilIdle()
	if got := w.things("app"); got != "" {
		t.Errorf("app keeps %q", got)
	}

	w.write("mended", "", 0o644)
	w.untilShown("cluster")
	pr.say(dev, "/holdfast apply -c cluster")
	w.untilPhase("cluster", holdfast.PhaseActive)
	pr.untilApplied()
	w.untilWaiting("app", "")
	w.untilPhase("app", holdfast.PhaseActive)
	if got := w.things("app"); got != "a=one" {
		t.Errorf("app keeps %q", got)
	}
	before(t, w.order(), "network", "cluster", "app")
}

// A circle is a fault, where it was made.
func TestCircleIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	fleet := w.fleet()
	pr := fleet.open(join(
		cluster("alpha", "nodes: 1", "dependsOn: [beta]"), cluster("beta", "nodes: 1", "dependsOn: [alpha]"),
	))
	fleet.untilStatus(pr.head, holdfast.ContextPlan, holdfast.StatusFailure, "depends on itself")
	pr.untilComment("alpha → beta → alpha")
	pr.push(cluster("beta", "nodes: 1"))
	pr.untilPlanned("2 clusters: 2 to create")
}
