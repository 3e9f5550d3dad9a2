package breaker_test

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/breaker"
)

// untroubled are breakers whose records have no trouble.
type untroubled struct{ b *breaker.Breakers }

func newUntroubled(store *records, now func() time.Time, first time.Duration) *untroubled {
	return &untroubled{breaker.New(store, now, first)}
}

// Look looks at the records, as a claim does.
func (b *untroubled) Look() map[string]time.Time {
	moved, err := b.b.Look(context.Background())
	noError(err)
	return moved
}

func (b *untroubled) Ended(run holdfast.Run) (time.Time, bool) {
	until, moved, err := b.b.Ended(context.Background(), run)
	noError(err)
	return until, moved
}

func (b *untroubled) Admits(provider, run string) bool {
	admitted, err := b.b.Admits(context.Background(), provider, run)
	noError(err)
	return admitted
}

func (b *untroubled) Withdraw(provider, run string) {
	noError(b.b.Withdraw(context.Background(), provider, run))
}

func (b *untroubled) Held() []string                  { return b.b.Held() }
func (b *untroubled) Until(provider string) time.Time { return b.b.Until(provider) }

func noError(err error) {
	if err != nil {
		panic(err) // the records below have none
	}
}

// records are in memory. The zero value is empty.
type records struct {
	mu sync.Mutex
	by map[string]holdfast.Breaker
}

func (r *records) Breakers(context.Context) (list []holdfast.Breaker, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.by {
		list = append(list, one)
	}
	return list, nil
}

func (r *records) ChangeBreaker(_ context.Context, provider string, change func(*holdfast.Breaker) bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	one, ok := r.by[provider]
	if !ok {
		one = holdfast.Breaker{Provider: provider}
	}
	one.Sick = maps.Clone(one.Sick) // as a record is
	if change(&one) {
		if r.by == nil {
			r.by = make(map[string]holdfast.Breaker)
		}
		r.by[provider] = one
	}
	return nil
}

func (b *untroubled) Adopt(provider string, until time.Time) bool {
	return b.b.Adopt(provider, until)
}
