package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// live is the document and the module of a cluster below live/, not clusters/.
func live(name, variables string) files {
	f := cluster(name, variables)
	f["live/"+name+".yaml"] = f["clusters/"+name+".yaml"]
	delete(f, "clusters/"+name+".yaml")
	return f
}

// Two entries are one repository on GitHub, and a branch of it each: with one webhook,
// one sequence of numbers, and commits that both branches have.
func TestTwoBranchesOnGitHub(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	fleet := w.fleet()
	fleet.commit(join(cluster("alpha", "nodes: 1"), live("beta", "nodes: 1")))
	release := fleet.alsoTrack("release", "fleet-release", settings{"clusters": []string{"live/*.yaml"}})
	w.start()

	one := fleet.open(cluster("alpha", "nodes: 2"))
	two := release.open(live("beta", "nodes: 3"))
	one.untilPlanned("1 cluster", "2 to create")
	two.untilPlanned("1 cluster", "3 to create")
	if _, other := fleet.hub.LatestStatus(two.head, holdfast.ContextPlan); other {
		t.Error("the head of a pull request into release has the status of main")
	}

	// A comment does not say which branch it is about, and polling finds it in both.
	replan := func() {
		t.Helper()
		before := len(w.runs("beta"))
		two.untilReacted(two.say(dev, "/holdfast plan"), holdfast.ReactionDone)
		w.until("beta is planned once more", func() (bool, string) { return len(w.runs("beta")) == before+1, "" })
	}
	replan()
	fleet.hub.Drop(1) // its delivery
	asked := two.say(dev, "/holdfast plan")
	w.stop()
	w.start()
	two.untilReacted(asked, holdfast.ReactionDone)
	two.untilPlanned("3 to create")
	if replies := two.replies(); len(replies) > 0 {
		t.Errorf("a command that was obeyed has the answers %q", replies)
	}

	one.merge()
	one.untilApplied("2 created")
	two.merge()
	two.untilApplied("3 created")
	if w.record("alpha").Owner != fleet.name || w.record("beta").Owner != release.name {
		t.Errorf("alpha belongs to %q, beta to %q", w.record("alpha").Owner, w.record("beta").Owner)
	}

	// One commit is the head of two pull requests, and then of both branches.
	next := fleet.open(cluster("alpha", "nodes: 4"))
	next.untilPlanned("1 cluster", "2 to create")
	back := release.reuse(next)
	release.untilStatus(back.head, holdfast.ContextPlan+"/release", holdfast.StatusSuccess, "no cluster affected")
	fleet.untilStatus(next.head, holdfast.ContextPlan, holdfast.StatusSuccess, "2 to create")
	said, errs, code := w.cli("describe", "pullrequest", fmt.Sprintf("%s#%d", release.name, back.number))
	if code != 0 || !strings.Contains(said, holdfast.ContextPlan+"/release") {
		t.Errorf("described as (%d):\n%s%s", code, said, errs)
	}
	back.merge()
	release.untilStatus(back.merged, holdfast.ContextApply+"/release", holdfast.StatusSuccess, "no cluster affected")
	next.merge()
	next.untilApplied("2 created")

	// A pull request moves to the other branch.
	moved := fleet.open(join(cluster("alpha", "nodes: 5"), live("gamma", "nodes: 2")))
	moved.untilPlanned("1 cluster", "1 to create")
	alphas := len(w.runs("alpha"))
	moved.retarget(release)
	fleet.untilStatus(moved.head, holdfast.ContextPlan, holdfast.StatusSuccess, "nothing to plan: its base is not the tracked branch")
	release.untilStatus(moved.head, holdfast.ContextPlan+"/release", holdfast.StatusSuccess, "1 cluster", "2 to create")
	w.until("both comments tell of it", func() (bool, string) {
		text := fmt.Sprint(fleet.hub.Comments(moved.number))
		return strings.Contains(text, "its base is now `release`") && strings.Contains(text, "Plan for"), text
	})
	before := len(w.runs("gamma"))
	moved.untilReacted(moved.say(dev, "/holdfast plan"), holdfast.ReactionDone)
	w.until("gamma is planned once more", func() (bool, string) { return len(w.runs("gamma")) == before+1, "" })
	if planned := len(w.runs("alpha")); planned != alphas {
		t.Errorf("alpha was planned or applied %d times more, for a branch that is not its own", planned-alphas)
	}
	moved.merge()
	release.untilStatus(moved.merged, holdfast.ContextApply+"/release", holdfast.StatusSuccess, "2 created")
}
