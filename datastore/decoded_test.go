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
	"github.com/holdfast-dev/holdfast/outgoing"
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

// TestDocumentsAreReadOnce: of a pull request whose record was decoded the document is not even
// read, nor in lists: here no column has the name that a query would have to use. What is read
// comes before it in the row, or SQLite would go through all of its pages.
func TestDocumentsAreReadOnce(t *testing.T) {
	t.Parallel()
	store, row, saved := openWithPullRequest(t)
	must[holdfast.PullRequestRecord](t)(store.PullRequest(t.Context(), thePullRequest))
	db := must[*sql.DB](t)(sql.Open("sqlite", row.path))
	defer db.Close()
	var last string
	var size int
	if err := db.QueryRow(`SELECT name FROM pragma_table_xinfo('pull_requests') ORDER BY cid DESC LIMIT 1`).Scan(&last); err != nil || last != "doc" {
		t.Errorf("the last column is %q, %v, want doc", last, err)
	}
	if err := db.QueryRow(`SELECT length(mark) FROM pull_requests`).Scan(&size); err != nil || size != seal.MarkSize {
		t.Errorf("the mark has %d bytes, %v, want %d", size, err, seal.MarkSize)
	}
	execute(t, row.path, `ALTER TABLE pull_requests RENAME COLUMN doc TO gone`)
	if got := must[holdfast.PullRequestRecord](t)(store.PullRequest(t.Context(), thePullRequest)); !same(got, saved) {
		t.Errorf("it is read as %+v", got)
	}
	if got := listed(t, store); !same(got, saved) {
		t.Errorf("it is listed as %+v", got)
	}
	if got := must[int64](t)(store.PullRequestVersion(t.Context(), thePullRequest)); got != saved.Version {
		t.Errorf("its version is %d, want %d", got, saved.Version)
	}
}

// TestPullRequestsOfAFormerVersion: those of a database whose rows have no mark are there after
// an upgrade, and so is the feed of their changes.
func TestPullRequestsOfAFormerVersion(t *testing.T) {
	t.Parallel()
	store, row, saved := openWithPullRequest(t)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, row.path, `
		CREATE TABLE former AS SELECT repo, number, state, version, doc, ended_at, shown_since FROM pull_requests;
		DROP TABLE pull_requests;
		ALTER TABLE former RENAME TO pull_requests;
		DROP TABLE runners; DROP TABLE runner_rules; DROP TABLE environments; DROP TABLE tickets; DROP TABLE issuer; DROP TABLE issuer_keys; DROP TABLE state_places; DROP TABLE breakers; DROP TABLE deliveries; DROP TABLE notifications;
		DROP TABLE people; DROP TABLE person_links; DROP TABLE sessions; DROP TABLE personal_tokens; DROP TABLE login_requests; DROP TABLE requesters; ALTER TABLE audit DROP COLUMN origin;
		DELETE FROM goose_db_version WHERE version_id >= 18`)
	store = openAt(t, datastore.Options{Path: row.path})
	if got := must[holdfast.PullRequestRecord](t)(store.PullRequest(t.Context(), thePullRequest)); !same(got, saved) {
		t.Errorf("it is read as %+v", got)
	}
	feed := func() (rows int) {
		db := must[*sql.DB](t)(sql.Open("sqlite", row.path))
		defer db.Close()
		if err := db.QueryRow(`SELECT MAX(seq) FROM changes WHERE kind = 'PullRequest'`).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	before := feed()
	saved.Title = "second"
	saved = must[holdfast.PullRequestRecord](t)(store.SavePullRequest(t.Context(), saved))
	if got := listed(t, store); !same(got, saved) {
		t.Errorf("after a change it is listed as %+v", got)
	}
	if after := feed(); after <= before {
		t.Errorf("the change is not in the feed: the newest was %d, and is %d", before, after)
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
	seen := must[outgoing.Post](t)(store.Post(t.Context(), post.Key))
	version := read().Version
	must[bool](t)(store.PostUnshown(t.Context(), seen, noon.Add(time.Second)))
	if got := read(); len(got.Unshown) != 1 || len(listed(t, store).Unshown) != 1 || got.Version != version {
		t.Errorf("after its comment came to show no plans it is %+v", got)
	}
}
