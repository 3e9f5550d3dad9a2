package reconciler_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
)

// TestPushedFaultsAreShown: a faulty document that is pushed without a pull request fails the
// plan status of the commit, with its place; the commit that mends it passes, and those after
// that have no such status.
func TestPushedFaultsAreShown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ path, good, bad, want string }{
		"cluster": {
			"clusters/prod.yaml", document("prod"), strings.Replace(document("prod"), "project:", "projekt:", 1),
			`clusters/prod.yaml:5:3: unknown key "projekt"`,
		},
		"cluster with a template that is not there": {
			"clusters/shop.yaml", "# nothing\n", templated("shop", "{path: ../templates/none}"), "clusters/shop.yaml:",
		},
		"file that is not YAML":            {"clusters/prod.yaml", document("prod"), document("prod") + "  dependsOn: [\n", "clusters/prod.yaml:"},
		"runner":                           {"runners/eu.yaml", remote("eu"), remote("eu", "maxRuns: 0"), "runners/eu.yaml:6:12: spec.maxRuns must be"},
		"runner that was never in force":   {"runners/eu.yaml", "# nothing\n", remote("eu", "maxruns: 1"), `runners/eu.yaml:6:3: unknown key "maxruns"`},
		"runner rule":                      {"runners/all.yaml", rule("all", "{runner: local}"), rule("all", "{runner: lokal}"), "runners/all.yaml:4:16: there is no runner"},
		"runner that something still uses": {"runners/eu.yaml", remote("eu") + "---\n" + rule("all", "{runner: eu}"), rule("all", "{runner: eu}"), `runners/eu.yaml: runner "eu" cannot be removed`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := twoClusters()
			files[test.path] = test.good
			f := newFleet(t, files, definesRunners)
			f.look()
			f.post()
			push := func(text string) (holdfast.Revision, []string) {
				f.t.Helper()
				rev := holdfast.Revision(f.repo.Commit(master, "push", map[string]string{test.path: text}))
				f.look()
				f.post()
				return rev, f.forge.told(rev, holdfast.ContextPlan)
			}
			bad, told := push(test.bad)
			if len(told) != 1 || !strings.HasPrefix(told[0], "failure ") || !strings.Contains(told[0], test.want) {
				t.Errorf("the faulty commit is told %q, want %q", told, test.want)
			}
			f.restart()
			f.look()
			if _, told := push(test.bad + "# the same\n"); len(told) != 1 || !strings.HasPrefix(told[0], "failure ") {
				t.Errorf("the next commit with it is told %q", told)
			}
			f.expect("the mended commit", func() []string { _, told := push(test.good + "# mended\n"); return told }(), "success no errors in documents")
			f.expect("the one after it", func() []string { _, told := push(test.good + "# as ever\n"); return told }())
			if told := f.forge.told(bad, holdfast.ContextPlan); len(told) != 1 {
				t.Errorf("the faulty commit is told %q in the end", told)
			}
		})
	}
}

// TestFaultsMendedElsewhere: what mends a document may be no commit of its repository. The
// status of the head is taken back then.
func TestFaultsMendedElsewhere(t *testing.T) {
	t.Parallel()
	f := settledShops(t) // released by v1.0.0
	head := holdfast.Revision(f.repo.Commit(master, "another one", shop("1.0.0", "two")))
	f.repo.Tag("web/v1.0.0", master)
	f.look()
	f.post()
	if told := f.forge.told(head, holdfast.ContextPlan); len(told) != 1 || !strings.Contains(told[0], "first clusters/shop-a.yaml:") ||
		!strings.Contains(told[0], "tag web/v1.0.0 was moved from") {
		t.Fatalf("the head is told %q", told)
	}
	f.repo.DeleteRef("refs/tags/web/v1.0.0")
	f.look()
	f.post()
	f.expect("the head in the end", f.forge.told(head, holdfast.ContextPlan)[1:], "success no errors in documents")
}

// byFastForward makes the head of a pull request that of the tracked branch.
func byFastForward(repo *gitserver.Repo, pr holdfast.PullRequest) string {
	repo.SetRef("refs/heads/"+master, string(pr.Head))
	return string(pr.Head)
}

// TestFaultsOfAFastForwardedHead: the plan status of a head that is one of a pull request says
// what that does. The branch that it has become the head of has its own status.
func TestFaultsOfAFastForwardedHead(t *testing.T) {
	t.Parallel()
	f := settledShops(t)
	f.open(1, shop("1.0.0", "two"))
	f.post()
	head := f.forge.get(1).Head
	plan := f.forge.told(head, holdfast.ContextPlan)
	if len(plan) == 0 {
		t.Fatal("the pull request has no plan status")
	}
	f.repo.Tag("web/v1.0.0", string(head))
	f.merge(1, byFastForward)
	f.post()
	if told := f.forge.told(head, holdfast.ContextFaults); len(told) != 1 || !strings.HasPrefix(told[0], "failure ") ||
		!strings.Contains(told[0], "tag web/v1.0.0 was moved from") {
		t.Fatalf("the branch is told %q", told)
	}
	for _, told := range f.forge.told(head, holdfast.ContextPlan) {
		if strings.Contains(told, "was moved from") {
			t.Errorf("the pull request is told of the branch: %q", told)
		}
	}
	f.repo.DeleteRef("refs/tags/web/v1.0.0")
	f.look()
	f.post()
	f.expect("the branch in the end", f.forge.told(head, holdfast.ContextFaults)[1:], "success no errors in documents")
}
