package dispatch

import (
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// A cloud that throttles us, or is out of order, is given a break once runs of
// breakerClusters clusters have suffered from it within breakerWindow: none of
// its runs is handed out for Limits.Break, then one, whose end decides. Each
// break that follows the last one closely is twice as long, up to
// breakerLongest times the first one.
const (
	breakerWindow   = 5 * time.Minute
	breakerClusters = 3
	breakerPause    = time.Minute // where Limits.Break is zero
	breakerLongest  = 15
)

// verdict is what the end of an attempt tells about its cloud.
type verdict int

const (
	verdictNothing verdict = iota
	verdictWell            // it did what it was asked for
	verdictSick            // it throttled us, failed, or could not be reached
)

// verdictOf judges an attempt as it was recorded. A quota is an account's own
// matter, and passes for nobody by waiting; what goes wrong before the provider
// is asked is not the cloud's.
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

// breakers hold back the runs of clouds that need a break, one cloud apart from
// the other. They are in memory, of this replica; the others hear of what opens
// and closes. After a restart all are closed. Methods are safe for concurrent
// use.
type breakers struct {
	now   func() time.Time
	first time.Duration // of a first break

	mu sync.Mutex
	by map[string]*breaker
}

// breaker is that of one provider: closed while until is zero, open before it,
// and half open from then on.
type breaker struct {
	sick     map[string]time.Time // when an attempt last suffered, by cluster
	until    time.Time
	first    time.Duration // as in breakers
	pause    time.Duration // of the last break
	closedAt time.Time
	probe    string // the run that was let through to find out
	probedAt time.Time
}

func newBreakers(now func() time.Time, first time.Duration) *breakers {
	if first == 0 {
		first = breakerPause
	}
	return &breakers{now: now, first: first, by: make(map[string]*breaker)}
}

func (b *breakers) of(provider string) *breaker {
	one := b.by[provider]
	if one == nil {
		one = &breaker{first: b.first, sick: make(map[string]time.Time)}
		b.by[provider] = one
	}
	return one
}

// ended takes the end of an attempt in. It reports whether the breaker opened or
// closed with it, and until when it is open now; the zero time if it is closed.
func (b *breakers) ended(run holdfast.Run) (until time.Time, changed bool) {
	provider, v := run.Document.Provider, verdictOf(run)
	if provider == "" {
		return time.Time{}, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	one, now := b.by[provider], b.now()
	if one == nil && v != verdictSick {
		return time.Time{}, false // most providers are well for ever
	}
	one = b.of(provider)
	if one.probe == run.ID {
		one.probe = ""
	}
	switch {
	case v == verdictSick && one.until.IsZero():
		one.sick[run.Cluster] = now
		for cluster, at := range one.sick {
			if now.Sub(at) > breakerWindow {
				delete(one.sick, cluster)
			}
		}
		if len(one.sick) < breakerClusters {
			return time.Time{}, false
		}
		one.open(now)
		return one.until, true
	case v == verdictSick && !now.Before(one.until):
		one.open(now)
		return one.until, true
	case v == verdictWell && !one.until.IsZero() && !now.Before(one.until):
		one.close(now)
		return time.Time{}, true
	default:
		return one.until, false
	}
}

func (one *breaker) longest() time.Duration { return breakerLongest * one.first }

func (one *breaker) open(now time.Time) {
	recent := !one.until.IsZero() || now.Sub(one.closedAt) < one.longest()
	if recent && one.pause > 0 {
		one.pause = min(2*one.pause, one.longest())
	} else {
		one.pause = one.first
	}
	one.until, one.probe = now.Add(one.pause), ""
	clear(one.sick)
}

func (one *breaker) close(now time.Time) {
	one.until, one.closedAt, one.probe = time.Time{}, now, ""
	clear(one.sick)
}

// adopt takes over what another replica has found out; the zero time closes. It
// reports whether that is news.
func (b *breakers) adopt(provider string, until time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	one, now := b.of(provider), b.now()
	if most := now.Add(one.longest()); until.After(most) {
		until = most // by a clock that is wrong
	}
	switch {
	case until.IsZero() && !one.until.IsZero():
		one.close(now)
		return true
	case until.After(now) && until.After(one.until):
		one.until, one.probe = until, ""
		one.pause = min(max(until.Sub(now), one.first), one.longest())
		clear(one.sick)
		return true
	default:
		return false
	}
}

// admits reports whether a run may be handed out. Of a breaker that is half open
// it becomes the one that is let through, until it ends, is withdrawn, or takes
// longer than the last break.
func (b *breakers) admits(provider, run string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.by[provider]
	if one == nil || one.until.IsZero() {
		return true
	}
	now := b.now()
	if one.holds(now) && one.probe != run {
		return false
	}
	one.probe, one.probedAt = run, now
	return true
}

func (one *breaker) holds(now time.Time) bool {
	return now.Before(one.until) || one.probe != "" && now.Sub(one.probedAt) < one.pause
}

// withdraw takes back that a run was let through: it was not handed out.
func (b *breakers) withdraw(provider, run string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if one := b.by[provider]; one != nil && one.probe == run {
		one.probe = ""
	}
}

// held are the providers of which no run is handed out now.
func (b *breakers) held() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var names []string
	for name, one := range b.by {
		if !one.until.IsZero() && one.holds(b.now()) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// until is when the next run of a provider may be handed out; zero if now.
func (b *breakers) until(provider string) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.by[provider]
	switch now := b.now(); {
	case one == nil || one.until.IsZero() || !one.holds(now):
		return time.Time{}
	case now.Before(one.until):
		return one.until
	default: // one run is let through, and tells
		return one.probedAt.Add(one.pause)
	}
}
