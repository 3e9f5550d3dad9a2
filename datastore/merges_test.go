package datastore_test

import (
	"database/sql"
	"path/filepath"
	"slices"
	"testing"

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
	// The rows, each with a number of its own that another row gets when it is written again.
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
