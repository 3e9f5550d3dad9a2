package launch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

// Runners are the runners in force, and those that were until lately.
type Runners interface {
	// LaunchingRunners returns those of types that launch something for each run.
	LaunchingRunners(ctx context.Context) ([]Launching, error)
}

// Launching is a runner in force, or one that was until lately.
type Launching struct {
	runnerspec.Runner
	// Former are its documents that said another place, where something may be left.
	Former []runnerspec.Runner
	// Removed: it is no longer in force. What it has launched and is left is stopped, and
	// nothing else is done for it.
	Removed bool
}

// OpenFunc makes what starts the Jobs of a runner. Run is to be called in the background,
// and returns when its context is done; nil: there is nothing to do.
type OpenFunc func(ctx context.Context, runner runnerspec.Runner) (jobs Jobs, run func(context.Context) error, err error)

// PoolOptions are what a Pool needs. All are required unless noted.
type PoolOptions struct {
	Runners Runners
	Open    OpenFunc
	// Secrets names the current values of what a runner is reached by; with others it is
	// opened again. Nil: they never change.
	Secrets    func(ctx context.Context, runner runnerspec.Runner) (string, error)
	Dispatcher Dispatcher
	Runs       Runs
	Settings   Settings

	Logger *slog.Logger     // nil discards
	Now    func() time.Time // nil means time.Now
}

// Pool has a Launcher for each runner in force.
type Pool struct {
	opts    PoolOptions
	running map[string]*entry // by the runner's name; of the goroutine that runs the Pool
	work    sync.WaitGroup
}

// entry is a runner with its Launcher.
type entry struct {
	runner  Launching
	secrets string // as Secrets names them
	stop    context.CancelFunc
	err     error // why it has none
	looked  time.Time
}

// runnersEvery is how often the runners in force are looked at.
const runnersEvery = 2 * time.Second

// openAgain is how often it is looked at whether a secret was replaced: a runner that could not
// be opened is tried again, and one whose token is another one by now is opened with that.
const openAgain = 30 * time.Second

// NewPool returns a Pool, or an error that names what is missing.
func NewPool(opts PoolOptions) (*Pool, error) {
	if opts.Runners == nil || opts.Open == nil || opts.Dispatcher == nil || opts.Runs == nil {
		return nil, errors.New("launch: no runners, open, dispatcher or runs")
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Pool{opts: opts, running: map[string]*entry{}}, nil
}

// Run launches runs until ctx is done.
func (p *Pool) Run(ctx context.Context) error {
	defer p.work.Wait()
	for {
		if err := p.renew(ctx); err != nil && ctx.Err() == nil {
			p.opts.Logger.WarnContext(ctx, "runners were not read", "err", err)
		}
		select {
		case <-ctx.Done():
			for _, e := range p.running {
				e.stop()
			}
			return nil
		case <-time.After(runnersEvery):
		}
	}
}

// renew starts, replaces and ends Launchers as runners come, change and go.
func (p *Pool) renew(ctx context.Context) error {
	runners, err := p.opts.Runners.LaunchingRunners(ctx)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, r := range runners {
		wanted[r.Name] = true
		e := p.running[r.Name]
		if e != nil && reflect.DeepEqual(e.runner, r) && !p.outdated(ctx, e) {
			continue
		}
		if e != nil {
			e.stop()
		}
		p.running[r.Name] = p.open(ctx, r)
	}
	for name, e := range p.running {
		if !wanted[name] {
			e.stop()
			delete(p.running, name)
		}
	}
	return nil
}

// outdated reports whether a runner is to be opened again.
func (p *Pool) outdated(ctx context.Context, e *entry) bool {
	if time.Since(e.looked) < openAgain {
		return false
	}
	e.looked = time.Now()
	now, err := p.secrets(ctx, e.runner.Runner)
	return e.err != nil || err == nil && now != e.secrets // what cannot be read is about to be replaced
}

func (p *Pool) secrets(ctx context.Context, r runnerspec.Runner) (string, error) {
	if p.opts.Secrets == nil {
		return "", nil
	}
	return p.opts.Secrets(ctx, r)
}

// open starts the Launcher of a runner.
func (p *Pool) open(ctx context.Context, launching Launching) *entry {
	ctx, stop := context.WithCancel(ctx)
	r := launching.Runner
	e := &entry{runner: launching, stop: stop, looked: time.Now()}
	e.secrets, _ = p.secrets(ctx, r) // before they are used: others are noticed
	jobs, run, err := p.opts.Open(ctx, r)
	if err != nil {
		// One run says to people what is wrong.
		p.opts.Logger.ErrorContext(ctx, "runner cannot be used: its runs wait", "runner", r.Name, "err", err)
		e.err = err
		jobs, run = unusable{err}, nil
	}
	settings := p.opts.Settings
	settings.Removed = launching.Removed
	l, err := New(Options{
		Runner: r, Jobs: jobs, Dispatcher: p.opts.Dispatcher, Runs: p.opts.Runs, Settings: settings,
		Former: p.watchFormer(ctx, launching.Former), Logger: p.opts.Logger, Now: p.opts.Now,
	})
	if err != nil {
		e.err = err
		return e
	}
	p.work.Go(func() { _ = l.Run(ctx) })
	if run != nil {
		p.work.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				p.opts.Logger.ErrorContext(ctx, "runner is no longer watched", "runner", r.Name, "err", err)
			}
		})
	}
	return e
}

// watchFormer watches the former places of a runner, for as long as ctx lasts.
func (p *Pool) watchFormer(ctx context.Context, former []runnerspec.Runner) (all []Jobs) {
	for _, r := range former {
		place := &formerPlace{}
		all = append(all, place)
		p.work.Go(func() { place.run(ctx, p.opts, r) })
	}
	return all
}

// unusable are the Jobs of a runner that cannot be used.
type unusable struct{ err error }

func (u unusable) refusal() error {
	var refused *protocol.LaunchError
	if errors.As(u.err, &refused) {
		return u.err
	}
	return &protocol.LaunchError{Reason: holdfast.CauseRunnerUnusable, Err: fmt.Errorf("runner cannot be used: %w", u.err)}
}

func (u unusable) Start(context.Context, protocol.Launch) error    { return u.refusal() }
func (u unusable) Stop(context.Context, holdfast.AttemptRef) error { return nil }
func (u unusable) Changed() <-chan struct{}                        { return nil }
func (u unusable) Launched(context.Context) ([]protocol.Launched, error) {
	return nil, u.refusal()
}
