package github

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// WritesPerMinute is how many writes GitHub accepts in a minute. It asks for them one after
// the other, a second apart: so a quarter is sent at once, and what follows a second apart.
// GitHub Enterprise Server has such limits only if its administrators set some.
const WritesPerMinute = 80

// paceWait is how long a write waits for its turn; after that it is put off.
const paceWait = 12 * time.Second

// pace lets the writes of one credential through: one at a time, and no faster than
// GitHub accepts them. Usual work does not notice.
type pace struct {
	now   func() time.Time
	sleep func(ctx context.Context, d time.Duration) error
	turn  chan struct{}
	wait  time.Duration // for a turn
	burst time.Duration // what may be sent at once, as the time that it takes at the usual distance
	apart time.Duration // the usual distance

	mu sync.Mutex
	// full is when the burst is there again in full.
	full time.Time
}

// newPace returns a pace of that many writes in any minute.
func newPace(perMinute int, now func() time.Time) *pace {
	burst := max(1, perMinute/4)
	apart := time.Minute / time.Duration(max(1, perMinute-burst))
	return &pace{
		now: now, sleep: sleep, turn: make(chan struct{}, 1), wait: paceWait,
		burst: time.Duration(burst) * apart, apart: apart,
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// isWrite reports whether a call to the REST API at base, or to the GraphQL API next to it,
// changes something: that one we only ask.
func isWrite(req *http.Request, base *url.URL) bool {
	return req.Method != http.MethodGet && req.Method != http.MethodHead && req.URL.Path != graphQL(base).Path
}

// begin waits for the turn of a write, which lasts until done is called. A
// *holdfast.RateLimitError says that it is not before a later time.
func (p *pace) begin(ctx context.Context) (done func(), err error) {
	limit, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	late := func(d time.Duration) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return &holdfast.RateLimitError{RetryAt: p.now().Add(d), Wait: d, Err: errors.New("not asked: other writes come first")}
	}
	select {
	case p.turn <- struct{}{}:
	case <-limit.Done():
		return nil, late(p.apart)
	}
	wait := p.take()
	if wait > 0 {
		if err := p.sleep(limit, wait); err != nil {
			p.giveBack()
			<-p.turn
			return nil, late(wait)
		}
	}
	return func() { <-p.turn }, nil
}

// take takes one write and returns how long it has to wait.
func (p *pace) take() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.full.Before(now) {
		p.full = now
	}
	p.full = p.full.Add(p.apart)
	return p.full.Sub(now) - p.burst
}

func (p *pace) giveBack() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.full = p.full.Add(-p.apart)
}

// refused makes the writes after a refusal come one by one: there is no burst when GitHub
// accepts calls again.
func (p *pace) refused(pause time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if full := p.now().Add(pause + p.burst - p.apart); full.After(p.full) {
		p.full = full
	}
}
