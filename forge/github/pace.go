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

// GitHub asks for writes one after the other, a second apart, and takes 80 in a
// minute. So a burst is sent at once, and what follows a second apart: within any
// minute that is 80.
const (
	writeBurst    = 20
	writeInterval = time.Second
	// paceWait is how long a write waits for its turn; after that it is put off.
	paceWait = 12 * time.Second
)

// pace lets the writes of one credential through: one at a time, and no faster
// than GitHub takes them. Usual work does not notice.
type pace struct {
	now   func() time.Time
	sleep func(ctx context.Context, d time.Duration) error
	turn  chan struct{}
	wait  time.Duration // for a turn

	mu sync.Mutex
	// full is when the burst is there again in full.
	full time.Time
}

func newPace(now func() time.Time) *pace {
	return &pace{now: now, sleep: sleep, turn: make(chan struct{}, 1), wait: paceWait}
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
		return nil, late(writeInterval)
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
	p.full = p.full.Add(writeInterval)
	return p.full.Sub(now) - writeBurst*writeInterval
}

func (p *pace) giveBack() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.full = p.full.Add(-writeInterval)
}

// refused makes the writes after a refusal come a second apart: there is no burst
// when GitHub listens again.
func (p *pace) refused(pause time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if full := p.now().Add(pause + (writeBurst-1)*writeInterval); full.After(p.full) {
		p.full = full
	}
}
