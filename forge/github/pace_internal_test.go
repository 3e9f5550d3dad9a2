package github

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

const writeBurst = 20 // of WritesPerMinute

// fakePace is a pace whose time passes by waiting for it alone.
func fakePace() (p *pace, now func() time.Time) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	p = newPace(WritesPerMinute, time.Now)
	p.now = func() time.Time { return at }
	p.sleep = func(ctx context.Context, d time.Duration) error {
		at = at.Add(d)
		return ctx.Err()
	}
	return p, p.now
}

func TestPaceLetsABurstThrough(t *testing.T) {
	t.Parallel()
	p, now := fakePace()
	start := now()
	var times []time.Time
	for range 300 {
		done, err := p.begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, now())
		done()
	}
	if took := times[writeBurst-1].Sub(start); took != 0 {
		t.Errorf("a burst of %d took %s, want nothing", writeBurst, took)
	}
	for i, at := range times {
		n := 0
		for _, other := range times[i:] {
			if other.Sub(at) < time.Minute {
				n++
			}
		}
		if n > 80 {
			t.Fatalf("%d writes within a minute after the %d. one, want at most 80", n, i)
		}
	}
	if took := times[299].Sub(start); took != (300-writeBurst)*time.Second {
		t.Errorf("300 writes took %s", took)
	}
}

// Another number of writes is another distance between them, and another burst.
func TestPaceOfAnotherHost(t *testing.T) {
	t.Parallel()
	// Of twenty a minute five are sent at once, and the others 4 s apart.
	for perMinute, want := range map[int]time.Duration{20: 145 * 4 * time.Second, 600: 0, 60_000: 0} {
		at := time.Now()
		p := newPace(perMinute, func() time.Time { return at })
		p.sleep = func(_ context.Context, d time.Duration) error {
			at = at.Add(d)
			return nil
		}
		start := at
		for range 150 {
			done, err := p.begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			done()
		}
		if took := at.Sub(start); took != want {
			t.Errorf("150 writes, %d a minute, took %s, want %s", perMinute, took, want)
		}
	}
}

func TestPaceAfterARefusal(t *testing.T) {
	t.Parallel()
	p, now := fakePace()
	p.refused(time.Minute)
	if err := p.sleep(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	start := now()
	for range 10 {
		done, err := p.begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		done()
	}
	if took := now().Sub(start); took != 9*time.Second {
		t.Errorf("10 writes after a pause took %s, want a second between them", took)
	}
}

// A write that hangs does not take the others with it: they are put off.
func TestPaceDoesNotWaitForever(t *testing.T) {
	t.Parallel()
	p := newPace(WritesPerMinute, time.Now)
	done, err := p.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.begin(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("given up by the caller: %v", err)
	}
	p.wait = time.Millisecond
	_, err = p.begin(t.Context())
	if limited := (*holdfast.RateLimitError)(nil); !errors.As(err, &limited) {
		t.Errorf("behind one that hangs: %v", err)
	}
}
