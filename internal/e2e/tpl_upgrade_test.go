package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
)

// oneFive is a version that gives clusters more nodes' worth of words, and
// replaces the control plane where there is more than one.
var oneFive = blueprint{version: "1.5.0", nodes: "second", replaces: "v2", watch: "graphs"}

// carefully are documents as people write them: comments, quotes and the order of
// keys are theirs, and two of them are in one file.
func carefully() files {
	return files{
		"clusters/shop/eu.yaml": `# The shop in Europe. Ask the payments team before you touch it.
apiVersion: holdfast.dev/v1
kind: Cluster
metadata:
  name: eu          # not eu-1
  labels: { team: payments }
spec:
  project: shop
  environment: production
  template:
    upgrades: "~> 1.4"
    # 1.4.2 has the right network.
    version: '1.4.2'   # keep
    name: kubernetes
  provider: demo
  region: eu-1
  variables:
    node_count: 3   # 1.4.2 wants three
    high_availability: true
`,
		"clusters/both.yaml": "---\napiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: one, labels: {team: search}}\nspec:\n" +
			"  project: shop\n  environment: production\n  template: {name: kubernetes, version: 1.4.2, upgrades: ~> 1.4}\n" +
			"  provider: demo\n  region: us-1\n  variables: {node_count: 1}\n---\n" +
			"apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: two}\nspec:\n  project: shop\n  environment: production\n" +
			"  template: {version: \"1.4.2\", name: kubernetes}\n  provider: demo\n  region: us-1\n  variables: {node_count: 1}\n",
	}
}

const changelog = `# Changelog

## 1.5.1

- The second word was misspelt. Thanks @dev, closes #1.

## 1.5.0

- Control planes that are highly available are made again.

## 1.4.2

- The first of them.
`

// A version that is released comes to the clusters that allow it by a pull request,
// which edits the version lines and nothing else, is planned as any, and moves on
// to the next version when there is one.
func TestUpgradePullRequest(t *testing.T) {
	t.Parallel()
	w, infra, blueprints := newBlueprints(t, nil)
	w.start()
	pr := infra.open(carefully())
	pr.untilPlanned("3 clusters")
	pr.merge()
	pr.untilApplied("applied 3 clusters")
	if n := len(infra.proposals()); n != 0 {
		t.Fatalf("there are %d proposals, and nothing to propose", n)
	}

	blueprints.push(join(oneFive.files(), files{"kubernetes/CHANGELOG.md": changelog}))
	blueprints.releases("1.5.0")
	up := infra.untilProposed(1, "open", "Upgrade kubernetes to 1.5.0 for 2 clusters", "`eu`", "clusters/shop/eu.yaml",
		"1.4.2", "made again")
	if diff := cmp.Diff([]string{
		"-  template: {name: kubernetes, version: 1.4.2, upgrades: ~> 1.4}",
		"+  template: {name: kubernetes, version: 1.5.0, upgrades: ~> 1.4}",
		"-    version: '1.4.2'   # keep", "+    version: '1.5.0'   # keep",
	}, up.diff()); diff != "" {
		t.Errorf("the pull request edits (-want +got):\n%s", diff)
	}
	for path, text := range carefully() {
		up.expectFile(path, strings.Replace(strings.Replace(text, "version: '1.4.2'", "version: '1.5.0'", 1), "version: 1.4.2", "version: 1.5.0", 1))
	}
	up.untilPlanned("1 to replace")
	up.untilComment("`module.nodes.terraform_data.control_plane`", "`one`", "no changes")
	first := up.head

	// The next version is there before anybody has merged this one.
	fixed := oneFive
	fixed.version, fixed.nodes = "1.5.1", "2nd"
	blueprints.push(fixed.files())
	blueprints.releases("1.5.1")
	w.untilReleased("1.5.1")
	w.do("template upgrade eu one", "acme/infra#"+itoa(up.number)) // who is in a hurry
	up = infra.untilProposed(1, "open", "Upgrade kubernetes to 1.5.1 for 2 clusters", "misspelt", "made again")
	if up.head == first || infra.git.Git("rev-list", "--count", "main.."+up.head) != "1" {
		t.Errorf("the branch is at %s, was at %s, want one new commit", up.head, first)
	}
	body := infra.proposals()[0].Body
	if strings.Contains(body, "Thanks @dev") || strings.Contains(body, "closes #1") {
		t.Errorf("the notes mention somebody, or close something:\n%s", body)
	}
	up.untilPlanned("1 to replace")
	table := w.do("get templates", "OPEN UPGRADES")
	if got := line(table, "kubernetes"); got != "kubernetes 1.5.1 3 3 3 1" {
		t.Errorf("holdfast get templates says %q:\n%s", got, table)
	}
	w.do("get templates kubernetes", "acme/templates", "kubernetes/v1.5.1", "acme/infra#"+itoa(up.number))

	up.merge()
	up.untilApplied("applied 1 cluster")
	w.untilIdle()
	for name, want := range map[string]string{"eu": "1.5.1", "one": "1.5.1", "two": "1.4.2"} {
		if got := w.record(name).Applied.Template; !strings.Contains(got, "kubernetes@"+want) {
			t.Errorf("%s was applied with %q, want version %s", name, got, want)
		}
	}
	apply := w.newest("eu", holdfast.RunApply)
	if apply.Status != holdfast.RunApplied || apply.Matched == "" {
		t.Errorf("the apply of eu is %s, of the reviewed plan %q", apply.Status, apply.Matched)
	}
	if _, stderr, code := w.cli("template", "upgrade", "eu"); code != 3 || !strings.Contains(stderr, "eu is at kubernetes 1.5.1") {
		t.Errorf("there is nothing to propose any more, and holdfast says: %d, %s", code, stderr)
	}
	w.until("nobody has an upgrade open", func() (bool, string) {
		table := w.do("get templates")
		return line(table, "kubernetes") == "kubernetes 1.5.1 3 3 1 0", table
	})
	if n := len(infra.proposals()); n != 1 {
		t.Errorf("there were %d proposals, want one", n)
	}
}

// People have the last word: what they close is not proposed again, what they push
// to is theirs, and what they do by hand needs no pull request of ours.
func TestUpgradesRespectPeople(t *testing.T) {
	t.Parallel()
	w, infra, blueprints := newBlueprints(t, settings{"upgrades": map[string]any{"groupBy": []string{"team"}}})
	infra.commit(join(
		labelled("closed", "1.4.2", "a"), labelled("edited", "1.4.2", "b"), labelled("bumped", "1.4.2", "c"),
		upgrading("refused", "1.4.2", "~> 1.4", "node_count: 9"),
	))
	narrow := oneFive
	narrow.maxNodes = 8
	blueprints.commit(narrow.files())
	blueprints.release("1.5.0")
	w.start()
	byTeam := make(map[string]*pull)
	w.until("each team has a pull request", func() (bool, string) {
		all := infra.proposals()
		for _, p := range all {
			_, team, _ := strings.Cut(strings.TrimSuffix(p.Title, ")"), "team=")
			byTeam[team] = infra.pullOf(p)
		}
		return len(all) == 3 && byTeam["a"] != nil && byTeam["b"] != nil && byTeam["c"] != nil, fmt.Sprint(len(all))
	})

	// One is closed, one is pushed to, one is made superfluous.
	byTeam["a"].close()
	theirs := byTeam["b"]
	theirs.push(files{"clusters/edited.yaml": labelled("edited", "1.5.0", "b")["clusters/edited.yaml"] + "# Mine.\n"})
	infra.push(labelled("bumped", "1.5.0", "c"))
	w.until("the superfluous one is closed, with a word why", func() (bool, string) {
		said := fmt.Sprint(infra.hub.Comments(byTeam["c"].number))
		return infra.state(byTeam["c"]) == "closed" && strings.Contains(said, "Nothing is left to upgrade"), infra.state(byTeam["c"])
	})
	byTeam["c"].closed = true
	w.until("it is told why the others are not upgraded", func() (bool, string) {
		text := w.do("get templates kubernetes")
		return strings.Contains(line(text, "closed"), "was closed without a merge") &&
			strings.Contains(line(text, "edited"), "somebody else has pushed to branch") &&
			strings.Contains(line(text, "refused"), "1.5.0 would refuse it: clusters/refused.yaml:11:"), text
	})
	if n := len(infra.proposals()); n != 3 {
		t.Errorf("there are %d proposals, want the three that there were", n)
	}

	// The next version is for whom has declined the last one; the branch that
	// somebody has pushed to stays as it was left, and is merged like any.
	narrow.version = "1.6.0"
	blueprints.push(narrow.files())
	blueprints.releases("1.6.0")
	w.untilReleased("1.6.0")
	w.do("template upgrade closed bumped") // who is in a hurry
	w.until("the others are proposed the next version", func() (bool, string) {
		all := infra.proposals()
		return len(all) == 5, fmt.Sprintf("%+v", all)
	})
	for _, p := range infra.proposals()[3:] {
		if !strings.HasPrefix(p.Title, "Upgrade kubernetes to 1.6.0 for ") || strings.Contains(p.Title, "edited") {
			t.Errorf("%q is proposed", p.Title)
		}
	}
	if infra.state(theirs) != "open" || infra.git.Rev(theirs.branch) != theirs.head {
		t.Errorf("the pull request that somebody has pushed to is %s at %s, was at %s",
			infra.state(theirs), infra.git.Rev(theirs.branch), theirs.head)
	}
	theirs.untilPlanned("1 cluster")
	theirs.merge()
	theirs.untilApplied("applied 1 cluster")
}
