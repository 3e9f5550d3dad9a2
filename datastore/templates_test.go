package datastore_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
	"github.com/holdfast-dev/holdfast/rollout"
)

func testImpacts(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	first, second := holdfast.PullRequestRef{Repo: "templates", Number: 1}, holdfast.PullRequestRef{Repo: "templates", Number: 2}
	check := func(ref holdfast.PullRequestRef, want ...rollout.Impact) {
		t.Helper()
		if diff := differ(want, must[[]rollout.Impact](t)(store.Impacts(ctx, ref))); diff != "" {
			t.Errorf("Impacts(%s) (-want +got):\n%s", ref, diff)
		}
	}
	check(first)

	kubernetes := rollout.Impact{
		Template: "kubernetes", Dir: "kubernetes", Released: "1.4.2", Version: "1.5.0", Same: 37,
		Changes: []rollout.TemplateChange{{About: "variable node_count", What: "is now required", Breaking: true}},
		Groups: []rollout.ImpactGroup{{
			Key: "sha256:a", Changes: []string{"module kubernetes: node_count is 5, not 3"},
			Clusters: []rollout.ImpactCluster{{Name: "prod-eu", Repo: "fleet", Reach: rollout.ReachUpgrade, Version: "1.4.2"}},
		}},
		Refused: []rollout.ImpactRefusal{{
			ImpactCluster: rollout.ImpactCluster{Name: "dev-us", Repo: "fleet", Reach: rollout.ReachManual},
			Faults:        holdfast.Faults{{Message: "node_count is missing", File: "dev-us.yaml", Line: 9}},
		}},
		Fault: "1.5.0 is a minor version",
	}
	vm := rollout.Impact{Template: "vm", Dir: "vm"}
	impacts := []rollout.Impact{vm, kubernetes}
	for range 2 { // a second time costs nothing
		if err := store.SaveImpacts(ctx, first, impacts); err != nil {
			t.Fatal(err)
		}
		check(first, kubernetes, vm)
	}
	if impacts[0].Template != "vm" {
		t.Error("SaveImpacts() has sorted what it was given")
	}
	if err := store.SaveImpacts(ctx, second, []rollout.Impact{vm}); err != nil {
		t.Fatal(err)
	}
	kubernetes.Same = 38
	if err := store.SaveImpacts(ctx, first, []rollout.Impact{kubernetes}); err != nil {
		t.Fatal(err)
	}
	check(first, kubernetes)
	for range 2 {
		if err := store.SaveImpacts(ctx, first, nil); err != nil {
			t.Fatal(err)
		}
		check(first)
	}
	check(second, vm)
	for _, ref := range []holdfast.PullRequestRef{{}, {Repo: "templates"}, {Number: 1}} {
		if err := store.SaveImpacts(ctx, ref, impacts); err == nil {
			t.Errorf("SaveImpacts() of %+v is not an error", ref)
		}
	}
}

func testUpgrades(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	if got := must[[]rollout.Upgrade](t)(store.Upgrades(ctx, "")); len(got) != 0 {
		t.Errorf("Upgrades() of nothing = %+v", got)
	}
	upgrade := func(repo, key string) rollout.Upgrade {
		return must[rollout.Upgrade](t)(store.SaveUpgrade(ctx, rollout.Upgrade{
			Repo: repo, Key: key, Template: "kubernetes", Branch: "holdfast/" + key, State: rollout.UpgradeOpen,
			Clusters: []rollout.UpgradeCluster{{Name: "prod-eu", Path: "prod-eu.yaml", From: "1.4.2", To: "1.5.0"}},
		}))
	}
	red, plain, other := upgrade("fleet", "kubernetes team=red"), upgrade("fleet", "kubernetes"), upgrade("edge", "kubernetes")
	if red.Version != 1 || !red.UpdatedAt.Equal(noon) {
		t.Errorf("SaveUpgrade() of a new record = version %d at %s", red.Version, red.UpdatedAt)
	}
	for repo, want := range map[string][]rollout.Upgrade{
		"": {other, plain, red}, "fleet": {plain, red}, "edge": {other}, "none": nil,
	} {
		if diff := differ(want, must[[]rollout.Upgrade](t)(store.Upgrades(ctx, repo))); diff != "" {
			t.Errorf("Upgrades(%q) (-want +got):\n%s", repo, diff)
		}
	}

	changed := plain
	changed.State, changed.PullRequest, changed.Head, changed.UpdatedAt = rollout.UpgradeMerged, 9, "abc", noon.Add(time.Hour)
	changed = must[rollout.Upgrade](t)(store.SaveUpgrade(ctx, changed))
	if changed.Version != 2 || !changed.UpdatedAt.Equal(noon.Add(time.Hour)) {
		t.Errorf("SaveUpgrade() of an old record = version %d at %s", changed.Version, changed.UpdatedAt)
	}
	fresh := plain
	fresh.Version = 0
	for name, u := range map[string]rollout.Upgrade{"an old version": plain, "a second one": fresh} {
		if _, err := store.SaveUpgrade(ctx, u); !errors.Is(err, holdfast.ErrConflict) {
			t.Errorf("SaveUpgrade() of %s = %v, want ErrConflict", name, err)
		}
	}
	if diff := differ([]rollout.Upgrade{changed, red}, must[[]rollout.Upgrade](t)(store.Upgrades(ctx, "fleet"))); diff != "" {
		t.Errorf("Upgrades() (-want +got):\n%s", diff)
	}
	for _, u := range []rollout.Upgrade{{Repo: "fleet"}, {Key: "kubernetes"}} {
		if _, err := store.SaveUpgrade(ctx, u); err == nil {
			t.Errorf("SaveUpgrade() of %+v is not an error", u)
		}
	}
}

// testManyUpgrades: of replicas that all take up the same, one does.
func testManyUpgrades(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	changed := must[rollout.Upgrade](t)(store.SaveUpgrade(ctx, rollout.Upgrade{
		Repo: "fleet", Key: "kubernetes", Template: "kubernetes", Branch: "holdfast/kubernetes", State: rollout.UpgradeOpen,
	}))
	var group sync.WaitGroup
	won := make(chan error, 8)
	for range cap(won) {
		group.Go(func() {
			_, err := store.SaveUpgrade(ctx, changed)
			won <- err
		})
	}
	group.Wait()
	close(won)
	winners := 0
	for err := range won {
		if err == nil {
			winners++
		} else if !errors.Is(err, holdfast.ErrConflict) {
			t.Errorf("SaveUpgrade() = %v", err)
		}
	}
	if winners != 1 {
		t.Errorf("%d of those who saved at the same time did, want 1", winners)
	}
}

// A sample is in its pull request and never found by it: whoever asks for the pull
// requests that change a cluster is not told of one that only tries.
func testSamples(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	pr := holdfast.PullRequestRecord{
		PullRequest: holdfast.PullRequest{
			PullRequestRef: holdfast.PullRequestRef{Repo: "templates", Number: 3}, State: holdfast.PullRequestMerged,
		},
		Clusters: []holdfast.PullRequestCluster{{Name: "prod-eu", Sample: true, Repo: "fleet"}, {Name: "local"}},
	}
	pr = must[holdfast.PullRequestRecord](t)(store.SavePullRequest(ctx, pr))
	got := must[holdfast.PullRequestRecord](t)(store.PullRequest(ctx, pr.PullRequestRef))
	if diff := differ(pr, got); diff != "" {
		t.Errorf("PullRequest() (-saved +got):\n%s", diff)
	}
	find := func(cluster string) int {
		return len(must[[]holdfast.PullRequestRecord](t)(store.PullRequests(ctx, holdfast.PullRequestFilter{Cluster: cluster})))
	}
	if find("prod-eu") != 0 || find("local") != 1 {
		t.Errorf("PullRequests() finds %d of a sample and %d of a change", find("prod-eu"), find("local"))
	}
	pr.Clusters[0].Sample = false // its document names the template's folder by now
	must[holdfast.PullRequestRecord](t)(store.SavePullRequest(ctx, pr))
	if find("prod-eu") != 1 {
		t.Error("PullRequests() does not find what is a sample no more")
	}
}

func TestRetentionOfImpacts(t *testing.T) {
	t.Parallel()
	p := openPast(t, memory.Dir(t), datastore.Retention{})
	ctx := t.Context()
	open, merged, unknown := holdfast.PullRequestRef{Repo: "templates", Number: 1},
		holdfast.PullRequestRef{Repo: "templates", Number: 2}, holdfast.PullRequestRef{Repo: "templates", Number: 3}
	for ref, state := range map[holdfast.PullRequestRef]holdfast.PullRequestState{
		open: holdfast.PullRequestOpen, merged: holdfast.PullRequestMerged, unknown: "",
	} {
		if state != "" {
			must[holdfast.PullRequestRecord](t)(p.SavePullRequest(ctx, holdfast.PullRequestRecord{
				PullRequest: holdfast.PullRequest{PullRequestRef: ref, State: state},
			}))
		}
		if err := p.SaveImpacts(ctx, ref, []rollout.Impact{{Template: "kubernetes"}}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string, want map[holdfast.PullRequestRef]int) {
		t.Helper()
		p.sweep()
		for ref, n := range want {
			if got := len(must[[]rollout.Impact](t)(p.Impacts(ctx, ref))); got != n {
				t.Errorf("%s: %d impacts of %s, want %d", when, got, ref, n)
			}
		}
	}
	p.now.Add(int64(20 * 24 * time.Hour))
	check("weeks later", map[holdfast.PullRequestRef]int{open: 1, merged: 1, unknown: 1})
	p.now.Add(int64(20 * 24 * time.Hour))
	check("months later", map[holdfast.PullRequestRef]int{open: 1, merged: 0, unknown: 0})

	// It was open until now, however long ago its impacts were last changed.
	pr := must[holdfast.PullRequestRecord](t)(p.PullRequest(ctx, open))
	pr.State = holdfast.PullRequestClosed
	must[holdfast.PullRequestRecord](t)(p.SavePullRequest(ctx, pr))
	check("just closed", map[holdfast.PullRequestRef]int{open: 1})
	p.now.Add(int64(30 * 24 * time.Hour))
	check("closed for long", map[holdfast.PullRequestRef]int{open: 0})
}

// secondSchema makes a database as the second version of the schema left it:
// testdata/schema2.sql holds what schema1.sql does, brought up to that, with a
// pull request and a recorded tag.
func secondSchema(t testing.TB) string {
	t.Helper()
	dump, err := os.ReadFile(filepath.Join("testdata", "schema2.sql"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(memory.Dir(t), "holdfast.db")
	execute(t, path, string(dump))
	return path
}

func TestUpgradeFromSecondSchema(t *testing.T) {
	t.Parallel()
	path := secondSchema(t)
	for _, when := range []string{"upgraded", "cut short before the records were read", "opened again"} {
		store, err := datastore.Open(t.Context(), datastore.Options{Path: path, Keys: testKeys(t, 'k')})
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		names := must[[]string](t)(store.ClusterNames(ctx, holdfast.ClusterFilter{Template: "kubernetes"}))
		if diff := differ([]string{"dev-us", "prod-eu"}, names); diff != "" {
			t.Errorf("%s: ClusterNames() (-want +got):\n%s", when, diff)
		}
		pins := must[map[string]holdfast.Revision](t)(store.TagPins(ctx, "templates"))
		if diff := differ(map[string]holdfast.Revision{"v1.4.2": "abc"}, pins); diff != "" {
			t.Errorf("%s: TagPins() (-want +got):\n%s", when, diff)
		}
		prs := must[[]holdfast.PullRequestRecord](t)(store.PullRequests(ctx, holdfast.PullRequestFilter{Cluster: "prod-eu"}))
		if len(prs) != 1 || prs[0].Number != 7 {
			t.Errorf("%s: PullRequests() = %+v", when, prs)
		}
		ref := holdfast.PullRequestRef{Repo: "templates", Number: 1}
		if err := store.SaveImpacts(ctx, ref, []rollout.Impact{{Template: when}}); err != nil {
			t.Errorf("%s: SaveImpacts() = %v", when, err)
		}
		must[rollout.Upgrade](t)(store.SaveUpgrade(ctx, rollout.Upgrade{Repo: "fleet", Key: when}))
		// A change of a cluster continues from what was there.
		c := must[holdfast.ClusterRecord](t)(store.Cluster(ctx, "prod-eu"))
		c.WaitingDetail = when
		must[holdfast.ClusterRecord](t)(store.SaveCluster(ctx, c))
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		if when == "upgraded" {
			execute(t, path, `UPDATE summaries SET template = ''; INSERT INTO rebuilds (name) VALUES ('clusters')`)
		}
	}
}
