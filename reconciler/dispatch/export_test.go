package dispatch

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Breakers are the breakers of a fleet, for their own tests.
type Breakers struct{ b *breakers }

// NewBreakers returns the breakers of a replica, whose first break lasts that long.
func NewBreakers(records *BreakerRecords, now func() time.Time, first time.Duration) *Breakers {
	return &Breakers{newBreakers(records, now, first)}
}

// Look looks at the records, as a claim does.
func (b *Breakers) Look() map[string]time.Time {
	moved, err := b.b.look(context.Background())
	noError(err)
	return moved
}

func (b *Breakers) Ended(run holdfast.Run) (time.Time, bool) {
	until, moved, err := b.b.ended(context.Background(), run)
	noError(err)
	return until, moved
}

func (b *Breakers) Admits(provider, run string) bool {
	admitted, err := b.b.admits(context.Background(), provider, run)
	noError(err)
	return admitted
}

func (b *Breakers) Withdraw(provider, run string) {
	noError(b.b.withdraw(context.Background(), provider, run))
}

func (b *Breakers) Held() []string                  { return b.b.held() }
func (b *Breakers) Until(provider string) time.Time { return b.b.until(provider) }

func noError(err error) {
	if err != nil {
		panic(err) // the records below have none
	}
}

// BreakerRecords are records in memory. The zero value is empty.
type BreakerRecords struct {
	mu sync.Mutex
	by map[string]holdfast.Breaker
}

func (r *BreakerRecords) Breakers(context.Context) (list []holdfast.Breaker, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.by {
		list = append(list, one)
	}
	return list, nil
}

func (r *BreakerRecords) ChangeBreaker(_ context.Context, provider string, change func(*holdfast.Breaker) bool) error {
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

func (b *Breakers) Adopt(provider string, until time.Time) bool {
	return b.b.adopt(provider, until)
}

// Checked is what is taken of a result that an agent has sent.
func Checked(run holdfast.Run, result holdfast.Result) (holdfast.Result, string) {
	return checked(run, result)
}
