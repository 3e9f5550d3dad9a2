package dispatch

import (
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Breakers are the breakers of a fleet, for their own tests.
type Breakers struct{ b *breakers }

// NewBreakers returns closed breakers, whose first break lasts that long.
func NewBreakers(now func() time.Time, first time.Duration) *Breakers {
	return &Breakers{newBreakers(now, first)}
}

func (b *Breakers) Ended(run holdfast.Run) (time.Time, bool) { return b.b.ended(run) }
func (b *Breakers) Admits(provider, run string) bool         { return b.b.admits(provider, run) }
func (b *Breakers) Withdraw(provider, run string)            { b.b.withdraw(provider, run) }
func (b *Breakers) Held() []string                           { return b.b.held() }
func (b *Breakers) Until(provider string) time.Time          { return b.b.until(provider) }
func (b *Breakers) Adopt(provider string, until time.Time) bool {
	return b.b.adopt(provider, until)
}

// Checked is what is taken of a result that an agent has sent.
func Checked(run holdfast.Run, result holdfast.Result) (holdfast.Result, string) {
	return checked(run, result)
}
