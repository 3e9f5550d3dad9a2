package datastore_test

import (
	"bytes"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/seal"
	"github.com/holdfast-dev/holdfast/internal/testenv/memory"
)

// pullRequestRow is the ciphertext of thePullRequest in a database, past the store.
type pullRequestRow struct {
	t    testing.TB
	path string
}

func (r pullRequestRow) read() (doc []byte) {
	r.t.Helper()
	db := must[*sql.DB](r.t)(sql.Open("sqlite", r.path))
	defer db.Close()
	err := db.QueryRow(`SELECT doc FROM pull_requests WHERE repo = ? AND number = ?`, thePullRequest.Repo, thePullRequest.Number).Scan(&doc)
	if err != nil {
		r.t.Fatal(err)
	}
	return doc
}

func (r pullRequestRow) write(doc []byte) {
	r.t.Helper()
	execute(r.t, r.path, `UPDATE pull_requests SET doc = ? WHERE repo = ? AND number = ?`, doc, thePullRequest.Repo, thePullRequest.Number)
}

// openWithPullRequest opens a store that has one pull request of two clusters.
func openWithPullRequest(t *testing.T) (*datastore.Store, pullRequestRow, holdfast.PullRequestRecord) {
	t.Helper()
	path := filepath.Join(memory.Dir(t), "holdfast.db")
	store := openAt(t, datastore.Options{Path: path})
	saved := must[holdfast.PullRequestRecord](t)(store.SavePullRequest(t.Context(), holdfast.PullRequestRecord{
		PullRequest: holdfast.PullRequest{PullRequestRef: thePullRequest, State: holdfast.PullRequestOpen, Title: "first"},
		Clusters:    []holdfast.PullRequestCluster{{Name: "alpha"}, {Name: "beta"}},
		Approvals:   []holdfast.Approval{{By: "ann"}},
	}))
	return store, pullRequestRow{t, path}, saved
}

// listed is what a list of pull requests has of thePullRequest.
func listed(t testing.TB, store *datastore.Store) holdfast.PullRequestRecord {
	t.Helper()
	all := must[[]holdfast.PullRequestRecord](t)(store.PullRequests(t.Context(), holdfast.PullRequestFilter{Repo: thePullRequest.Repo}))
	if len(all) != 1 {
		t.Fatalf("there are %d pull requests", len(all))
	}
	return all[0]
}

// TestPullRequestsAreDecodedOnce: a record that was read is not decoded again, which would
// fail here, as only the mark of what it was decoded from is left of it; a next one is.
func TestPullRequestsAreDecodedOnce(t *testing.T) {
	t.Parallel()
	store, row, saved := openWithPullRequest(t)
	if got := must[holdfast.PullRequestRecord](t)(store.PullRequest(t.Context(), thePullRequest)); !same(got, saved) {
		t.Fatalf("it was read as %+v", got)
	}
	doc := row.read()
	row.write(doc[:seal.MarkSize])
	for range 3 {
		if got := must[holdfast.PullRequestRecord](t)(store.PullRequest(t.Context(), thePullRequest)); !same(got, saved) {
			t.Errorf("it is read again as %+v", got)
		}
		if got := listed(t, store); !same(got, saved) {
			t.Errorf("it is listed as %+v", got)
		}
	}
	saved.Title = "second"
	saved = must[holdfast.PullRequestRecord](t)(store.SavePullRequest(t.Context(), saved))
	if got := must[holdfast.PullRequestRecord](t)(store.PullRequest(t.Context(), thePullRequest)); !same(got, saved) {
		t.Errorf("the next one is read as %+v", got)
	}
	row.write(append(bytes.Clone(row.read()[:10]), doc[10:]...))
	if got := must[holdfast.PullRequestRecord](t)(store.PullRequest(t.Context(), thePullRequest)); !got.Damaged {
		t.Errorf("what has another mark and cannot be decoded is read as %+v", got)
	}
}

// TestPullRequestsOfOthers: who has a record sees neither what somebody else does with theirs
// nor what was written before it was read, by whomever, whether with another version or not.
func TestPullRequestsOfOthers(t *testing.T) {
	t.Parallel()
	store, row, saved := openWithPullRequest(t)
	read := func() holdfast.PullRequestRecord {
		t.Helper()
		return must[holdfast.PullRequestRecord](t)(store.PullRequest(t.Context(), thePullRequest))
	}
	for name, theirs := range map[string]holdfast.PullRequestRecord{"read": read(), "read again": read(), "listed": listed(t, store)} {
		theirs.Clusters[0].Name, theirs.Approvals[0].Ended = "changed", "changed"
		theirs.Clusters = append(theirs.Clusters, holdfast.PullRequestCluster{Name: "changed"})
		if got := read(); !same(got, saved) {
			t.Errorf("who reads after a change of what was %s gets %+v", name, got)
		}
	}

	first := row.read()
	saved.Title = "second"
	saved = must[holdfast.PullRequestRecord](t)(store.SavePullRequest(t.Context(), saved))
	if got := read(); got.Title != "second" || listed(t, store).Title != "second" {
		t.Errorf("after it was saved it is %+v", got)
	}
	row.write(first)
	if got := read(); got.Title != "first" || listed(t, store).Title != "first" {
		t.Errorf("after somebody else has written it, it is %+v", got)
	}

	post := commentPost("plans", "abc")
	want(t, store, post)
	seen := must[holdfast.Post](t)(store.Post(t.Context(), post.Key))
	version := read().Version
	must[bool](t)(store.PostUnshown(t.Context(), seen, noon.Add(time.Second)))
	if got := read(); len(got.Unshown) != 1 || len(listed(t, store).Unshown) != 1 || got.Version != version {
		t.Errorf("after its comment came to show no plans it is %+v", got)
	}
}
