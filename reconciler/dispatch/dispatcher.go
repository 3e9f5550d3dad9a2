package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/breaker"
	"github.com/holdfast-dev/holdfast/reconciler/decision"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

// Options are what a Dispatcher needs. All are required unless noted.
type Options struct {
	Store  Store
	Locker Locker
	Fleet  Fleet
	// TokenKey makes the attempts' credentials: at least 32 bytes, the same in
	// all replicas.
	TokenKey []byte
	Limits   Limits

	Metrics Metrics          // nil measures nothing
	Logger  *slog.Logger     // nil discards
	Now     func() time.Time // nil means time.Now
}

// Limits bound runs. None has its own default: the reconciler's apply.
type Limits struct {
	Runs     int            // at once in the fleet
	Drift    int            // drift checks at once
	Provider map[string]int // at once by provider; one that is not named has no limit of its own
	Project  int            // at once of each project; zero: all but one of Runs, if there are several projects and Runs is at least 3
	First    int            // first plans of clusters an hour, one after the other at equal intervals; zero: any number
	// Repositories are those for clusters alone. With others, each is limited as projects
	// are, if Project is zero.
	Repositories []string
	Timeout      time.Duration // of a run: its engine is interrupted then
	Lease        time.Duration // how long a silent attempt is believed in
	Retries      int           // of an attempt that failed for a transient cause; negative means none
	RetryDelay   time.Duration // before the first retry; doubles with each
	Lock         decision.LockWait
	Isolation    []string      // modes of which agents must have one to get runs, strong ones first; empty: any, or none
	Break        time.Duration // of a provider that throttles; doubles up to 15 times; zero means a minute
}

// Dispatcher hands out runs. Its methods are safe for concurrent use.
type Dispatcher struct {
	opts     Options
	work     *queue.Broadcast // a run may be claimable; claims wait at counters
	counters counters
	turns    turns
	breakers *breaker.Breakers
	*agents       // some of its methods are the Dispatcher's
	waiting  bool // queued runs may say that no agent executes them; the sweep's own
	idle     bool // another replica handled silent attempts; the sweep's own

	renewals *renewals
	signs    *signs
	results  results
	shares   *shares
	places   places
	forks    *forks
	draining atomic.Bool // no run is handed out any longer
}

// New returns a Dispatcher, or an error that names what is missing.
func New(opts Options) (*Dispatcher, error) {
	switch {
	case opts.Store == nil:
		return nil, errors.New("dispatch: no store")
	case opts.Locker == nil:
		return nil, errors.New("dispatch: no locker")
	case opts.Fleet == nil:
		return nil, errors.New("dispatch: no fleet")
	case len(opts.TokenKey) < 32:
		return nil, errors.New("dispatch: a key of at least 32 bytes is needed")
	case opts.Limits.Runs <= 0 || opts.Limits.Lease <= 0:
		return nil, errors.New("dispatch: limits of runs and lease are needed")
	}
	if opts.Metrics == nil {
		opts.Metrics = noMetrics{}
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	d := &Dispatcher{
		opts: opts, work: queue.NewBroadcast(), breakers: breaker.New(opts.Store, opts.Now, opts.Limits.Break),
		counters: counters{by: make(map[string]*counter), given: given{by: make(map[string]int)}},
		agents:   newAgents(opts.Now, opts.Limits.Isolation), waiting: true,
		renewals: &renewals{last: make(map[string]time.Time), since: make(map[string]time.Time)}, signs: &signs{beats: make(map[holdfast.AttemptRef]beat)}, results: newResults(opts.Store, opts.Logger, opts.Now),
		places: places{opts.Store},
		shares: &shares{store: opts.Store, limits: opts.Limits, now: opts.Now}, forks: newForks(opts.Fleet, opts.Logger),
	}
	d.results.pricer = opts.Fleet
	return d, nil
}

// Drain stops handing out runs, for a shutdown.
func (d *Dispatcher) Drain() { d.draining.Store(true) }

// Queued reports that a run was queued: agents that wait for one look again, at all
// replicas.
func (d *Dispatcher) Queued(ctx context.Context) { d.opts.Fleet.Wake(ctx, TopicWork) }

// Freed returns a channel that is closed when next a run was queued or has ended.
func (d *Dispatcher) Freed() <-chan struct{} { return d.work.Wait() }

type noMetrics struct{}

func (noMetrics) RunEnded(holdfast.RunKind, holdfast.RunStatus, holdfast.Reason) {}
func (noMetrics) RunClaimed(holdfast.RunKind, time.Duration)                     {}
func (noMetrics) LockRefused()                                                   {}
func (noMetrics) ProviderHeld(string, time.Time)                                 {}
