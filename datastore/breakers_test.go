package datastore_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// testBreakers: a breaker is on record as it was last made, and what many make of it at once is
// all in it.
func testBreakers(t *testing.T, open opener) {
	store, ctx := open(t), t.Context()
	if got := must[[]holdfast.Breaker](t)(store.Breakers(ctx)); len(got) > 0 {
		t.Errorf("Breakers() = %+v of none", got)
	}
	unchanged := store.ChangeBreaker(ctx, "aws", func(b *holdfast.Breaker) bool {
		if b.Provider != "aws" || len(b.Sick) > 0 {
			t.Errorf("a new one is %+v", b)
		}
		b.Pause = time.Hour
		return false
	})
	if got := must[[]holdfast.Breaker](t)(store.Breakers(ctx)); unchanged != nil || len(got) > 0 {
		t.Errorf("ChangeBreaker() without a change = %v, and then there is %+v", unchanged, got)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			err := store.ChangeBreaker(ctx, "aws", func(b *holdfast.Breaker) bool {
				if b.Sick == nil {
					b.Sick = make(map[string]time.Time)
				}
				b.Sick[fmt.Sprint("c-", i)] = noon
				return true
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	want := holdfast.Breaker{Provider: "google", Until: noon.Add(time.Minute), Pause: time.Minute, ClosedAt: noon, Probe: "run-1", ProbedAt: noon}
	err := store.ChangeBreaker(ctx, "google", func(b *holdfast.Breaker) bool { *b = want; return true })
	got := must[[]holdfast.Breaker](t)(store.Breakers(ctx))
	if err != nil || len(got) != 2 || len(got[0].Sick) != 8 || !same(got[1], want) {
		t.Errorf("Breakers() = %+v, %v", got, err)
	}
}
