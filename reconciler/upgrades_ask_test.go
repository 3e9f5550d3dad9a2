package reconciler_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/rollout"
)

func TestUpgradesAreGroupedByLabels(t *testing.T) {
	t.Parallel()
	u := newUpgradeFleet(t, map[string]string{
		"a": webCluster("a", "1.0.0", "~> 1.0", "team: payments"), "b": webCluster("b", "1.0.0", "~> 1.0", "team: search"),
		"c": webCluster("c", "1.0.0", "~> 1.0", "team: payments"), "d": webCluster("d", "1.0.0", "~> 1.0"),
	}, groupedBy("team"))
	u.release("1.1.0")
	u.expect("web team= #1 open: d 1.0.0 1.1.0", "web team=payments #2 open: a 1.0.0 1.1.0, c 1.0.0 1.1.0", "web team=search #3 open: b 1.0.0 1.1.0")
	u.expectPullRequests(holdfast.PullRequestOpen, "#1 Upgrade web to 1.1.0 for d (team=)",
		"#2 Upgrade web to 1.1.0 for 2 clusters (team=payments)", "#3 Upgrade web to 1.1.0 for b (team=search)")

	// Of one that is declined, the others continue.
	branch := u.upgrades()[1].Branch
	u.repo.DeleteBranch(branch)
	u.lookAt(2)
	u.repo.Merge(master, u.upgrades()[2].Branch)
	u.look()
	u.expect("web team= #1 open: d 1.0.0 1.1.0", "web team=payments #2 declined: a 1.0.0 1.1.0, c 1.0.0 1.1.0", "web team=search #3 merged: b 1.0.0 1.1.0")
}

func TestWhatANewVersionRefusesIsLeftOut(t *testing.T) {
	t.Parallel()
	sized := webCluster("sized", "1.0.0", "~> 1.0") + "  variables: {size: big}\n"
	u := newUpgradeFleet(t, map[string]string{
		"a": webCluster("a", "1.0.0", "~> 1.0"), "sized": sized,
		"aliased": strings.Replace(sized, "version: 1.0.0", "version: &v 1.0.0", 1),
	})
	u.repo.Commit(master, "Rename", map[string]string{"clusters/aliased.yaml": strings.Replace(
		strings.Replace(sized, "version: 1.0.0", "version: &v 1.0.0", 1), "name: sized", "name: aliased", 1)})
	u.release("1.1.0", "size")
	u.expect("web #1 open: sized 1.0.0 1.1.0")
	body := u.host.body(upgradeBranch)
	for _, part := range []string{
		"**Not upgraded: 2 clusters.**", "- `a` to 1.1.0: `clusters/a.yaml:", "size", "- `aliased` to 1.1.0: `clusters/aliased.yaml:", "has an anchor",
		"**Read this before it is merged:**",
	} {
		if !strings.Contains(body, part) {
			t.Errorf("body lacks %q:\n%s", part, body)
		}
	}
	u.push("Size no more", map[string]string{"clusters/sized.yaml": webCluster("sized", "1.0.0", "~> 1.0")})
	u.look()
	u.expect("web #1 obsolete")
	if len(u.host.withdrawn) != 1 || !strings.Contains(u.host.withdrawn[0], "would refuse") {
		t.Errorf("withdrawn: %q", u.host.withdrawn)
	}
}

func TestUnusableVersionsAreNotProposed(t *testing.T) {
	t.Parallel()
	u := newUpgradeFleet(t, map[string]string{"a": webCluster("a", "1.0.0", "~> 1.0"), "b": webCluster("b", "1.1.0", "")})
	u.release("1.1.0") // which b uses: its tag is on record
	u.expect("web #1 open: a 1.0.0 1.1.0")

	// A version at fault.
	broken := webVersion("1.2.0")
	broken["templates/web/template.yaml"] = "apiVersion: holdfast.dev/v1\nkind: Template\nmetadata: {name: web}\nspec: {provider: {}}\n"
	u.push("Release", broken)
	u.repo.Tag("web/v1.2.0", master)
	u.look()
	u.expect("web #1 open: a 1.0.0 1.1.0")
	if body := u.host.body(upgradeBranch); !strings.Contains(body, "1.2.0 is not proposed") {
		t.Errorf("body does not tell of 1.2.0:\n%s", body)
	}

	// A version whose tag has moved: what was proposed is taken back.
	u.push("Change", webVersion("1.1.0, differently"))
	u.repo.Tag("web/v1.1.0", master)
	u.look()
	u.expect("web #1 obsolete")
	status, err := u.r.Templates(t.Context(), "web")
	u.must(err)
	want := []string{"1.2.0 0 false true", "1.1.0 1 true false", "1.0.0 1 false false"}
	var got []string
	for _, v := range status[0].Versions {
		got = append(got, fmt.Sprint(v.Version, " ", v.Clusters, " ", v.MovedTo != "", " ", v.Unusable != ""))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	if !strings.Contains(status[0].Trouble, "was moved") || !strings.Contains(status[0].Trouble, "1.2.0") {
		t.Errorf("trouble = %q", status[0].Trouble)
	}

	// The version at fault was never used: its tag may be mended.
	u.release("1.2.0")
	u.expect("web #2 open: a 1.0.0 1.2.0")
}

func TestAForgeThatRefusesIsNotPestered(t *testing.T) {
	t.Parallel()
	u := newUpgradeFleet(t, twoBehind())
	u.host.breaks(fmt.Errorf("push: %w", holdfast.ErrForbidden), nil, nil)
	u.release("1.1.0")
	const refused = "web #0 open: a 1.0.0 1.1.0, b 1.0.0 1.1.0 (the code host does not let Holdfast push: give the App Contents: write)"
	u.expect(refused)
	for i := range 3 {
		u.push("Push", map[string]string{"README.md": fmt.Sprint(i)})
		u.look()
	}
	if u.host.calls != 1 {
		t.Errorf("asked %d times within the hour", u.host.calls)
	}
	_, err := u.r.Upgrade(t.Context(), rollout.UpgradeRequest{Clusters: []string{"stays"}, Actor: "alice"})
	u.must(err)
	if u.host.calls != 3 {
		t.Errorf("asked %d times: somebody has mended it perhaps, and asks", u.host.calls)
	}
	u.host.breaks(nil, nil, nil)
	u.clock.Advance(61 * time.Minute)
	u.must(u.r.LookAtUpgrades(t.Context(), infra))
	u.settle()
	u.expect("web #1 open: a 1.0.0 1.1.0, b 1.0.0 1.1.0", "web (asked) #2 open: stays 1.0.0 1.1.0")
}

func TestUpgradesThatAreAskedFor(t *testing.T) {
	t.Parallel()
	u := newUpgradeFleet(t, map[string]string{
		"auto": webCluster("auto", "1.0.0", "~> 1.0", "team: x"), "plain": webCluster("plain", "1.0.0", "", "team: x"),
		"fixed": webCluster("fixed", "1.0.0", "1.0.0"), "new": webCluster("new", "1.1.0", ""), "own": document("own"),
		"wrong": strings.Replace(webCluster("wrong", "1.0.0", ""), "project: p", "projekt: p", 1),
	})
	u.push("Add a module", map[string]string{"infra/own/main.tf": module("one")})
	u.release("1.1.0")
	u.expect("web #1 open: auto 1.0.0 1.1.0")
	ask := func(req rollout.UpgradeRequest) ([]rollout.Upgrade, error) {
		req.Actor = "alice"
		return u.r.Upgrade(t.Context(), req)
	}
	for name, tc := range map[string]struct {
		req  rollout.UpgradeRequest
		kind error
		want string
	}{
		"nobody":               {rollout.UpgradeRequest{Clusters: []string{"none"}}, holdfast.ErrNotFound, "no tracked branch defines cluster none"},
		"nobodies":             {rollout.UpgradeRequest{Clusters: []string{"none", "nil"}}, holdfast.ErrNotFound, "no tracked branch defines any of the clusters nil, none"},
		"a module":             {rollout.UpgradeRequest{Clusters: []string{"own"}}, holdfast.ErrConflict, "own is invalid, or does not use"},
		"one at fault":         {rollout.UpgradeRequest{Clusters: []string{"wrong"}}, holdfast.ErrConflict, "wrong is invalid"},
		"the newest":           {rollout.UpgradeRequest{Clusters: []string{"new"}}, holdfast.ErrConflict, "new is at web 1.1.0: there is no newer version of the same major version"},
		"beyond its upgrades":  {rollout.UpgradeRequest{Clusters: []string{"fixed"}}, holdfast.ErrConflict, `no newer version that its upgrades, "1.0.0", allows`},
		"back":                 {rollout.UpgradeRequest{Clusters: []string{"new"}, To: "1.0.0"}, holdfast.ErrConflict, "not older than 1.0.0"},
		"to what is not":       {rollout.UpgradeRequest{Clusters: []string{"plain"}, To: "1.9.0"}, holdfast.ErrConflict, "web 1.9.0 cannot be used: it has no tag"},
		"of another template":  {rollout.UpgradeRequest{All: true, Template: "db"}, holdfast.ErrConflict, "no selected cluster"},
		"with no such label":   {rollout.UpgradeRequest{Labels: map[string]string{"team": "y"}}, holdfast.ErrConflict, "no selected cluster"},
		"without a selection":  {rollout.UpgradeRequest{}, holdfast.ErrConflict, "no selected cluster"},
		"labels of which some": {rollout.UpgradeRequest{Labels: map[string]string{"team": "x", "tier": ""}}, holdfast.ErrConflict, "no selected cluster"},
	} {
		if got, err := ask(tc.req); !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.want) || len(got) > 0 {
			t.Errorf("%s: %v, %v, want %v with %q", name, got, err, tc.kind, tc.want)
		} else if strings.Contains(err.Error(), tc.kind.Error()) {
			t.Errorf("%s: %v says twice what is wrong", name, err)
		}
	}

	// What is proposed already is not proposed twice, and what is asked for is next to
	// it.
	got, err := ask(rollout.UpgradeRequest{Labels: map[string]string{"team": "x"}})
	u.must(err)
	u.settle()
	u.expect("web #1 open: auto 1.0.0 1.1.0", "web (asked) #2 open: plain 1.0.0 1.1.0")
	if len(got) != 2 || got[0].PullRequest != 1 || got[1].PullRequest != 2 || got[1].By != "alice" {
		t.Errorf("upgrades = %+v", got)
	}
	got, err = ask(rollout.UpgradeRequest{All: true, To: "1.1.0"})
	u.must(err)
	u.settle()
	u.expect("web #1 open: auto 1.0.0 1.1.0", "web (asked) #2 open: fixed 1.0.0 1.1.0, plain 1.0.0 1.1.0")
	if len(got) != 2 || !strings.Contains(got[1].Trouble, "not upgraded: new is at web 1.1.0") {
		t.Errorf("upgrades = %+v", got)
	}
	u.look()
	if trail, err := u.store.AuditTrail(t.Context(), infra, 10); err != nil || !slices.ContainsFunc(trail, func(e holdfast.AuditEntry) bool {
		return e.Actor == "alice" && e.Action == "template.upgrade" && strings.Contains(e.Detail, "plain to 1.1.0")
	}) {
		t.Errorf("audit = %+v, %v", trail, err)
	}

	// It is followed to its end like any other.
	u.repo.Merge(master, u.upgrades()[1].Branch)
	u.look()
	u.expect("web #1 open: auto 1.0.0 1.1.0", "web (asked) #2 merged: fixed 1.0.0 1.1.0, plain 1.0.0 1.1.0")
	u.release("1.2.0")
	u.expect("web #1 open: auto 1.0.0 1.2.0", "web (asked) #2 merged: fixed 1.0.0 1.1.0, plain 1.0.0 1.1.0")
}

// Whoever asks for what is proposed anyway has it proposed at once: the pull
// request that is open moves on, and no other one is made for the same clusters.
func TestRequestedUpgradeIsProposedAtOnce(t *testing.T) {
	t.Parallel()
	u := newUpgradeFleet(t, map[string]string{"auto": webCluster("auto", "1.0.0", "~> 1.0"), "plain": webCluster("plain", "1.0.0", "")})
	u.release("1.1.0")
	u.expect("web #1 open: auto 1.0.0 1.1.0")
	u.push("Release 1.2.0", webVersion("1.2.0"))
	u.repo.Tag("web/v1.2.0", master)
	u.must(u.r.TakeIn(t.Context(), infra, 0)) // it is known, and not looked at yet
	got, err := u.r.Upgrade(t.Context(), rollout.UpgradeRequest{All: true, Actor: "alice"})
	u.must(err)
	u.settle()
	u.expect("web #1 open: auto 1.0.0 1.2.0", "web (asked) #2 open: plain 1.0.0 1.2.0")
	if len(got) != 2 || got[0].PullRequest != 1 || got[0].By != "" || got[1].By != "alice" {
		t.Errorf("upgrades = %+v", got)
	}

	// Those of all that are up to date are not trouble.
	u.push("Bump by hand", map[string]string{"clusters/plain.yaml": webCluster("plain", "1.2.0", "")})
	u.look()
	got, err = u.r.Upgrade(t.Context(), rollout.UpgradeRequest{All: true, Actor: "alice"})
	u.must(err)
	if len(got) != 1 || got[0].Trouble != "" {
		t.Errorf("upgrades = %+v", got)
	}

	// What somebody has declined is asked for again.
	u.repo.DeleteBranch(u.upgrades()[0].Branch)
	u.lookAt(1)
	_, err = u.r.Upgrade(t.Context(), rollout.UpgradeRequest{Clusters: []string{"auto"}, Actor: "alice"})
	u.must(err)
	u.settle()
	u.expect("web #1 declined: auto 1.0.0 1.2.0", "web (asked) #3 open: auto 1.0.0 1.2.0")
}

// Whoever is not upgraded is told why: the pull request was closed, or somebody
// else's by now, or the newer version would refuse the document.
func TestTemplatesTellWhyNothingIsProposed(t *testing.T) {
	t.Parallel()
	sized := webCluster("sized", "1.0.0", "~> 1.0", "team: d") + "  variables: {size: big}\n"
	u := newUpgradeFleet(t, map[string]string{
		"closed":  webCluster("closed", "1.0.0", "~> 1.0", "team: a") + "  variables: {size: big}\n",
		"edited":  webCluster("edited", "1.0.0", "~> 1.0", "team: b") + "  variables: {size: big}\n",
		"refused": webCluster("refused", "1.0.0", "~> 1.0", "team: c"), "sized": sized,
	}, groupedBy("team"))
	u.release("1.1.0", "size")
	u.expect("web team=a #1 open: closed 1.0.0 1.1.0", "web team=b #2 open: edited 1.0.0 1.1.0", "web team=d #3 open: sized 1.0.0 1.1.0")
	edited := u.upgrades()[1].Branch
	u.repo.DeleteBranch(u.upgrades()[0].Branch)
	u.repo.CommitOn(edited, edited, "Mine", map[string]string{"README.md": "mine"})
	u.push("Change what it stands on", map[string]string{"clusters/edited.yaml": "# New.\n" + u.files["clusters/edited.yaml"]})
	u.lookAt(1)
	u.look()
	status, err := u.r.Templates(t.Context(), "web")
	u.must(err)
	got := make(map[string]string)
	for _, use := range status[0].Users {
		got[use.Cluster] = use.Trouble
	}
	for name, want := range map[string]string{
		"closed": "pull request 1 was closed without a merge: holdfast template upgrade closed asks for it again",
		"edited": "somebody else has pushed to branch " + edited, "refused": "1.1.0 would refuse it: clusters/refused.yaml:", "sized": "",
	} {
		if !strings.HasPrefix(got[name], want) || want == "" && got[name] != "" {
			t.Errorf("trouble of %s is %q, want %q", name, got[name], want)
		}
	}
}

func TestTemplatesTellWhoIsBehind(t *testing.T) {
	t.Parallel()
	u := newUpgradeFleet(t, map[string]string{
		"auto": webCluster("auto", "1.0.0", "~> 1.0"), "plain": webCluster("plain", "1.1.0", ""),
		"folder": templated("folder", "{path: ../templates/web}"), "own": document("own"),
	})
	u.release("1.1.0")
	u.release("1.2.0-rc.1")
	u.release("1.2.0")
	u.executeAll(good)
	status, err := u.r.Templates(t.Context(), "web")
	u.must(err)
	want := []rollout.TemplateUse{
		{Cluster: "auto", Owner: infra, Version: "1.0.0", Applied: "", Behind: 2, Upgrades: "~> 1.0", Next: "1.2.0", Proposed: 1},
		{Cluster: "plain", Owner: infra, Version: "1.1.0", Behind: 1},
		{Cluster: "folder", Owner: infra},
	}
	got := slices.Clone(status[0].Users)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("users (-want +got):\n%s", diff)
	}
	if v := status[0].Versions; len(v) != 4 || v[0].Version != "1.2.0" || v[0].Tag != "web/v1.2.0" || v[1].Version != "1.2.0-rc.1" || v[2].Clusters != 1 {
		t.Errorf("versions = %+v", v)
	}
	all, err := u.r.Templates(t.Context(), "")
	u.must(err)
	if len(all) != 1 || len(all[0].Users) != 3 || all[0].Trouble != "" || all[0].Repo != infra || all[0].Dir != "templates/web" {
		t.Errorf("templates = %+v", all)
	}
	if _, err := u.r.Templates(t.Context(), "db"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("of none: %v", err)
	}

	// Merged this moment: nothing more is proposed, whatever is on record.
	u.push("Merge", map[string]string{"clusters/auto.yaml": webCluster("auto", "1.2.0", "~> 1.0")})
	u.must(u.r.TakeIn(t.Context(), infra, 0))
	status, err = u.r.Templates(t.Context(), "web")
	u.must(err)
	for _, use := range status[0].Users {
		if use.Cluster == "auto" && (use.Version != "1.2.0" || use.Proposed != 0 || use.Behind != 0 || use.Trouble != "") {
			t.Errorf("after the merge: %+v", use)
		}
	}
}
