package datastore_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/internal/testenv/postgresserver"
	"github.com/holdfast-dev/holdfast/outgoing"
)

// TestReplicasWithWrongClocks: the time of servers that share a database is the database's. What
// one of them has leased or claimed stays its own, whatever the clocks of the others show.
func TestReplicasWithWrongClocks(t *testing.T) {
	t.Parallel()
	d, ctx := postgresserver.New(t, emptyPostgres(t)), t.Context()
	right := must[*datastore.Store](t)(openOptions(t, asReplica(t, d, "right")))
	for name, off := range map[string]time.Duration{"ahead": 10 * time.Minute, "behind": -10 * time.Minute} {
		opts := asReplica(t, d, name)
		opts.Keys = testKeys(t, 'k')
		// Times of callers are those of the store that they call.
		opts.Now = func() time.Time { return noon.Add(off) }
		wrong := must[*datastore.Store](t)(datastore.Open(ctx, opts))
		t.Cleanup(func() { _ = wrong.Close() })

		if !must[bool](t)(right.Lease(ctx, name, "right", noon, time.Minute)) {
			t.Fatal("nobody held it")
		}
		if must[bool](t)(wrong.Lease(ctx, name, "wrong", wrong.Now(), time.Minute)) {
			t.Errorf("a server whose clock is %s has taken a lease that is held", name)
		}
		if !must[bool](t)(right.Lease(ctx, name, "right", noon, 0)) {
			t.Error("it was not given back")
		}
		if !must[bool](t)(wrong.Lease(ctx, name, "wrong", wrong.Now(), time.Minute)) {
			t.Errorf("a server whose clock is %s has not got a lease that is free", name)
		}
		if must[bool](t)(right.Lease(ctx, name, "right", noon, time.Minute)) {
			t.Errorf("a lease of a server whose clock is %s does not hold", name)
		}

		if err := right.Want(ctx, outgoing.Post{Key: name, Kind: outgoing.PostIssue, Repo: "r", Body: "b"}); err != nil {
			t.Fatal(err)
		}
		if n := len(must[[]outgoing.Post](t)(right.ClaimPosts(ctx, "right", noon, time.Minute, 1))); n != 1 {
			t.Fatalf("%d posts were claimed", n)
		}
		if n := len(must[[]outgoing.Post](t)(wrong.ClaimPosts(ctx, "wrong", wrong.Now(), time.Minute, 1))); n != 0 {
			t.Errorf("a server whose clock is %s has claimed what is claimed", name)
		}
	}
}

// TestTimeOfTheDatabase: without a clock of its own a store shows the database's.
func TestTimeOfTheDatabase(t *testing.T) {
	t.Parallel()
	opts := onPostgres(t)
	opts.Keys = testKeys(t, 'k')
	store := must[*datastore.Store](t)(datastore.Open(t.Context(), opts))
	t.Cleanup(func() { _ = store.Close() })
	before := time.Now()
	at := store.Now()
	if after := time.Now(); at.Before(before.Add(-time.Second)) || at.After(after.Add(time.Second)) {
		t.Errorf("Now() = %s, between %s and %s of a database on this machine", at, before, after)
	}
}
