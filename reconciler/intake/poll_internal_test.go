package intake

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// leasing answers who asks for a lease: with an error until it has been asked so often.
type leasing struct {
	Store
	fails int
	asked int
	done  context.CancelFunc
}

func (l *leasing) Lease(context.Context, string, string, time.Time, time.Duration) (bool, error) {
	if l.asked++; l.asked <= l.fails {
		return false, errors.New("disk is full")
	}
	if l.asked > l.fails+3 {
		l.done()
	}
	return false, nil // another replica polls
}

// What keeps a repository from being polled is not logged with each poll, but once, and once
// when it is over.
func TestALastingFaultOfPollsIsLoggedOnce(t *testing.T) {
	t.Parallel()
	ctx, done := context.WithCancel(t.Context())
	defer done()
	var logged bytes.Buffer
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	p := &poller{shared: shared{opts: Options{
		Store: &leasing{fails: 50, done: done}, Logger: slog.New(slog.NewTextHandler(&logged, nil)),
		Now: func() time.Time { return at },
	}}}
	p.pollRepository(ctx, Repository{Name: "fleet", Poll: time.Microsecond})
	for text, want := range map[string]int{"repository was not polled": 1, "disk is full": 1, "repository is polled again": 1} {
		if n := strings.Count(logged.String(), text); n != want {
			t.Errorf("%q is logged %d times, want %d", text, n, want)
		}
	}
}
