package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"
)

// clock is the database's: the clocks of servers are not compared.
const clock = `(extract(epoch FROM clock_timestamp()) * 1000000000)::bigint`

// samples is how often the database is asked for the time at first: the quickest answer
// is the best one.
const samples = 3

// Clock shows the time of a database to within the duration of a query. Between questions it
// follows the monotonic clock of this machine, whose wall clock it never reads. It is safe
// for concurrent use.
type Clock struct {
	mu   sync.RWMutex
	at   time.Time // of the database
	base time.Time // the same moment here, with the monotonic clock
}

// Now is the time of the database.
func (c *Clock) Now() time.Time {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.then(time.Now())
}

// then is the time of the database at a moment of this process. Guarded by mu.
func (c *Clock) then(here time.Time) time.Time { return c.at.Add(here.Sub(c.base)) }

// set records that the database had a time between two moments here. A clock that agrees
// with that stays as it is.
func (c *Clock) set(at, before, after time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.base.IsZero() && !c.then(before).After(at) && !c.then(after).Before(at) {
		return
	}
	c.at, c.base = at.UTC(), before.Add(after.Sub(before)/2)
}

// ask reads the time for the first time.
func (c *Clock) ask(ctx context.Context, pool *sql.DB) error {
	best := time.Duration(-1)
	for range samples {
		var at int64
		before := time.Now()
		err := pool.QueryRowContext(ctx, `SELECT `+clock).Scan(&at)
		after := time.Now()
		if err != nil {
			return fmt.Errorf("ask for the time: %w", err)
		}
		if took := after.Sub(before); best < 0 || took < best {
			best = took
			c.mu.Lock()
			c.at, c.base = time.Unix(0, at).UTC(), before.Add(took/2)
			c.mu.Unlock()
		}
	}
	return nil
}
