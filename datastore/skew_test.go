package datastore_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/outgoing"
	"github.com/holdfast-dev/holdfast/protocol"
)

// TestClaimsOfAWrongClock: a server whose clock was days ahead, and that is gone,
// keeps nobody from its work for days. One that is a little ahead is believed.
func TestClaimsOfAWrongClock(t *testing.T) {
	t.Parallel()
	ctx, store := t.Context(), openSQLite(t)
	for _, test := range []struct {
		ahead time.Duration
		free  bool
	}{{10 * time.Minute, false}, {30 * 24 * time.Hour, true}} {
		name := test.ahead.String()
		if !must[bool](t)(store.Lease(ctx, name, "wrong", noon.Add(test.ahead), time.Minute)) {
			t.Fatal("nobody held it")
		}
		if got := must[bool](t)(store.Lease(ctx, name, "right", noon, time.Minute)); got != test.free {
			t.Errorf("what a clock %s ahead has leased is free: %t", test.ahead, got)
		}
		if err := store.Want(ctx, outgoing.Post{Key: name, Kind: outgoing.PostIssue, Repo: "r", Body: "b"}); err != nil {
			t.Fatal(err)
		}
		if posts := must[[]outgoing.Post](t)(store.ClaimPosts(ctx, "wrong", noon.Add(test.ahead), time.Minute, 1)); len(posts) != 1 {
			t.Fatalf("%d posts are to be posted", len(posts))
		}
		if posts := must[[]outgoing.Post](t)(store.ClaimPosts(ctx, "right", noon, time.Minute, 1)); (len(posts) == 1) != test.free {
			t.Errorf("what a clock %s ahead has claimed is free: %t", test.ahead, len(posts) == 1)
		}
	}
}

// TestPausesOfAWrongClock: what has failed while a server's clock was days ahead is
// tried again now, and not in days.
func TestPausesOfAWrongClock(t *testing.T) {
	t.Parallel()
	ctx, store := t.Context(), openSQLite(t)
	for i, test := range []struct {
		ahead time.Duration
		due   bool
	}{{10 * time.Minute, false}, {30 * 24 * time.Hour, true}} {
		until := noon.Add(test.ahead)
		run := claim(t, store, newRun(i))
		run.NotBefore = until
		run = end(t, store, run, holdfast.RunRetrying)
		filter := holdfast.ClaimFilter{Now: noon, Limit: 1}
		if got := must[[]string](t)(store.Claimable(ctx, filter)); (len(got) == 1) != test.due {
			t.Errorf("what is to be tried again in %s is claimable: %+v", test.ahead, got)
		}
		if _, err := store.ClaimRun(ctx, run.ID, protocol.AgentRef{ID: "agent"}, noon, 0); (err == nil) != test.due {
			t.Errorf("what is to be tried again in %s is claimed: %v", test.ahead, err)
		}

		key := test.ahead.String()
		if err := store.Want(ctx, outgoing.Post{Key: key, Kind: outgoing.PostIssue, Repo: "r", Body: "b"}); err != nil {
			t.Fatal(err)
		}
		if posts := claimPosts(t, store, noon); len(posts) != 1 {
			t.Fatalf("%d posts are to be posted", len(posts))
		}
		if err := store.PostFailed(ctx, failedPost(key, "away", 1), until); err != nil {
			t.Fatal(err)
		}
		if posts := claimPosts(t, store, noon); (len(posts) == 1) != test.due {
			t.Errorf("what is to be posted again in %s is due: %+v", test.ahead, posts)
		}
	}
}

// TestClockIsPutBack: a server that starts with a clock that was put back tries at once what
// the former one had put off, for as long as that clock was ahead, and leaves alone what
// waits by a clock that was right.
func TestClockIsPutBack(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		back time.Duration
		due  bool
	}{{10 * time.Minute, true}, {10 * time.Hour, true}, {0, false}} {
		ctx, path := t.Context(), filepath.Join(t.TempDir(), "holdfast.db")
		store := openAt(t, datastore.Options{Path: path})
		run := claim(t, store, newRun(1))
		run.NotBefore = noon.Add(time.Minute)
		run = end(t, store, run, holdfast.RunRetrying)
		if err := store.Want(ctx, outgoing.Post{Key: "key", Kind: outgoing.PostIssue, Repo: "r", Body: "b"}); err != nil {
			t.Fatal(err)
		}
		if posts := claimPosts(t, store, noon); len(posts) != 1 {
			t.Fatalf("%d posts are to be posted", len(posts))
		}
		if err := store.PostFailed(ctx, failedPost("key", "away", 1), noon.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}

		now := noon.Add(time.Second - test.back)
		store = openAt(t, datastore.Options{Path: path, Now: func() time.Time { return now }})
		if posts := claimPosts(t, store, now); (len(posts) == 1) != test.due {
			t.Errorf("%s back: what is to be posted again is due: %+v", test.back, posts)
		}
		if got := must[[]string](t)(store.Claimable(ctx, holdfast.ClaimFilter{Now: now, Limit: 1})); (len(got) == 1) != test.due {
			t.Errorf("%s back: what is to be tried again is claimable: %+v", test.back, got)
		}
		if _, err := store.ClaimRun(ctx, run.ID, protocol.AgentRef{ID: "agent"}, now, 0); (err == nil) != test.due {
			t.Errorf("%s back: what is to be tried again is claimed: %v", test.back, err)
		}
	}
}

// TestClockIsSetBackWhileOpen: what has failed waits for as long as it was to, and no longer
// for as much as the clock was set back; first plans keep their pace.
func TestClockIsSetBackWhileOpen(t *testing.T) {
	t.Parallel()
	ctx, now := t.Context(), noon
	store := openAt(t, datastore.Options{Path: filepath.Join(t.TempDir(), "holdfast.db"), Now: func() time.Time { return now }})
	run := claim(t, store, newRun(1))
	run.NotBefore = noon.Add(time.Minute)
	run = end(t, store, run, holdfast.RunRetrying)
	if err := store.Want(ctx, outgoing.Post{Key: "key", Kind: outgoing.PostIssue, Repo: "r", Body: "b"}); err != nil {
		t.Fatal(err)
	}
	if posts := claimPosts(t, store, noon); len(posts) != 1 {
		t.Fatalf("%d posts are to be posted", len(posts))
	}
	if err := store.PostFailed(ctx, failedPost("key", "away", 1), noon.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	const back = 10 * time.Minute
	now = noon.Add(-back)
	if err := store.ClockSetBack(ctx, back); err != nil {
		t.Fatal(err)
	}
	for after, due := range map[time.Duration]bool{time.Minute - time.Second: false, time.Minute: true} {
		at := now.Add(after)
		if got := must[[]string](t)(store.Claimable(ctx, holdfast.ClaimFilter{Now: at, Limit: 1})); (len(got) == 1) != due {
			t.Errorf("%s after it, what is to be tried again is claimable: %v", after, got)
		}
	}
	if posts := claimPosts(t, store, now.Add(time.Minute-time.Second)); len(posts) != 0 {
		t.Errorf("what is to be posted again is due before its time: %+v", posts)
	}
	if posts := claimPosts(t, store, now.Add(time.Minute)); len(posts) != 1 {
		t.Errorf("when its time has come, due are %+v", posts)
	}
	_, lately, err := store.Served(ctx, now)
	if err != nil || len(lately) != 1 || !lately[0].Since.Equal(now) {
		t.Errorf("served lately were %+v, %v", lately, err)
	}
	if _, err := store.ClaimRun(ctx, run.ID, protocol.AgentRef{ID: "agent"}, now.Add(time.Minute), 0); err != nil {
		t.Errorf("when its time has come, ClaimRun() = %v", err)
	}
}
