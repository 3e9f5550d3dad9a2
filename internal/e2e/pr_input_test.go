package e2e_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
)

// What is wrong in a pull request is said with its place; the other clusters are
// planned all the same.
func TestFaultsArePointedAt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.fleet().commit(cluster("taken", "nodes: 1"))
	other := w.addRepo("acme/other", nil)
	w.start()
	w.untilWaiting("taken", "Unreviewed")

	typo := strings.Replace(document("typo")["clusters/typo.yaml"], "  project:", "  projetc:", 1)
	pr := w.fleet().open(join(
		cluster("alpha", "nodes: 1"),
		files{
			"clusters/broken.yaml": "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: broken\n",
			"clusters/typo.yaml":   typo,
		},
		document("wrong", "variables: [1, 2]"),
		document("lost"),
		files{"clusters/second.yaml": document("taken")["clusters/taken.yaml"]},
	))
	w.fleet().untilStatus(pr.head, holdfast.ContextPlan, holdfast.StatusFailure, "clusters/")
	pr.untilComment(
		"clusters/broken.yaml:3",
		"clusters/typo.yaml:6:3", "projetc", "project", "infra/typo",
		"clusters/wrong.yaml:9:14", "infra/wrong",
		"clusters/lost.yaml:8", "infra/lost",
		"clusters/second.yaml:4:9", "clusters/taken.yaml:4:9", "claimed twice", "8 errors in the files",
		"terraform_data.node[0]", // alpha's plan
	)
	if n := w.countCalls("plan alpha"); n != 1 {
		t.Errorf("alpha was planned %d times, want once", n)
	}

	// A name belongs to the repository that had it first.
	thief := other.open(cluster("taken", "nodes: 1"))
	other.untilStatus(thief.head, holdfast.ContextPlan, holdfast.StatusFailure, "taken")
	thief.untilComment("clusters/taken.yaml:4:9", "belongs to repository", "acme/fleet")

	// A pull request that corrects its faults is as good as any.
	pr.push(join(cluster("typo", "nodes: 1"), cluster("lost", "nodes: 1"), cluster("wrong", "nodes: 1"), files{
		"clusters/broken.yaml": deleted, "clusters/second.yaml": deleted,
	}))
	pr.untilPlanned("4 clusters: 4 to create")
}

// Broken files on the branch say nothing of the clusters that were in them.
func TestBrokenFileOnTheBranchDeletesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	pr := w.fleet().open(cluster("alpha", "nodes: 1"))
	pr.untilPlanned("1 to create")
	pr.merge()
	pr.untilApplied("1 created")

	w.fleet().push(files{"clusters/alpha.yaml": "kind: [Cluster"})
	w.fleet().push(cluster("beta", "nodes: 1"))
	w.untilWaiting("beta", "Unreviewed")
	if rec := w.record("alpha"); rec.Phase != holdfast.PhaseActive || rec.Desired.Removed {
		t.Errorf("alpha is %s, removed %t, want Active and not removed", rec.Phase, rec.Desired.Removed)
	}
	if n := w.countCalls("apply alpha"); n != 1 {
		t.Errorf("the engine has applied %d times, want once", n)
	}

	// A document that is provably taken out is destroyed, once that was seen.
	w.fleet().push(files{"clusters/alpha.yaml": document("alpha", "variables: {nodes: 1}")["clusters/alpha.yaml"]})
	w.untilWaiting("alpha", "")
	gone := w.fleet().open(files{"clusters/alpha.yaml": deleted})
	gone.untilPlanned("1 to be destroyed")
	gone.untilComment("**destroys alpha**: 1 resource")
	gone.merge()
	gone.untilApplied("destroyed 1 cluster")
	w.untilPhase("alpha", holdfast.PhaseDeleted)
}

// Pull requests for which there is nothing to plan, or of which no plan is made,
// say so by their status at least.
func TestPullRequestsWithoutPlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	fleet := w.fleet()

	t.Run("no cluster is affected", func(t *testing.T) {
		pr := fleet.open(files{"README.md": "Better words.\n", "docs/alpha.yaml": "kind: Cluster\n"})
		fleet.untilStatus(pr.head, holdfast.ContextPlan, holdfast.StatusSuccess, "no cluster affected")
		pr.merge()
		fleet.untilStatus(pr.merged, holdfast.ContextApply, holdfast.StatusSuccess, "no cluster affected")
		if body := pr.comment(); body != "" {
			t.Errorf("there is a comment:\n%s", body)
		}
	})
	t.Run("fork", func(t *testing.T) {
		pr := fleet.openAs(githubserver.PullRequest{Author: stranger, Fork: true}, cluster("forked", "nodes: 1"))
		fleet.untilStatus(pr.head, holdfast.ContextPlan, holdfast.StatusFailure, "fork")
		pr.untilComment("Nothing is planned", "fork")
		ask := pr.say(dev, "/holdfast plan")
		pr.untilReacted(ask, holdfast.ReactionRefused)
		if n := w.countCalls("init forked") + w.countCalls("plan forked"); n != 0 {
			t.Errorf("the engine has worked on a fork %d times", n)
		}
	})
	t.Run("draft", func(t *testing.T) {
		pr := fleet.openAs(githubserver.PullRequest{Draft: true}, cluster("drafted", "nodes: 1"))
		fleet.untilStatus(pr.head, holdfast.ContextPlan, holdfast.StatusPending, "draft")
		if n := w.countCalls("plan drafted"); n != 0 {
			t.Errorf("the engine has planned a draft %d times", n)
		}
		fleet.hub.SetDraft(pr.number, false)
		pr.untilPlanned("1 to create")
	})
	t.Run("other base", func(t *testing.T) {
		fleet.git.Branch("release", "main")
		pr := fleet.openAs(githubserver.PullRequest{Base: "release"}, cluster("elsewhere", "nodes: 1"))
		after := fleet.open(files{"README.md": "Words.\n"}) // taken in after it
		fleet.untilStatus(after.head, holdfast.ContextPlan, holdfast.StatusSuccess, "no cluster affected")
		if n := w.countCalls("plan elsewhere"); n != 0 {
			t.Errorf("the engine has planned it %d times", n)
		}
		fleet.hub.SetBase(pr.number, "main", fleet.git.Rev("main"))
		pr.untilPlanned("1 to create")
	})
}

// A plan that fails says why where people look, and is made again when the
// cause is gone.
func TestPlanFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	pr := w.fleet().open(join(document("alpha"), moduleFile("alpha", `
resource "terraform_data" "x" {
  lifecycle {
    precondition {
      condition     = var.nodes == 1 && fileexists("`+w.path("outside")+`")
      error_message = "The file is not there."
    }
  }
}
`)))
	w.fleet().untilStatus(pr.head, holdfast.ContextPlan, holdfast.StatusFailure, "alpha")
	pr.untilComment("plan failed", "The file is not there.", "correct it and push")
	w.write("outside", "", 0o644)
	pr.say(dev, "/holdfast plan")
	pr.untilPlanned("2 to create")
}

// What changes nothing that a plan reads is not a reason for one: a file that moves,
// a label, a word in a comment.
func TestContentCountsNotPaths(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	fleet := w.fleet()
	fleet.commit(cluster("prod", "nodes: 1"))
	fleet.commit(cluster("preprod", "nodes: 1"))
	w.start()
	w.untilWaiting("prod", "Unreviewed")
	w.untilWaiting("preprod", "Unreviewed")

	text := document("prod", "variables: {nodes: 1}")["clusters/prod.yaml"]
	pr := fleet.open(files{
		"clusters/prod.yaml":    deleted,
		"clusters/eu/prod.yaml": "# Moved.\n" + strings.Replace(text, "name: prod\n", "name: prod\n  labels: {team: web}\n", 1),
	})
	fleet.untilStatus(pr.head, holdfast.ContextPlan, holdfast.StatusSuccess, "no cluster affected")
	pr.merge()
	w.until("the record has moved too", func() (bool, string) {
		doc := w.record("prod").Desired.Document
		return doc.Path == "clusters/eu/prod.yaml" && doc.Labels["team"] == "web", doc.Path
	})
	if rec := w.record("prod"); rec.Desired.Removed || rec.Waiting != "Unreviewed" {
		t.Errorf("prod is removed: %t, waits: %q", rec.Desired.Removed, rec.Waiting)
	}

	// The module of one cluster is not that of another whose name it ends in.
	pr = fleet.open(moduleFile("prod", `resource "terraform_data" "new" {}`+"\n"))
	pr.untilPlanned("1 cluster: 2 to create")
	if n := w.countCalls("plan preprod"); n != 1 {
		t.Errorf("preprod was planned %d times, want once", n)
	}
}
