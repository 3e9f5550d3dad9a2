package datastore_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
)

// firstSchema makes a database as the first version of the schema left it:
// testdata/schema1.sql holds two clusters, a plan and the apply that names it, a
// queued plan and a queued drift check, a state, a bundle and a comment.
func firstSchema(t testing.TB) string {
	t.Helper()
	dump, err := os.ReadFile(filepath.Join("testdata", "schema1.sql"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "holdfast.db")
	execute(t, path, string(dump))
	return path
}

func TestUpgrade(t *testing.T) {
	t.Parallel()
	path := firstSchema(t)
	// A start with the wrong keys changes nothing: the right ones open it after.
	_, err := datastore.Open(t.Context(), datastore.Options{Path: path, Keys: testKeys(t, 'x')})
	if err == nil || !strings.Contains(err.Error(), "another key") {
		t.Fatalf("Open() with another key = %v", err)
	}
	store, ctx := openAt(t, datastore.Options{Path: path}), t.Context()

	want := []holdfast.ClusterSummary{
		{
			Name: "dev-us", Owner: "fleet", Project: "payments", Environment: "development", Provider: "aws",
			Labels: map[string]string{"team": "red"}, Template: "kubernetes@1.4.2", Phase: holdfast.PhasePending,
			Waiting: "Unreviewed", UpdatedAt: noon,
		},
		{
			Name: "prod-eu", Owner: "fleet", Project: "payments", Environment: "production", Provider: "aws",
			Labels: map[string]string{"team": "blue"}, Template: "kubernetes@1.4.2", Phase: holdfast.PhaseActive,
			UpToDate: true, Applied: holdfast.AppliedLine{Revision: "abc"}, UpdatedAt: noon,
		},
	}
	if diff := differ(want, must[[]holdfast.ClusterSummary](t)(store.ClusterSummaries(ctx, holdfast.ClusterFilter{}))); diff != "" {
		t.Errorf("ClusterSummaries() (-want +got):\n%s", diff)
	}
	for name, filter := range map[string]holdfast.ClusterFilter{
		"label":      {Labels: map[string]string{"team": "blue"}},
		"dependency": {DependsOn: "network"},
		"names":      {Names: []string{"prod-eu"}},
	} {
		found := must[[]holdfast.ClusterRecord](t)(store.Clusters(ctx, filter))
		if len(found) != 1 || found[0].Name != "prod-eu" || found[0].StateSerial != 7 || found[0].Applied.Run != "run-0002" {
			t.Errorf("Clusters(%s) = %+v", name, found)
		}
	}
	c := must[holdfast.ClusterRecord](t)(store.Cluster(ctx, "prod-eu"))
	c.Drift.Due = noon
	c = must[holdfast.ClusterRecord](t)(store.SaveCluster(ctx, c))
	if c.Version != 2 {
		t.Errorf("SaveCluster() of an old record = version %d, want 2", c.Version)
	}

	// Plans go before drift checks now, and both can be told by provider.
	claimable := func(filter holdfast.ClaimFilter) []string {
		filter.Now, filter.Limit = noon.Add(time.Hour), 10
		return must[[]string](t)(store.Claimable(ctx, filter))
	}
	if diff := differ([]string{"run-0003", "run-0004"}, claimable(holdfast.ClaimFilter{})); diff != "" {
		t.Errorf("Claimable() (-want +got):\n%s", diff)
	}
	if got := claimable(holdfast.ClaimFilter{Providers: []string{"aws"}}); got != nil {
		t.Errorf("Claimable() without aws = %v", got)
	}
	if data, _, err := store.State(ctx, "clusters/prod-eu"); err != nil || !strings.Contains(string(data), `"old"`) {
		t.Errorf("State() = %s, %v", data, err)
	}
	if got := readLog(t, store, "run-0001", 0, 0); string(got.Data) != "planned\n" || !got.Done {
		t.Errorf("Log() = %+v", got)
	}
}

// A start that is cut short between the new tables and their filling is made up
// for by the next one.
func TestUpgradeCutShort(t *testing.T) {
	t.Parallel()
	path := firstSchema(t)
	store, err := datastore.Open(t.Context(), datastore.Options{Path: path, Keys: testKeys(t, 'k')})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`DELETE FROM summaries`, `DELETE FROM cluster_labels`, `DELETE FROM cluster_dependencies`, `DELETE FROM run_references`,
		`UPDATE runs SET provider = '', project = '', bundle = ''`, `INSERT INTO rebuilds (name) VALUES ('runs'), ('clusters')`,
	} {
		execute(t, path, statement)
	}
	store = openAt(t, datastore.Options{Path: path})
	found := must[[]holdfast.ClusterSummary](t)(store.ClusterSummaries(t.Context(), holdfast.ClusterFilter{Labels: map[string]string{"team": "red"}}))
	if len(found) != 1 || found[0].Name != "dev-us" {
		t.Errorf("ClusterSummaries() = %+v", found)
	}
}

// Suspensions and their ends were one action, with which of them it was in the detail.
func TestUpgradeTellsResumesApart(t *testing.T) {
	t.Parallel()
	path := firstSchema(t)
	execute(t, path, `INSERT INTO audit (recorded_at, actor, action, object, detail) VALUES
		(1772366400000000000 + 1, 'ana', 'cluster.suspend', 'prod-eu', 'true: network: moves'), (1772366400000000000 + 2, 'bob', 'cluster.suspend', 'prod-eu', 'false'),
		(1772366400000000000 + 3, 'ana', 'project.suspend', 'payments', 'true'), (1772366400000000000 + 4, 'bob', 'project.suspend', 'payments', 'false: it is over'),
		(1772366400000000000 + 5, 'ana', 'fleet.suspend', 'fleet', 'true: false alarm'), (1772366400000000000 + 6, 'bob', 'fleet.suspend', 'fleet', 'false'),
		(1772366400000000000 + 7, 'ana', 'run.cancel', 'run-0003', 'true: dev-us')`)
	store := openAt(t, datastore.Options{Path: path})
	var got []string
	for _, e := range must[[]holdfast.AuditEntry](t)(store.AuditTrail(t.Context(), "", 0)) {
		got = append(got, strings.Join([]string{e.Actor, e.Action, e.Object, e.Detail}, " | "))
	}
	want := []string{
		"ana | run.cancel | run-0003 | true: dev-us",
		"bob | fleet.resume | fleet | ", "ana | fleet.suspend | fleet | false alarm",
		"bob | project.resume | payments | it is over", "ana | project.suspend | payments | ",
		"bob | cluster.resume | prod-eu | ", "ana | cluster.suspend | prod-eu | network: moves",
	}
	if diff := differ(want, got); diff != "" {
		t.Errorf("AuditTrail() (-want +got):\n%s", diff)
	}
}

// When pull requests were merged is found out of what is on record.
func TestUpgradeKnowsMerges(t *testing.T) {
	t.Parallel()
	path := firstSchema(t)
	store := openAt(t, datastore.Options{Path: path})
	for number, at := range map[int]time.Time{1: noon.Add(time.Hour), 2: noon} {
		pr := holdfast.PullRequestRecord{Clusters: []holdfast.PullRequestCluster{{Name: "prod-eu"}}}
		pr.PullRequestRef, pr.State, pr.MergedAt = holdfast.PullRequestRef{Repo: "fleet", Number: number}, holdfast.PullRequestMerged, at
		must[holdfast.PullRequestRecord](t)(store.SavePullRequest(t.Context(), pr))
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{`UPDATE pull_request_clusters SET merged_at = 0`, `INSERT INTO rebuilds (name) VALUES ('merges')`} {
		execute(t, path, statement)
	}
	store = openAt(t, datastore.Options{Path: path})
	found := must[[]holdfast.PullRequestRecord](t)(store.PullRequests(t.Context(), holdfast.PullRequestFilter{Cluster: "prod-eu", ByMerge: true, Limit: 1}))
	if len(found) != 1 || found[0].Number != 1 {
		t.Errorf("the last merge is %+v", found)
	}
}

// TestUpgradeWithDamagedRecords: the others have all that the upgrade adds. A damaged one is
// named in the log, once, and is still there: its name is not free, and its run keeps nobody
// from the queue.
func TestUpgradeWithDamagedRecords(t *testing.T) {
	t.Parallel()
	path, ctx := firstSchema(t), t.Context()
	execute(t, path, `UPDATE clusters SET doc = x'00' WHERE name = 'dev-us'`)
	execute(t, path, `UPDATE runs SET doc = x'00' WHERE id = 'run-0003'`)
	var logged bytes.Buffer
	store := openAt(t, datastore.Options{Path: path, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	for _, id := range []string{"id=dev-us ", "id=run-0003 "} {
		if n := strings.Count(logged.String(), id); n != 1 {
			t.Errorf("the log has %s %d times:\n%s", id, n, logged.String())
		}
	}
	if names := must[[]string](t)(store.ClusterNames(ctx, holdfast.ClusterFilter{})); !slices.Equal(names, []string{"dev-us", "prod-eu"}) {
		t.Errorf("the clusters are %q", names)
	}
	found := must[[]holdfast.ClusterRecord](t)(store.Clusters(ctx, holdfast.ClusterFilter{Labels: map[string]string{"team": "blue"}, DependsOn: "network"}))
	if len(found) != 1 || found[0].Name != "prod-eu" {
		t.Errorf("of the others, found are %+v", found)
	}
	if _, err := store.Cluster(ctx, "dev-us"); !errors.Is(err, holdfast.ErrDamaged) {
		t.Errorf("the damaged cluster is %v, want ErrDamaged", err)
	}
	queue := must[[]holdfast.QueuedRun](t)(store.Queue(ctx, holdfast.QueueFilter{Now: noon.Add(time.Hour), Limit: 10}))
	if len(queue) != 1 || queue[0].Run.ID != "run-0004" {
		t.Errorf("the queue is %+v", queue)
	}
	if _, _, err := store.Served(ctx, noon); err != nil {
		t.Errorf("served are %v", err)
	}
}

// TestUpgradeWithoutAKey: what was written with a key that is not there is not passed over. It
// is made up for by a start with that key.
func TestUpgradeWithoutAKey(t *testing.T) {
	t.Parallel()
	path, ctx := filepath.Join(t.TempDir(), "holdfast.db"), t.Context()
	for _, cluster := range []struct {
		name string
		keys []byte
	}{{"old", []byte("k")}, {"new", []byte("nk")}} {
		store := openAt(t, datastore.Options{Path: path, Keys: testKeys(t, cluster.keys...)})
		save(t, store, holdfast.ClusterRecord{Name: cluster.name, Owner: "fleet"})
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	execute(t, path, `DELETE FROM summaries; INSERT INTO rebuilds (name) VALUES ('clusters')`)
	if _, err := datastore.Open(ctx, datastore.Options{Path: path, Keys: testKeys(t, 'k')}); err == nil || !strings.Contains(err.Error(), "no key") {
		t.Fatalf("Open() without the key of a record = %v", err)
	}
	store := openAt(t, datastore.Options{Path: path, Keys: testKeys(t, 'n', 'k')})
	if names := must[[]string](t)(store.ClusterNames(ctx, holdfast.ClusterFilter{Owner: "fleet"})); !slices.Equal(names, []string{"new", "old"}) {
		t.Errorf("the clusters are %q", names)
	}
}
