package breaker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// A cloud that throttles us, or is out of order, is given a break once runs of
// breakerClusters clusters have suffered from it within breakerWindow: none of
// its runs is handed out for the first break, then one, whose end decides. Each
// break that follows the last one closely is twice as long, up to
// breakerLongest times the first one.
const (
	breakerWindow   = 5 * time.Minute
	breakerClusters = 3
	breakerPause    = time.Minute // where the first break is given as zero
	breakerLongest  = 15
)

// verdict is what the end of an attempt tells about its cloud.
type verdict int

const (
	verdictNothing verdict = iota
	verdictWell            // it did what it was asked for
	verdictSick            // it throttled us, failed, or could not be reached
)

// verdictOf judges an attempt as it was recorded. A quota belongs to one account, and
// does not end by waiting; what goes wrong before the provider is asked is not the
// cloud's.
func verdictOf(run holdfast.Run) verdict {
	switch {
	case run.Status.Good():
		return verdictWell
	case run.Failure == nil || run.Failure.Step == "prepare" || run.Failure.Step == "init":
		return verdictNothing
	}
	switch run.Failure.Cause {
	case holdfast.CauseThrottled, holdfast.CauseServiceUnavailable, holdfast.CauseNetwork:
		return verdictSick
	default:
		return verdictNothing
	}
}

// pace is how long a first break is.
type pace time.Duration

func (p pace) longest() time.Duration { return breakerLongest * time.Duration(p) }

// A breaker is closed while Until is zero, open before it, and half open from then on.

// Ended applies the end of an attempt to a breaker. It is moved if it has opened or closed.
func (p pace) ended(one *holdfast.Breaker, run holdfast.Run, now time.Time) (changed, moved bool) {
	if one.Probe == run.ID {
		one.Probe, changed = "", true
	}
	switch v := verdictOf(run); {
	case v == verdictSick && one.Until.IsZero():
		if one.Sick == nil {
			one.Sick = make(map[string]time.Time)
		}
		one.Sick[run.Cluster] = now
		maps.DeleteFunc(one.Sick, func(_ string, at time.Time) bool { return now.Sub(at) > breakerWindow })
		if len(one.Sick) < breakerClusters {
			return true, false
		}
		p.open(one, now)
		return true, true
	case v == verdictSick && !now.Before(one.Until):
		p.open(one, now)
		return true, true
	case v == verdictWell && !one.Until.IsZero() && !now.Before(one.Until):
		one.Until, one.ClosedAt, one.Probe, one.Sick = time.Time{}, now, "", nil
		return true, true
	}
	return changed, false
}

func (p pace) open(one *holdfast.Breaker, now time.Time) {
	recent := !one.Until.IsZero() || now.Sub(one.ClosedAt) < p.longest()
	if recent && one.Pause > 0 {
		one.Pause = min(2*one.Pause, p.longest())
	} else {
		one.Pause = time.Duration(p)
	}
	one.Until, one.Probe, one.Sick = now.Add(one.Pause), "", nil
}

// bounded is a breaker that is open no longer than any may be: a clock may have been wrong.
func (p pace) bounded(one holdfast.Breaker, now time.Time) holdfast.Breaker {
	if most := now.Add(p.longest()); one.Until.After(most) {
		one.Until = most
	}
	return one
}

// holds reports whether no run is handed out, but the one that was let through.
func holds(one holdfast.Breaker, now time.Time) bool {
	return now.Before(one.Until) || !one.Until.IsZero() && one.Probe != "" && now.Sub(one.ProbedAt) < one.Pause
}

// Store is the records of providers that need a break, or have had one.
type Store interface {
	Breakers(ctx context.Context) ([]holdfast.Breaker, error)
	// ChangeBreaker replaces the stored record by what change makes of it, while nobody
	// else does; false leaves it. It may call it more than once.
	ChangeBreaker(ctx context.Context, provider string, change func(*holdfast.Breaker) bool) error
}

// Breakers hold back the runs of clouds that need a break, one cloud apart from
// the other. The records decide, for all replicas; in memory is what was last seen of
// them, or heard of another replica. Methods are safe for concurrent use.
type Breakers struct {
	store Store
	now   func() time.Time
	pace  pace

	mu sync.Mutex
	by map[string]holdfast.Breaker
}

// New returns the breakers of a replica, whose first break lasts that long; zero means a minute.
func New(store Store, now func() time.Time, first time.Duration) *Breakers {
	return &Breakers{store: store, now: now, pace: pace(cmp.Or(first, breakerPause)), by: make(map[string]holdfast.Breaker)}
}

// Look reads the records. It returns the breaks that have begun since the last look, by
// provider, and those that are over, with the zero time.
func (b *Breakers) Look(ctx context.Context) (moved map[string]time.Time, err error) {
	list, err := b.store.Breakers(ctx)
	if err != nil {
		return nil, fmt.Errorf("read breakers: %w", err)
	}
	for _, one := range list {
		if b.pace.bounded(one, b.now()).Until.Equal(one.Until) {
			continue
		}
		// Each look would find it as far away as ever.
		err := b.change(ctx, one.Provider, func(*holdfast.Breaker, time.Time) bool { return true })
		if err != nil {
			return nil, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	was, now := b.by, b.now()
	b.by, moved = make(map[string]holdfast.Breaker, len(list)), make(map[string]time.Time)
	for _, one := range list {
		one = b.pace.bounded(one, now)
		b.by[one.Provider] = one
		if before := was[one.Provider].Until; !one.Until.Equal(before) {
			moved[one.Provider] = one.Until
		}
	}
	for provider, one := range was {
		if _, still := b.by[provider]; !still && !one.Until.IsZero() {
			moved[provider] = time.Time{}
		}
	}
	return moved, nil
}

// seen is a breaker as it was last seen; the zero value if none is on record.
func (b *Breakers) seen(provider string) holdfast.Breaker {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.by[provider]
}

// change changes a breaker in the records.
func (b *Breakers) change(ctx context.Context, provider string, change func(one *holdfast.Breaker, now time.Time) bool) error {
	var now holdfast.Breaker
	err := b.store.ChangeBreaker(ctx, provider, func(one *holdfast.Breaker) bool {
		at := b.now()
		*one = b.pace.bounded(*one, at)
		changed := change(one, at)
		now = *one
		return changed
	})
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.by[provider] = now
	return nil
}

// Ended records the end of an attempt. It reports whether the breaker opened or closed
// with it, and until when it is open now; the zero time if it is closed.
func (b *Breakers) Ended(ctx context.Context, run holdfast.Run) (until time.Time, moved bool, err error) {
	provider := run.Document.Provider
	if provider == "" {
		return time.Time{}, false, nil
	}
	if verdictOf(run) != verdictSick {
		if _, err := b.Look(ctx); err != nil {
			return time.Time{}, false, err
		}
		if one := b.seen(provider); one.Until.IsZero() { // most providers are well forever
			return time.Time{}, false, nil
		}
	}
	err = b.change(ctx, provider, func(one *holdfast.Breaker, now time.Time) (changed bool) {
		changed, moved = b.pace.ended(one, run, now)
		until = one.Until
		return changed
	})
	return until, moved && err == nil, err
}

// Adopt takes over what another replica says, until the records are looked at next; the zero
// time closes. It reports whether that is news.
func (b *Breakers) Adopt(provider string, until time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	one, now := b.by[provider], b.now()
	switch {
	case until.IsZero() && !one.Until.IsZero():
		one = holdfast.Breaker{Provider: provider, ClosedAt: now, Pause: one.Pause}
	case until.After(now) && until.After(one.Until):
		one.Provider, one.Until, one.Probe, one.Sick = provider, until, "", nil
		one = b.pace.bounded(one, now)
		one.Pause = min(max(one.Until.Sub(now), time.Duration(b.pace)), b.pace.longest())
	default:
		return false
	}
	b.by[provider] = one
	return true
}

// Admits reports whether a run may be handed out. With a breaker that is half open it
// becomes the one that is let through, until it ends, is withdrawn, or takes longer
// than the last break. A breaker that was closed when the queue was looked at is not
// asked for again.
func (b *Breakers) Admits(ctx context.Context, provider, run string) (admitted bool, err error) {
	switch one := b.seen(provider); {
	case one.Until.IsZero():
		return true, nil
	case b.now().Before(one.Until):
		return false, nil
	}
	err = b.change(ctx, provider, func(one *holdfast.Breaker, now time.Time) (changed bool) {
		if admitted = one.Until.IsZero(); admitted {
			return false
		}
		if admitted = !holds(*one, now) || !now.Before(one.Until) && one.Probe == run; admitted {
			one.Probe, one.ProbedAt = run, now
		}
		return admitted
	})
	return admitted && err == nil, err
}

// Withdraw takes back that a run was let through: it was not handed out.
func (b *Breakers) Withdraw(ctx context.Context, provider, run string) error {
	if b.seen(provider).Probe != run {
		return nil
	}
	return b.change(context.WithoutCancel(ctx), provider, func(one *holdfast.Breaker, _ time.Time) bool {
		if one.Probe != run {
			return false
		}
		one.Probe = ""
		return true
	})
}

// Held are the providers of which no run is handed out now.
func (b *Breakers) Held() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var names []string
	for name, one := range b.by {
		if holds(one, b.now()) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Until is when the next run of a provider may be handed out; zero if now.
func (b *Breakers) Until(provider string) time.Time {
	one, now := b.seen(provider), b.now()
	switch {
	case !holds(one, now):
		return time.Time{}
	case now.Before(one.Until):
		return one.Until
	default: // one run is let through, and tells
		return one.ProbedAt.Add(one.Pause)
	}
}
