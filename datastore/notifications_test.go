package datastore_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/outgoing"
)

// testNotifications: each notification is handed out once, by many at once, too, the oldest
// first; what has failed waits with all that is for the same channel, until it is given up.
func testNotifications(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	of := func(channel string, n int) outgoing.Notification {
		return outgoing.Notification{
			ID: fmt.Sprintf("%s/%04d", channel, n), Channel: channel, Event: outgoing.NotifyApplied, Cluster: "prod-eu", Title: "applied", At: noon,
		}
	}
	for _, want := range []int{2, 0} { // the same again is nothing new
		if got := must[int](t)(store.Notify(ctx, 0, of("ops", 1), of("ops", 2))); got != want {
			t.Errorf("Notify() = %d, want %d", got, want)
		}
	}
	must[int](t)(store.Notify(ctx, time.Hour, of("ops", 3))) // not due yet
	var mu sync.Mutex
	var claimed []outgoing.Notification
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			got, err := store.ClaimNotifications(ctx, "ops", time.Minute, 10)
			mu.Lock()
			defer mu.Unlock()
			claimed = append(claimed, got...)
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(claimed) != 2 || claimed[0] != of("ops", 1) || claimed[1] != of("ops", 2) {
		t.Fatalf("%d notifications were claimed by all: %+v", len(claimed), claimed)
	}
	if err := store.NotificationsSent(ctx, claimed[0].ID); err != nil {
		t.Fatal(err)
	}
	waiting, givenUp, err := store.NotificationsFailed(ctx, "ops", "it answered 404", noon, time.Hour, claimed[1].ID)
	if waiting != 2 || givenUp != 0 || err != nil {
		t.Errorf("NotificationsFailed() = %d, %d, %v; two wait", waiting, givenUp, err)
	}
	if got := must[[]outgoing.Notification](t)(store.ClaimNotifications(ctx, "ops", time.Minute, 10)); len(got) != 2 || got[0].ID != "ops/0002" {
		t.Errorf("%+v is claimed after a failure: that which failed, and that which was to wait", got)
	}
	if waiting, givenUp, err := store.NotificationsFailed(ctx, "ops", "it answered 404", noon, 0, "ops/0002", "ops/0003"); waiting != 0 || givenUp != 2 || err != nil {
		t.Errorf("NotificationsFailed() = %d, %d, %v without patience", waiting, givenUp, err)
	}
	testFailedNotifications(t, store, of)
	for n := range 1003 {
		if _, err := store.Notify(ctx, 0, of("crowded", n)); err != nil {
			t.Fatal(err)
		}
	}
	if got := must[[]outgoing.Notification](t)(store.ClaimNotifications(ctx, "crowded", time.Minute, 2000)); len(got) != 1000 || got[0].ID != "crowded/0003" {
		t.Errorf("%d notifications wait, want the newest 1,000", len(got))
	}
	if err := errors.Join(store.ForgetNotifications(ctx, noon), store.ForgetNotifications(ctx, noon.Add(time.Second))); err != nil {
		t.Error(err)
	}
	if got := must[int](t)(store.Notify(ctx, 0, of("ops", 1))); got != 1 {
		t.Errorf("what is forgotten is not new")
	}
}

// testFailedNotifications: a failure puts off what waits for its channel, and what is new in
// the meantime, but not what somebody else is sending.
func testFailedNotifications(t *testing.T, store *datastore.Store, of func(channel string, n int) outgoing.Notification) {
	t.Helper()
	ctx := t.Context()
	claim := func() (ids []string) {
		t.Helper()
		got, err := store.ClaimNotifications(ctx, "two", time.Minute, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range got {
			ids = append(ids, n.ID)
		}
		return ids
	}
	must[int](t)(store.Notify(ctx, 0, of("two", 1), of("two", 2)))
	others, own := claim(), claim()
	waiting, givenUp, err := store.NotificationsFailed(ctx, "two", "it answered 429", noon.Add(time.Minute), time.Hour, own...)
	if waiting != 1 || givenUp != 0 || err != nil || len(claim()) != 0 {
		t.Errorf("NotificationsFailed() = %d, %d, %v; %q are claimed by others", waiting, givenUp, err, others)
	}
	if must[int](t)(store.Notify(ctx, 0, of("two", 3))); len(claim()) != 0 {
		t.Error("what is new is not put off with what waits")
	}
	if _, _, err := store.NotificationsFailed(ctx, "two", "it answered 429", noon, time.Hour, append(own, others...)...); err != nil || len(claim()) != 1 {
		t.Errorf("nothing is due after the pause: %v", err)
	}
}
