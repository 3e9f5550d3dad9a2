package reconciler

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Breakers are the breakers of a fleet, for their own tests.
type Breakers struct{ b *breakers }

// NewBreakers returns closed breakers.
func NewBreakers(now func() time.Time) *Breakers { return &Breakers{newBreakers(now)} }

func (b *Breakers) Ended(run holdfast.Run) (time.Time, bool) { return b.b.ended(run) }
func (b *Breakers) Admits(provider, run string) bool         { return b.b.admits(provider, run) }
func (b *Breakers) Withdraw(provider, run string)            { b.b.withdraw(provider, run) }
func (b *Breakers) Held() []string                           { return b.b.held() }
func (b *Breakers) Until(provider string) time.Time          { return b.b.until(provider) }
func (b *Breakers) Told(provider string, until time.Time) bool {
	return b.b.told(provider, until)
}

// Woken is what another replica's word does.
func (r *Reconciler) Woken(topic string) { r.woken(topic) }

// TakeInventory records what a run has found in the state.
func (r *Reconciler) TakeInventory(ctx context.Context, run holdfast.Run) { r.takeInventory(ctx, run) }

// HeardOf lets the end of an attempt bear on the breaker of its cloud.
func (r *Reconciler) HeardOf(ctx context.Context, run holdfast.Run) { r.heardOf(ctx, run) }
