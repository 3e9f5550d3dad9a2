package e2e_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
)

// labelled is a cluster that may be upgraded, with a team.
func labelled(name, version, team string) files {
	f := upgrading(name, version, "~> 1.4", "node_count: 1")
	for path, text := range f {
		f[path] = strings.Replace(text, "  name: "+name+"\n", "  name: "+name+"\n  labels: {team: "+team+"}\n", 1)
	}
	return f
}

const gitAPI = "/repos/{owner}/{repo}/git/"

// proposeRoutes are the calls that a proposal consists of.
var proposeRoutes = []string{
	"GET " + gitAPI + "ref/{ref...}", "GET /repos/{owner}/{repo}/pulls", "GET " + gitAPI + "commits/{sha}",
	"POST " + gitAPI + "trees", "POST " + gitAPI + "commits", "POST " + gitAPI + "refs",
	"POST /repos/{owner}/{repo}/pulls", "POST /repos/{owner}/{repo}/issues/{number}/labels",
}

// Whatever call of a proposal GitHub does not answer, or answers too late: there is
// one pull request for each group of clusters in the end, with one commit.
func TestUpgradesSurviveTheForge(t *testing.T) {
	t.Parallel()
	w, infra, blueprints := newBlueprints(t, settings{"upgrades": map[string]any{"groupBy": []string{"team"}}})
	lost := githubserver.BadGateway
	lost.After = true
	want := make(map[string]int)
	for i := range proposeRoutes {
		name := fmt.Sprintf("alpha-%d", i)
		infra.commit(labelled(name, "1.4.2", fmt.Sprintf("t%d", i)))
		want[name] = 1
	}
	blueprints.commit(oneFive.files())
	blueprints.release("1.5.0")
	w.start()
	for name := range want {
		w.untilWaiting(name, "Unreviewed")
	}
	w.hub.Fail(1, proposeRoutes[0], githubserver.BadGateway)
	for _, route := range proposeRoutes {
		w.hub.Fail(1, route, lost)
	}
	w.hub.Fail(1, proposeRoutes[6], githubserver.Garbage)
	w.do("get templates kubernetes")
	w.until("each group has a pull request", func() (bool, string) {
		return len(infra.proposals()) == len(want), fmt.Sprintf("%+v", infra.proposals())
	})
	w.until("all is known", func() (bool, string) {
		text := w.do("get templates kubernetes")
		return strings.Count(text, "acme/infra#") == len(want), text
	})
	got := make(map[string]int)
	for _, p := range infra.proposals() {
		pr := infra.pullOf(p)
		if n := infra.git.Git("rev-list", "--count", "main.."+pr.head); n != "1" || p.State != "open" {
			t.Errorf("%q is %s and has %s commits, want one", p.Title, p.State, n)
		}
		for name := range want {
			if strings.Contains(strings.Join(pr.diff(), "\n"), "version: 1.5.0") && strings.Contains(p.Title, name) {
				got[name]++
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pull requests of clusters (-want +got):\n%s", diff)
	}
}

// The server is killed while it makes a proposal, in the middle of each write: the
// next one continues, and makes no second pull request.
func TestUpgradesSurviveCrashes(t *testing.T) {
	t.Parallel()
	w, infra, blueprints := newBlueprints(t, nil)
	infra.commit(upgrading("alpha", "1.4.2", "~> 1.4", "node_count: 1"))
	blueprints.commit(oneFive.files())
	blueprints.release("1.5.0")
	for _, route := range []string{"POST " + gitAPI + "commits", "POST " + gitAPI + "refs", "POST /repos/{owner}/{repo}/pulls"} {
		reached, dead := make(chan struct{}), make(chan struct{})
		release := sync.OnceFunc(func() { close(dead) })
		t.Cleanup(release)
		w.hub.Before(route, func() { close(reached); <-dead })
		w.start()
		w.until("the server is at "+route, func() (bool, string) {
			select {
			case <-reached:
				return true, ""
			default:
				return false, ""
			}
		})
		w.crash()
		release() // what was begun happens, and nobody hears of it
	}
	w.start()
	up := infra.untilProposed(1, "open", "Upgrade kubernetes to 1.5.0 for alpha")
	w.until("it is known", func() (bool, string) {
		text := w.do("get templates kubernetes")
		return strings.Contains(text, fmt.Sprintf("acme/infra#%d", up.number)), text
	})
	up.untilPlanned("1 cluster")
	if n := len(infra.proposals()); n != 1 {
		t.Errorf("there are %d pull requests, want one", n)
	}
}

// Whoever does not want to wait, or has no `upgrades`, asks for it.
func TestTemplateUpgradeCommand(t *testing.T) {
	t.Parallel()
	w, infra, blueprints := newBlueprints(t, nil)
	infra.commit(join(
		on("alpha", "1.4.2", "node_count: 1"), on("beta", "1.4.2", "node_count: 8"), on("gamma", "1.4.2", "node_count: 2"),
	))
	blueprints.commit(oneFive.files())
	blueprints.release("1.5.0")
	strict := oneFive
	strict.version, strict.maxNodes = "2.0.0", 5
	blueprints.commit(strict.files())
	blueprints.release("2.0.0")
	w.start()

	// The App may not push yet; who has mended that asks again.
	infra.hub.DenyContents(true)
	const denied = "the code host does not let Holdfast push: give the App Contents: write"
	if out, stderr, code := w.cli("template", "upgrade", "alpha"); code != 3 || !strings.Contains(out, denied) {
		t.Errorf("without the permission: code %d\n%s%s", code, out, stderr)
	}
	if text := w.do("get templates kubernetes"); !strings.Contains(line(text, "alpha"), denied) {
		t.Errorf("holdfast get templates does not say %q:\n%s", denied, text)
	}
	infra.hub.DenyContents(false)
	w.do("template upgrade alpha gamma", "acme/infra#", "1.5.0", "alpha, gamma", "open")
	up := infra.untilProposed(1, "open", "Upgrade kubernetes to 1.5.0 for 2 clusters", "admin has asked for")
	w.do("template upgrade alpha", fmt.Sprintf("acme/infra#%d", up.number)) // it is proposed already
	out, stderr, code := w.cli("template", "upgrade", "beta", "--to", "2.0.0")
	if code != 3 || !strings.Contains(stderr, "nothing to propose") || !strings.Contains(stderr, "clusters/beta.yaml:11:") {
		t.Errorf("an upgrade that the template refuses: code %d\n%s%s", code, out, stderr)
	}
	up.close()
	w.until("it is known that it was closed", func() (bool, string) {
		pr := w.pullRequest(up.number)
		return pr.State == holdfast.PullRequestClosed, string(pr.State)
	})

	// Who asks again is given another one.
	w.do("template upgrade gamma --to 2.0.0", "2.0.0", "gamma")
	again := infra.untilProposed(2, "open", "Upgrade kubernetes to 2.0.0 for gamma", "breaking")
	if diff := cmp.Diff([]string{
		"-  template: {name: kubernetes, version: 1.4.2}", "+  template: {name: kubernetes, version: 2.0.0}",
	}, again.diff()); diff != "" {
		t.Errorf("the pull request edits (-want +got):\n%s", diff)
	}
	if _, stderr, code := w.cli("template", "upgrade", "nobody"); code == 0 || !strings.Contains(stderr, "nobody") {
		t.Errorf("a cluster that is not there: code %d, %s", code, stderr)
	}
}

// Without a code host an upgrade is a branch, whose merge applies what was
// planned.
func TestUpgradeWithoutAForge(t *testing.T) {
	t.Parallel()
	w := emptyWorld(t, nil)
	fleet := w.addLocalRepo("fleet")
	fleet.config["templates"] = map[string]string{"kubernetes": "kubernetes"}
	fleet.commit(join(oneFourTwo.files(), upgrading("alpha", "1.4.2", "~> 1.4", "node_count: 3, high_availability: true")))
	fleet.release("1.4.2")
	w.start()
	w.untilWaiting("alpha", "Unreviewed")
	w.do("apply alpha")
	w.untilPhase("alpha", holdfast.PhaseActive)
	w.untilIdle()

	fleet.commit(oneFive.files())
	fleet.release("1.5.0")
	const branch = "holdfast/upgrade/kubernetes"
	w.until("there is a branch with the upgrade", func() (bool, string) {
		refs := fleet.git.Git("for-each-ref", "--format=%(refname:short)", "refs/heads")
		return strings.Contains(refs, branch), refs
	})
	plan := w.until1("the upgrade is planned", "alpha", func(run v1.Run) bool {
		return !run.PullRequest.IsZero() && run.Status == holdfast.RunPlanned && !run.PostedAt.IsZero()
	})
	fleet.git.Merge("main", fleet.git.Rev(branch))
	w.until("the upgrade is applied", func() (bool, string) {
		run := w.newest("alpha", holdfast.RunApply)
		return run.Matched == plan.ID && run.Status == holdfast.RunApplied, fmt.Sprintf("%s %s %q", run.ID, run.Status, run.Matched)
	})
	w.until("alpha is known to be made from 1.5.0", func() (bool, string) {
		got := w.record("alpha").Applied.Template
		return strings.Contains(got, "kubernetes@1.5.0"), got
	})
	if n := w.kinds("alpha")[holdfast.RunApply]; n != 2 {
		t.Errorf("alpha was applied %d times, want twice", n)
	}
}

// until1 waits until one of a cluster's runs is as wanted, and returns it.
func (w *world) until1(what, cluster string, ok func(v1.Run) bool) (found v1.Run) {
	w.t.Helper()
	w.until(what, func() (bool, string) {
		for _, run := range w.runs(cluster) {
			if ok(run) {
				found = run
				return true, ""
			}
		}
		return false, fmt.Sprintf("%d runs", len(w.runs(cluster)))
	})
	return found
}

// A delivery that is lost costs time, and nothing else: a new version is found by
// polling, and what it proposes, in each repository for its own clusters, is
// followed without the forge's word.
func TestUpgradesNeedNoWebhooks(t *testing.T) {
	t.Parallel()
	w, infra, blueprints := newBlueprints(t, nil)
	apps := w.addRepo("acme/apps", nil)
	apps.hub.ServeGit(apps.git.Path)
	infra.commit(upgrading("alpha", "1.4.2", "~> 1.4", "node_count: 1"))
	apps.commit(upgrading("beta", "1.4.2", ">= 1.4, < 1.6", "node_count: 2"))
	for _, r := range w.repos {
		r.config["poll"] = "1s"
		r.hub.Drop(1000)
	}
	w.start()
	w.untilWaiting("alpha", "Unreviewed")
	w.untilWaiting("beta", "Unreviewed")
	blueprints.commit(oneFive.files())
	blueprints.release("1.5.0")
	for _, p := range []*pull{
		infra.untilProposed(1, "open", "1.5.0 for alpha"), apps.untilProposed(1, "open", "1.5.0 for beta"),
	} {
		p.untilPlanned("to create")
		p.merge()
		p.untilApplied("created")
	}
}
