package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
)

// A cloud that throttles us, or is out of order, is given a break once runs of
// breakerClusters clusters have suffered from it within breakerWindow: none of
// its runs is handed out for breakerPause, then one, whose end decides. Each
// break that follows the last one closely is twice as long, up to
// breakerPauseMax.
const (
	breakerWindow   = 5 * time.Minute
	breakerClusters = 3
	breakerPause    = time.Minute
	breakerPauseMax = 15 * time.Minute
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
	case "Throttled", "ServiceUnavailable", "Network":
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
	now func() time.Time

	mu sync.Mutex
	by map[string]*breaker
}

// breaker is that of one provider: closed while until is zero, open before it,
// and half open from then on.
type breaker struct {
	sick     map[string]time.Time // when an attempt last suffered, by cluster
	until    time.Time
	pause    time.Duration // of the last break
	closedAt time.Time
	probe    string // the run that was let through to find out
	probedAt time.Time
}

func newBreakers(now func() time.Time) *breakers {
	return &breakers{now: now, by: make(map[string]*breaker)}
}

func (b *breakers) of(provider string) *breaker {
	one := b.by[provider]
	if one == nil {
		one = &breaker{sick: make(map[string]time.Time)}
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

func (one *breaker) open(now time.Time) {
	recent := !one.until.IsZero() || now.Sub(one.closedAt) < breakerPauseMax
	if recent && one.pause > 0 {
		one.pause = min(2*one.pause, breakerPauseMax)
	} else {
		one.pause = breakerPause
	}
	one.until, one.probe = now.Add(one.pause), ""
	clear(one.sick)
}

func (one *breaker) close(now time.Time) {
	one.until, one.closedAt, one.probe = time.Time{}, now, ""
	clear(one.sick)
}

// told takes over what another replica has found out; the zero time closes. It
// reports whether that is news.
func (b *breakers) told(provider string, until time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	one, now := b.of(provider), b.now()
	if most := now.Add(breakerPauseMax); until.After(most) {
		until = most // by a clock that is wrong
	}
	switch {
	case until.IsZero() && !one.until.IsZero():
		one.close(now)
		return true
	case until.After(now) && until.After(one.until):
		one.until, one.probe = until, ""
		one.pause = min(max(until.Sub(now), breakerPause), breakerPauseMax)
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

// heardOf lets the end of an attempt bear on the breaker of its cloud, and tells
// everybody whom that concerns.
func (r *Reconciler) heardOf(ctx context.Context, run holdfast.Run) {
	until, changed := r.breakers.ended(run)
	if !changed {
		return
	}
	provider := run.Document.Provider
	r.opts.Metrics.ProviderHeld(provider, until)
	if until.IsZero() {
		r.opts.Logger.InfoContext(ctx, "provider is well again", "provider", provider, "run", run.ID)
	} else {
		r.opts.Logger.WarnContext(ctx, "provider is given a break", "provider", provider, "until", until.UTC(),
			"run", run.ID, "reason", run.Failure.Cause)
	}
	r.wake(ctx, topicProvider+providerWord(provider, until))
	if err := r.showHeld(ctx, provider); err != nil {
		r.opts.Logger.WarnContext(ctx, "runs that wait for a provider were not shown", "provider", provider, "err", err)
	}
}

// providerWord is what toldOf understands.
func providerWord(provider string, until time.Time) string {
	if until.IsZero() {
		return provider + ":0"
	}
	return provider + ":" + strconv.FormatInt(until.UnixNano(), 10)
}

// toldOf is heardOf by another replica's word: "NAME:NANOSECONDS", zero for a
// provider that is well.
func (r *Reconciler) toldOf(word string) {
	i := strings.LastIndexByte(word, ':')
	if i <= 0 {
		return
	}
	nanos, err := strconv.ParseInt(word[i+1:], 10, 64)
	if err != nil {
		return
	}
	until := time.Time{}
	if nanos > 0 {
		until = time.Unix(0, nanos)
	}
	if r.breakers.told(word[:i], until) {
		r.opts.Metrics.ProviderHeld(word[:i], until)
	}
	if until.IsZero() {
		r.work.Send()
	}
}

// showHeld asks for everything again that shows runs of a provider which wait.
func (r *Reconciler) showHeld(ctx context.Context, provider string) error {
	waiting, err := r.opts.Store.Runs(ctx, holdfast.RunFilter{
		Statuses: []holdfast.RunStatus{holdfast.RunQueued, holdfast.RunRetrying}, Limit: 10_000,
	})
	if err != nil {
		return fmt.Errorf("list queued runs: %w", err)
	}
	for _, run := range waiting {
		switch {
		case run.Document.Provider != provider:
		case run.PullRequest.IsZero():
			r.requests.Add(holdfast.Request{Cluster: run.Cluster})
		default:
			r.publish.Show(run.PullRequest)
		}
	}
	return nil
}

// claimFilter says which runs may be handed out now: not those of providers that
// need a break or have as many runs as they may, and no more checks for drift
// than there may be. It is false if there can be none.
func (r *Reconciler) claimFilter(ctx context.Context, kinds []holdfast.RunKind) (holdfast.ClaimFilter, bool, error) {
	running, drift, err := r.opts.Store.RunningBy(ctx)
	if err != nil {
		return holdfast.ClaimFilter{}, false, fmt.Errorf("count running runs: %w", err)
	}
	filter := holdfast.ClaimFilter{
		Now: r.opts.Now(), Kinds: kinds, Providers: r.breakers.held(), Limit: claimableLooked,
	}
	for provider, most := range r.opts.MaxProvider {
		if running[provider] >= most && !slices.Contains(filter.Providers, provider) {
			filter.Providers = append(filter.Providers, provider)
		}
	}
	slices.Sort(filter.Providers)
	if drift < r.opts.MaxDrift {
		return filter, true, nil
	}
	if len(kinds) == 0 {
		kinds = []holdfast.RunKind{holdfast.RunPlan, holdfast.RunApply, holdfast.RunDestroy}
	}
	filter.Kinds = slices.DeleteFunc(slices.Clone(kinds), func(k holdfast.RunKind) bool { return k == holdfast.RunDrift })
	return filter, len(filter.Kinds) > 0, nil
}

// capLease bounds for how long a claim that dies keeps others of its provider
// waiting.
const capLease = 5 * time.Second

// withinCap calls claim while the provider of run has fewer runs than it may, or,
// for a check for drift, fewer of those run than may at once, and nobody else
// claims one of it; else it is an ErrConflict.
func (r *Reconciler) withinCap(ctx context.Context, run holdfast.Run, claim func() error) error {
	provider := run.Document.Provider
	most, capped := r.opts.MaxProvider[provider]
	capped = capped && provider != ""
	check := run.Kind == holdfast.RunDrift
	var keys []string
	if capped {
		keys = append(keys, "provider:"+provider)
	}
	if check {
		keys = append(keys, "drift")
	}
	if len(keys) == 0 {
		return claim()
	}
	owner := holdfast.NewID("claim", r.opts.Now())
	for _, key := range keys {
		switch err := r.opts.Locker.Acquire(ctx, key, owner, capLease); {
		case errors.Is(err, holdfast.ErrLocked):
			return holdfast.ErrConflict
		case err != nil:
			return fmt.Errorf("lock %s: %w", key, err)
		}
		defer func() { _ = r.opts.Locker.Release(ctx, key, owner) }() // else its lease ends by itself
	}
	running, checks, err := r.opts.Store.RunningBy(ctx)
	if err != nil {
		return fmt.Errorf("count running runs: %w", err)
	}
	if capped && running[provider] >= most || check && checks >= r.opts.MaxDrift {
		return holdfast.ErrConflict
	}
	return claim()
}

// providerWait is why a queued run of a provider is not handed out; empty if it
// is not the provider that it waits for.
func (r *Reconciler) providerWait(ctx context.Context, provider string) (reason, detail string, err error) {
	if provider == "" {
		return "", "", nil
	}
	if until := r.breakers.until(provider); !until.IsZero() {
		return decision.ReasonProviderThrottled, decision.ThrottledText(provider, until), nil
	}
	most, capped := r.opts.MaxProvider[provider]
	if !capped {
		return "", "", nil
	}
	running, _, err := r.opts.Store.RunningBy(ctx)
	if err != nil {
		return "", "", fmt.Errorf("count running runs: %w", err)
	}
	if running[provider] < most {
		return "", "", nil
	}
	return decision.ReasonProviderCapped, fmt.Sprintf("%d of %d runs of %s are running", running[provider], most, provider), nil
}
