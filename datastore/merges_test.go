package datastore_test

import (
	"database/sql"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
)

// A pull request that is saved again writes the rows of its clusters only if they have
// changed: a large one is saved with each look at it.
func TestClustersOfAPullRequestAreWrittenOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	store := openAt(t, datastore.Options{Path: path})
	db := must[*sql.DB](t)(sql.Open("sqlite", "file:"+path+"?mode=ro"))
	defer db.Close()
	// The rows, each with its own number that another row gets when it is written again.
	rows := func() (names []string) {
		t.Helper()
		found, err := db.QueryContext(t.Context(), `SELECT rowid || ' ' || cluster || ' ' || merged_at FROM pull_request_clusters ORDER BY cluster`)
		if err != nil {
			t.Fatal(err)
		}
		defer found.Close()
		for found.Next() {
			var name string
			if err := found.Scan(&name); err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
		}
		return names
	}
	save := func(pr holdfast.PullRequestRecord) holdfast.PullRequestRecord {
		t.Helper()
		return must[holdfast.PullRequestRecord](t)(store.SavePullRequest(t.Context(), pr))
	}
	// Another one's row comes after them, so that numbers are not used again.
	other := holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{PullRequestRef: holdfast.PullRequestRef{Repo: "other", Number: 1}}}
	other.Clusters = []holdfast.PullRequestCluster{{Name: "zulu"}}
	pr := holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{PullRequestRef: thePullRequest, State: holdfast.PullRequestOpen}}
	pr.Clusters = []holdfast.PullRequestCluster{{Name: "alpha"}, {Name: "beta"}, {Name: "sampled", Sample: true}}
	pr = save(pr)
	save(other)
	first := rows()
	if len(first) != 3 {
		t.Fatalf("the rows are %q", first)
	}
	pr.Title = "another title"
	pr = save(pr)
	if again := rows(); !slices.Equal(again, first) {
		t.Errorf("with another title the rows are %q, and were %q", again, first)
	}
	pr.MergedAt = noon
	pr = save(pr)
	if merged := rows(); slices.Equal(merged, first) {
		t.Errorf("when it is merged the rows are %q still", merged)
	}
	pr.Clusters = pr.Clusters[1:]
	save(pr)
	if left := rows(); len(left) != 2 {
		t.Errorf("with a cluster less the rows are %q", left)
	}
}

// The numbers of the merges of a cluster are those of their records, in the same order.
func TestMergesOfACluster(t *testing.T) {
	t.Parallel()
	store := openSQLite(t)
	merged, open, closed := holdfast.PullRequestMerged, holdfast.PullRequestOpen, holdfast.PullRequestClosed
	for i, pr := range []struct {
		repo     string
		state    holdfast.PullRequestState
		minutes  int // after noon that it was merged
		clusters []holdfast.PullRequestCluster
	}{
		{"shop", merged, 3, []holdfast.PullRequestCluster{{Name: "prod"}, {Name: "beta"}}},
		{"shop", merged, 1, []holdfast.PullRequestCluster{{Name: "prod"}}},
		{"shop", merged, 3, []holdfast.PullRequestCluster{{Name: "prod"}}},
		{"shop", merged, 5, []holdfast.PullRequestCluster{{Name: "beta"}}},
		{"shop", merged, 5, []holdfast.PullRequestCluster{{Name: "prod", Sample: true}}},
		{"shop", open, 0, []holdfast.PullRequestCluster{{Name: "prod"}}},
		{"shop", closed, 0, []holdfast.PullRequestCluster{{Name: "prod"}}},
		{"other", merged, 9, []holdfast.PullRequestCluster{{Name: "prod"}}},
	} {
		rec := holdfast.PullRequestRecord{
			PullRequest: holdfast.PullRequest{PullRequestRef: holdfast.PullRequestRef{Repo: pr.repo, Number: i + 1}, State: pr.state},
			Clusters:    pr.clusters,
		}
		if pr.state == merged {
			rec.MergedAt = noon.Add(time.Duration(pr.minutes) * time.Minute)
		}
		must[holdfast.PullRequestRecord](t)(store.SavePullRequest(t.Context(), rec))
	}
	for _, limit := range []int{0, 2} {
		var want []int
		for _, pr := range must[[]holdfast.PullRequestRecord](t)(store.PullRequests(t.Context(), holdfast.PullRequestFilter{
			Repo: "shop", States: []holdfast.PullRequestState{merged}, Cluster: "prod", ByMerge: true, Limit: limit,
		})) {
			want = append(want, pr.Number)
		}
		if got := must[[]int](t)(store.MergesOf(t.Context(), "shop", "prod", limit)); !slices.Equal(got, want) || got[0] != 3 || got[1] != 1 {
			t.Errorf("with the limit %d the numbers are %v, those of the records %v", limit, got, want)
		}
	}
	if got := must[[]int](t)(store.MergesOf(t.Context(), "shop", "none", 0)); len(got) > 0 {
		t.Errorf("of a cluster that there is not: %v", got)
	}
}
