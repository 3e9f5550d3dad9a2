package datastore_test

import (
	"bytes"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
)

// A record that cannot be decoded costs what it is of, and nothing else.

// TestADamagedPullRequestHoldsUpNoOther: it is listed as what cannot be read, with what the
// columns have and otherwise what allows least, and logged once. Put on record again, its
// comment shows no plan before it was written again.
func TestADamagedPullRequestHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	path, ctx := filepath.Join(t.TempDir(), "holdfast.db"), t.Context()
	var logged bytes.Buffer
	store := openAt(t, datastore.Options{Path: path, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	record := func(number int) holdfast.PullRequestRecord {
		return holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{
			PullRequestRef: holdfast.PullRequestRef{Repo: "fleet", Number: number}, State: holdfast.PullRequestOpen, Head: "abc",
		}}
	}
	must[holdfast.PullRequestRecord](t)(store.SavePullRequest(ctx, record(7)))
	other := must[holdfast.PullRequestRecord](t)(store.SavePullRequest(ctx, record(8)))
	want(t, store, commentPost("a plan", "abc"))
	posted(t, store, claimPosts(t, store, noon)[0], noon)
	execute(t, path, `UPDATE pull_requests SET doc = x'00' WHERE number = 7`)

	var is holdfast.PullRequestRecord
	for range 2 {
		prs := must[[]holdfast.PullRequestRecord](t)(store.PullRequests(ctx, holdfast.PullRequestFilter{Repo: "fleet"}))
		if len(prs) != 2 || differ(other, prs[0]) != "" {
			t.Fatalf("PullRequests() = %+v", prs)
		}
		is = must[holdfast.PullRequestRecord](t)(store.PullRequest(ctx, thePullRequest))
		if diff := differ(prs[1], is); diff != "" {
			t.Errorf("PullRequest() is not what the list has:\n%s", diff)
		}
	}
	if !is.Damaged || is.PullRequestRef != thePullRequest || is.State != holdfast.PullRequestOpen || is.Version != 1 ||
		is.Reason != holdfast.ReasonUnreadable || !is.Fork || !is.UnshownAt(noon) {
		t.Errorf("of the damaged one it says %+v", is)
	}
	if n := strings.Count(logged.String(), "cannot be read"); n != 1 || !strings.Contains(logged.String(), "id=fleet#7") {
		t.Errorf("it is logged %d times:\n%s", n, logged.String())
	}
	if _, err := store.SavePullRequest(ctx, is); !errors.Is(err, holdfast.ErrDamaged) {
		t.Errorf("stored as it is it is %v, want ErrDamaged", err)
	}

	want(t, store, commentPost("a later plan", "abc"))
	posted(t, store, claimPosts(t, store, noon)[0], noon)
	if is = must[holdfast.PullRequestRecord](t)(store.PullRequest(ctx, thePullRequest)); !is.Damaged {
		t.Errorf("a post has made a record of what is left: %+v", is)
	}

	again := record(7)
	again.Version, again.Clusters = is.Version, []holdfast.PullRequestCluster{{Name: "prod"}}
	again = must[holdfast.PullRequestRecord](t)(store.SavePullRequest(ctx, again))
	if of := must[[]holdfast.PullRequestRecord](t)(store.PullRequests(ctx, holdfast.PullRequestFilter{Cluster: "prod"})); len(of) != 1 {
		t.Errorf("on record again, it is not found by its cluster: %+v", of)
	}
	later := noon.Add(time.Hour)
	posts := claimPosts(t, store, later)
	if len(posts) != 1 || posts[0].Body != "a later plan" || again.Damaged || !again.UnshownAt(later) {
		t.Fatalf("on record again it is %+v, to be posted is %+v", again, posts)
	}
	posted(t, store, posts[0], later)
	if now := must[holdfast.PullRequestRecord](t)(store.PullRequest(ctx, thePullRequest)); now.UnshownAt(later.Add(1)) || !now.UnshownAt(later.Add(-1)) {
		t.Errorf("written again, the comment shows its plans or not by %v", now.Unshown)
	}
}

// TestADamagedRunHoldsUpNoOther: lists of all runs have the others, as many as were asked
// for, and so has the queue. A list of its own cluster, by which that is decided about, is
// an error.
func TestADamagedRunHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	path, ctx := filepath.Join(t.TempDir(), "holdfast.db"), t.Context()
	store := openAt(t, datastore.Options{Path: path})
	for n := range 6 {
		create(t, store, newRun(n))
	}
	execute(t, path, `UPDATE runs SET doc = x'00' WHERE id IN ('run-0003', 'run-0004')`)
	ids := func(runs []holdfast.Run) (list string) {
		for _, run := range runs {
			list += strings.TrimPrefix(run.ID, "run-000")
		}
		return list
	}
	for limit, want := range map[int]string{1: "5", 2: "52", 3: "521", 4: "5210", 9: "5210"} {
		if got := ids(must[[]holdfast.Run](t)(store.Runs(ctx, holdfast.RunFilter{Limit: limit}))); got != want {
			t.Errorf("the newest %d of all are %s, want %s", limit, got, want)
		}
	}
	var queue []holdfast.Run
	for _, q := range must[[]holdfast.QueuedRun](t)(store.Queue(ctx, holdfast.QueueFilter{Now: noon.Add(time.Hour), Limit: 10})) {
		queue = append(queue, q.Run)
	}
	if got := ids(queue); got != "0125" {
		t.Errorf("the queue is %s", got)
	}
	if _, err := store.Runs(ctx, holdfast.RunFilter{Cluster: "c003"}); !errors.Is(err, holdfast.ErrDamaged) {
		t.Errorf("the runs of its cluster are %v, want ErrDamaged", err)
	}
}

// TestADamagedClusterKeepsNoOtherFromItsCheck: the others are due, however few are asked for.
func TestADamagedClusterKeepsNoOtherFromItsCheck(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	store := openAt(t, datastore.Options{Path: path})
	for _, name := range []string{"a", "b", "c"} {
		save(t, store, holdfast.ClusterRecord{Name: name, Drift: holdfast.DriftState{Due: noon.Add(-1)}})
	}
	execute(t, path, `UPDATE clusters SET doc = x'00' WHERE name = 'a'`)
	for limit, want := range map[int]string{1: "b", 2: "bc", 3: "bc"} {
		names := ""
		for _, c := range must[[]holdfast.ClusterRecord](t)(store.DriftDue(t.Context(), noon, limit)) {
			names += c.Name
		}
		if names != want {
			t.Errorf("of at most %d, due are %q, want %q", limit, names, want)
		}
	}
}
