package reconciler_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/proposals"
)

// TestClustersAreProposed: what somebody asks for becomes a pull request as people would make
// it: it affects that cluster alone, and changes nothing else of its file.
func TestClustersAreProposed(t *testing.T) {
	t.Parallel()
	two := "# both\n" + webCluster("one", "1.0.0", "") + "  variables: {size: small, zone: a}\n---\n# the second\n" + webCluster("two", "1.0.0", "") + "  variables:\n    size: small # of nodes\n    zone: a\n"
	u := newUpgradeFleet(t, map[string]string{"old": webCluster("old", "1.0.0", "") + "  variables: {size: small, zone: a}\n"})
	u.push("Release", webVersion("1.1.0", "size", "zone"))
	u.repo.Tag("web/v1.1.0", master)
	u.push("Two", map[string]string{"clusters/both.yaml": strings.ReplaceAll(two, "1.0.0", "1.1.0")})
	u.look()
	u.executeAll(good)
	propose := func(p proposals.ClusterChange) (proposals.ClusterOutcome, error) {
		p.By = "anna"
		return u.r.ProposeCluster(context.WithoutCancel(t.Context()), p)
	}
	for name, tc := range map[string]struct {
		p       proposals.ClusterChange
		path    string
		want    string // in the file
		affects string
	}{
		"new": {
			proposals.ClusterChange{Name: "new", Change: "create", Set: []string{"project=p", "environment=e", "provider=any", `template.name="web"`, `template.version="1.1.0"`, `variables.size="large"`, "variables.zone=b"}},
			"clusters/new.yaml",
			"apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata:\n  name: new\nspec:\n  project: p\n  environment: e\n  provider: any\n  template:\n    name: web\n    version: 1.1.0\n  variables:\n    size: large\n    zone: b\n",
			"new",
		},
		"changed": {
			proposals.ClusterChange{Name: "two", Change: "update", Set: []string{"variables.size=large"}},
			"clusters/both.yaml",
			strings.Replace(strings.ReplaceAll(two, "1.0.0", "1.1.0"), "size: small # of nodes", "size: large # of nodes", 1), "two",
		},
		"removed": {proposals.ClusterChange{Name: "old", Change: "delete"}, "clusters/old.yaml", "", "old"},
	} {
		dry := tc.p
		dry.DryRun = true
		if made, err := propose(dry); err != nil || made.PullRequest.Number != 0 || made.Path != tc.path || len(made.Faults) > 0 {
			t.Errorf("%s, dry: %+v, %v", name, made, err)
			continue
		}
		made, err := propose(tc.p)
		if err != nil || made.PullRequest.Number == 0 {
			t.Errorf("%s: %+v, %v", name, made, err)
			continue
		}
		again, err := propose(tc.p)
		if err != nil || again.PullRequest.Number != made.PullRequest.Number {
			t.Errorf("%s again is #%d, %v", name, again.PullRequest.Number, err)
		}
		u.lookAt(made.PullRequest.Number)
		if got := strings.Join(u.affected(made.PullRequest.Number), " "); got != tc.affects {
			t.Errorf("%s affects %q", name, got)
		}
		if changed := u.repo.Git("diff", "--name-only", made.PullRequest.Branch+"^", made.PullRequest.Branch); strings.TrimSpace(changed) != tc.path {
			t.Errorf("%s changes %q", name, changed)
		}
		if tc.want == "" {
			continue
		}
		if got := u.at(made.PullRequest.Branch, tc.path); strings.TrimSpace(got) != strings.TrimSpace(tc.want) {
			t.Errorf("%s: %s is\n%s\nwant\n%s", name, tc.path, got, tc.want)
		}
	}
}

// TestFaultsOfOthersStopNoProposal: what is wrong with another cluster of the same file was
// wrong before.
func TestFaultsOfOthersStopNoProposal(t *testing.T) {
	t.Parallel()
	u := newUpgradeFleet(t, map[string]string{"pair": webCluster("even", "1.0.0", "") + "---\n" + webCluster("odd", "9.9.9", "")})
	u.look()
	u.executeAll(good)
	for set, want := range map[string]bool{`drift.schedule="0 4 * * *"`: false, `template.version="8.8.8"`: true} {
		made, err := u.r.ProposeCluster(t.Context(), proposals.ClusterChange{Name: "even", Change: "update", By: "anna", DryRun: true, Set: []string{set}})
		if err != nil || (len(made.Faults) > 0) != want || strings.Contains(made.Faults.Error(), "9.9.9") {
			t.Errorf("%s: %+v, %v", set, made, err)
		}
	}
}

// TestProposalsAreCheckedFirst: what a pull request would be refused for is answered at its
// place, and none is made.
func TestProposalsAreCheckedFirst(t *testing.T) {
	t.Parallel()
	u := newUpgradeFleet(t, map[string]string{"old": webCluster("old", "1.0.0", "")})
	u.look()
	u.executeAll(good)
	web := []string{"project=p", "environment=e", "provider=any", "template.name=web", `template.version="1.0.0"`}
	for name, tc := range map[string]struct {
		p      proposals.ClusterChange
		kind   error
		says   string
		faults bool
	}{
		"there already":     {proposals.ClusterChange{Name: "old", Change: "create", Set: web}, holdfast.ErrConflict, "already", false},
		"not there":         {proposals.ClusterChange{Name: "nobody", Change: "update", Set: []string{"region=x"}}, holdfast.ErrNotFound, "not found", false},
		"no name":           {proposals.ClusterChange{Name: "../x", Change: "create", Set: web}, nil, "cannot be the name", false},
		"no change":         {proposals.ClusterChange{Name: "old", Change: "drop"}, nil, "create, update and delete", false},
		"elsewhere":         {proposals.ClusterChange{Name: "new", Change: "create", Set: web, Path: "README.md"}, nil, "no clusters in", false},
		"of Git":            {proposals.ClusterChange{Name: "new", Change: "create", Set: web, Path: "clusters/.Git/x.yaml"}, nil, "no clusters in", false},
		"outside":           {proposals.ClusterChange{Name: "new", Change: "create", Set: web, Path: "../x.yaml"}, nil, "no clusters in", false},
		"another one":       {proposals.ClusterChange{Name: "new", Change: "create", Document: webCluster("other", "1.0.0", "")}, nil, "with the name new", false},
		"several":           {proposals.ClusterChange{Name: "new", Change: "create", Document: webCluster("new", "1.0.0", "") + "---\n" + webCluster("other", "1.0.0", "")}, nil, "with the name new", false},
		"no repository":     {proposals.ClusterChange{Name: "new", Change: "create", Set: web, Repo: "other"}, nil, "does not define clusters", false},
		"another's project": {proposals.ClusterChange{Name: "new", Change: "create", Set: web, Projects: []string{"q"}}, holdfast.ErrForbidden, `project "p"`, false},
		"into another one":  {proposals.ClusterChange{Name: "old", Change: "update", Set: []string{"project=q"}, Projects: []string{"p"}}, holdfast.ErrForbidden, `project "q"`, false},
		"no such version":   {proposals.ClusterChange{Name: "old", Change: "update", Set: []string{`template.version="9.9.9"`}}, nil, "clusters/old.yaml:7:", true},
		"unknown variable":  {proposals.ClusterChange{Name: "new", Change: "create", Set: append(web, "variables.nonsense=1")}, nil, "nonsense", true},
		"unknown key":       {proposals.ClusterChange{Name: "old", Change: "update", Set: []string{"nonsense=1"}}, nil, "nonsense", true},
		"not YAML":          {proposals.ClusterChange{Name: "new", Change: "create", Document: "a: ["}, nil, "", false},
	} {
		tc.p.By = "anna"
		made, err := u.r.ProposeCluster(t.Context(), tc.p)
		var faults holdfast.Faults
		switch {
		case made.PullRequest.Number != 0:
			t.Errorf("%s was proposed", name)
		case tc.faults:
			if err != nil || len(made.Faults) == 0 || !strings.Contains(made.Faults.Error(), tc.says) {
				t.Errorf("%s: %v, %v", name, made.Faults, err)
			}
		case err == nil, tc.kind != nil && !errors.Is(err, tc.kind), tc.kind == nil && !errors.As(err, &faults), !strings.Contains(err.Error(), tc.says):
			t.Errorf("%s: %v", name, err)
		}
	}
	u.expectPullRequests(holdfast.PullRequestOpen)
}

// TestProposalsLoseNoOther: a file that cannot be read is not written over, and a document that
// is not alone between its separators takes no other one with it.
func TestProposalsLoseNoOther(t *testing.T) {
	t.Parallel()
	u := newUpgradeFleet(t, map[string]string{"old": webCluster("old", "1.0.0", ""), "pair": webCluster("one", "1.0.0", "") + "...\n" + webCluster("two", "1.0.0", "")})
	u.push("Link", map[string]string{"clusters/linked.yaml": gitserver.Symlink + "old.yaml"})
	u.look()
	u.executeAll(good)
	web := []string{"project=p", "environment=e", "provider=any", "template.name=web", `template.version="1.0.0"`}
	for name, p := range map[string]proposals.ClusterChange{
		"over a link":      {Name: "new", Change: "create", Set: web, Path: "clusters/linked.yaml"},
		"one of two":       {Name: "one", Change: "update", Set: []string{"region=x"}},
		"one of two, gone": {Name: "one", Change: "delete"},
		"another behind":   {Name: "new", Change: "create", Document: webCluster("new", "1.0.0", "") + "...\nkind: Runner\n"},
	} {
		p.By = "anna"
		made, err := u.r.ProposeCluster(t.Context(), p)
		var faults holdfast.Faults
		if made.PullRequest.Number != 0 || !errors.Is(err, holdfast.ErrConflict) && !errors.As(err, &faults) {
			t.Errorf("%s: %+v, %v", name, made, err)
		}
	}
}

// TestProposalsKeepEndsOfLines: a file of Windows stays one; what is shown of it, and the lines of
// faults, are those of any other.
func TestProposalsKeepEndsOfLines(t *testing.T) {
	t.Parallel()
	windows := strings.ReplaceAll("# first\n---\n"+webCluster("old", "1.0.0", ""), "\n", "\r\n")
	u := newUpgradeFleet(t, map[string]string{"old": windows})
	u.look()
	u.executeAll(good)
	made, err := u.r.ProposeCluster(t.Context(), proposals.ClusterChange{Name: "old", Change: "update", By: "anna", Set: []string{"region=x"}})
	if err != nil || len(made.Faults) > 0 || made.Line != 3 || strings.Contains(made.Document, "\r") {
		t.Fatalf("%+v, %v", made, err)
	}
	got := u.at(made.PullRequest.Branch, "clusters/old.yaml")
	if !strings.HasPrefix(got, strings.TrimSpace(windows)) || strings.Count(got, "\n") != strings.Count(got, "\r\n") || !strings.Contains(got, "  region: x") {
		t.Errorf("the file is %q", got)
	}
}
