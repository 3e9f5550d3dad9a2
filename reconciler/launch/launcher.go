package launch

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

// Options are what a Launcher needs. All are required unless noted.
type Options struct {
	Runner     runnerspec.Runner
	Jobs       Jobs
	Dispatcher Dispatcher
	Runs       Runs
	Settings   Settings
	// Former are where the runner's document had its runs launched before, as long as something
	// may be left there. They start nothing.
	Former []Jobs

	Logger *slog.Logger     // nil discards
	Now    func() time.Time // nil means time.Now
}

// Settings bound what is launched.
type Settings struct {
	Replica   string // names this process among those of the installation
	Agent     string // its id as an agent; empty: one that is made of the runner and the replica
	Isolation string // the weakest that agents must have; empty: any
	// Removed: the runner is no longer in force. What is left of it is stopped; no run is
	// claimed or started.
	Removed bool
	// Start is how long an attempt may take until its agent has called; zero means 10 min.
	Start time.Duration
	// Timeout bounds a run, and Grace is what its agent then needs to end.
	Timeout, Grace time.Duration
	// Every is the time between two looks, if no event comes; zero means 1 s.
	Every time.Duration
	// Limits are those of the runs of a cluster; nil: none.
	Limits func(c holdfast.Cluster) holdfast.RunLimits
}

const (
	// lookEvery is the time between two looks, if no event comes and the settings do
	// not say.
	lookEvery = time.Second
	// startsAtOnce bounds calls that start something.
	startsAtOnce = 16
	// lastWord is how long the result of an attempt may still be on its way, or a
	// heartbeat, once its processes are known to be dead.
	lastWord = 5 * time.Second
	// quotaKept is how long a quota that was used up makes claims come one by one.
	quotaKept = time.Minute
	// leftAlone is how long what was started may outlive its attempt: its agent is
	// about to end.
	leftAlone = 30 * time.Second
	// adoptAfter is the age from which an attempt that somebody else has started, and that
	// has not begun, is started once more: its starter may have died in the middle of it.
	adoptAfter = 10 * time.Second
	// recordEvery is how often the record of an attempt that is executed is read, for
	// whether it is to stop.
	recordEvery = 5 * time.Second
)

// Launcher launches the runs of one runner. Several of one installation may run at once.
type Launcher struct {
	opts    Options
	process string
	began   time.Time // with the monotonic clock

	known   map[holdfast.AttemptRef]*attempt // by run and attempt; of the goroutine that looks
	orphans map[string]orphan                // what is left over, by its name
	past    []left                           // what there is at former places, by the current look
	unsure  bool                             // one of them could not be asked
	blocked bool                             // by a quota, or as the runner cannot be asked
	trouble holdfast.Reason                  // that the log has said last
	asked   error                            // why the runner cannot be asked; nil: it can
	full    time.Time                        // a quota was last found to be used up
}

// attempt is what this process knows of an attempt besides its records.
type attempt struct {
	since   time.Time // it was first seen; with the monotonic clock
	deadAt  time.Time // it was first seen to be dead
	readAt  time.Time // its record was last read
	cancel  time.Time // it was first seen that it is to stop
	stopped bool
	nextTry time.Time // of starting it
	pause   time.Duration
	tried   bool // this process has tried to start it
	started bool // and has
	waits   bool // for a quota, without anything having been started
	held    bool // it has waited for a quota that others had used up

	elsewhere bool // the log has said that something else executes it
}

// New returns a Launcher, or an error that names what is missing.
func New(opts Options) (*Launcher, error) {
	switch {
	case opts.Runner.Name == "":
		return nil, errors.New("launch: no runner")
	case opts.Jobs == nil || opts.Dispatcher == nil || opts.Runs == nil:
		return nil, errors.New("launch: no jobs, dispatcher or runs")
	}
	opts.Settings.Start = cmp.Or(opts.Settings.Start, 10*time.Minute)
	opts.Settings.Every = cmp.Or(opts.Settings.Every, lookEvery)
	if opts.Settings.Limits == nil {
		opts.Settings.Limits = func(holdfast.Cluster) holdfast.RunLimits { return holdfast.RunLimits{} }
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Launcher{
		opts: opts, process: rand.Text(), began: time.Now(), known: map[holdfast.AttemptRef]*attempt{}, orphans: map[string]orphan{},
	}, nil
}

// Run launches runs until ctx is done. What it has started continues without it.
func (l *Launcher) Run(ctx context.Context) error {
	for {
		changed, freed := l.opts.Jobs.Changed(), l.opts.Dispatcher.Freed()
		if err := l.Look(ctx); err != nil && ctx.Err() == nil {
			l.opts.Logger.WarnContext(ctx, "runs were not launched", "runner", l.opts.Runner.Name, "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-freed:
		case <-time.After(l.opts.Settings.Every):
		}
	}
}

// Look looks at all that was launched, settles what has to be, and launches what is queued.
func (l *Launcher) Look(ctx context.Context) error {
	// What was started is looked at first: whatever is in it had a running attempt then.
	launched, asked := l.opts.Jobs.Launched(ctx)
	l.past, l.unsure = l.lookBack(ctx)
	attempts, err := l.opts.Dispatcher.LaunchedAttempts(ctx, l.opts.Runner.Name)
	if err != nil {
		return err
	}
	l.tell(ctx, asked)
	l.blocked, l.asked = asked != nil, asked
	if l.trouble == unknown { // nobody was asked yet
		return nil
	}
	started := make(map[holdfast.AttemptRef]protocol.Launched, len(launched))
	for _, one := range launched {
		started[one.Ref()] = one
	}
	running := make(map[holdfast.AttemptRef]bool, len(attempts))
	exchanged := 0
	for _, a := range attempts {
		running[key(a.AttemptRef)] = true
		if !a.ExchangedAt.IsZero() {
			exchanged++
		}
	}
	var errs []error
	var missing []protocol.Ticket
	for _, a := range attempts {
		one := l.standingOf(a, started)
		if asked == nil && l.unstarted(a, one) {
			missing = append(missing, a)
		}
		errs = append(errs, l.settle(ctx, a, one.Launched, one.some, exchanged > 0))
	}
	if l.opts.Settings.Removed {
		missing = nil
	}
	errs = append(errs, l.startAll(ctx, missing))
	errs = append(errs, l.clearOrphans(ctx, launched, asked == nil, running))
	l.forget(running)
	if l.opts.Settings.Removed {
		return errors.Join(errs...)
	}
	errs = append(errs, l.present(ctx))
	switch {
	case !l.blocked:
		errs = append(errs, l.claimAll(ctx, len(attempts), l.opts.Runner.MaxRuns))
	case asked != nil && exchanged == len(attempts):
		// One run says to people what is wrong.
		errs = append(errs, l.claimAll(ctx, len(attempts), len(attempts)+1))
	}
	return errors.Join(errs...)
}

// unstarted reports whether an attempt is to be started: nothing is there for it, or
// perhaps only half of it, as its start failed or its starter died. Starting it again
// changes nothing of what is there.
func (l *Launcher) unstarted(a protocol.Ticket, one standing) bool {
	switch {
	case !a.ExchangedAt.IsZero() || one.former:
		return false
	case !one.some:
		return !l.perhapsThere(a)
	}
	k := l.knownOf(a.AttemptRef)
	return !one.Begun && !one.Over && !one.Dead && !k.started && (k.tried || time.Since(k.since) > adoptAfter)
}

func key(ref holdfast.AttemptRef) holdfast.AttemptRef {
	return holdfast.AttemptRef{Run: ref.Run, Attempt: ref.Attempt}
}

// unknown is what is known of a runner that was not asked yet.
const unknown holdfast.Reason = "-"

// tell logs once that the runner cannot be reached, and once that it can again.
func (l *Launcher) tell(ctx context.Context, err error) {
	var refused *protocol.LaunchError
	reason := holdfast.Reason("")
	switch {
	case errors.As(err, &refused):
		reason = cmp.Or(refused.Reason, unknown)
	case err != nil:
		reason = holdfast.CauseRunnerUnreachable
	}
	switch {
	case reason == l.trouble || reason == unknown || l.trouble == unknown && reason == "":
	case err != nil:
		l.opts.Logger.ErrorContext(ctx, "runner cannot be asked: its runs wait", "runner", l.opts.Runner.Name, "reason", reason, "err", err)
	default:
		l.opts.Logger.InfoContext(ctx, "runner can be asked again", "runner", l.opts.Runner.Name)
	}
	l.trouble = reason
}

// present reports that runs of this runner are executed.
func (l *Launcher) present(ctx context.Context) error {
	s := l.opts.Settings
	id := cmp.Or(s.Agent, protocol.AgentIDOf(l.opts.Runner.Name)+"/launcher/"+protocol.AgentIDOf(s.Replica))
	return l.opts.Dispatcher.Present(ctx, protocol.ClaimRequest{
		Agent: id, Runner: l.opts.Runner.Name,
		Kinds: holdfast.AgentKinds(), Isolation: s.Isolation, Process: l.process, Folder: "launcher of " + s.Replica, Slots: l.opts.Runner.MaxRuns,
	})
}

// claimAll claims what may be executed now, and starts it, until there are as many as there
// may be; zero: any number. A start that fails ends it.
func (l *Launcher) claimAll(ctx context.Context, running, most int) error {
	var g errgroup.Group
	g.SetLimit(startsAtOnce)
	if time.Since(l.full) < quotaKept { // no more is claimed in vain than has to be
		g.SetLimit(1)
	}
	stop, full := context.WithCancel(ctx)
	defer full()
	for ; stop.Err() == nil && (most == 0 || running < most); running++ {
		run, ticket, err := l.opts.Dispatcher.ClaimLaunch(ctx, l.opts.Runner.Name, l.opts.Settings.Isolation)
		if errors.Is(err, holdfast.ErrNotFound) {
			break
		} else if err != nil {
			_ = g.Wait()
			return fmt.Errorf("claim a run of runner %q: %w", l.opts.Runner.Name, err)
		}
		k := l.knownOf(run.Ref())
		g.Go(func() error {
			err := l.start(ctx, k, run, ticket)
			if err != nil {
				full() // the next look tries again, and says why
			}
			return err
		})
	}
	return g.Wait()
}

// startAll starts attempts for which nothing exists: a former process has claimed them, or
// their start failed.
func (l *Launcher) startAll(ctx context.Context, list []protocol.Ticket) error {
	var g errgroup.Group
	g.SetLimit(startsAtOnce)
	var mu sync.Mutex
	now := time.Now()
	for _, a := range list {
		k := l.knownOf(a.AttemptRef)
		if k.nextTry.After(now) || k.stopped {
			l.blocked = l.blocked || !k.stopped // whatever it was, it may hold the next one, too
			continue
		}
		g.Go(func() error {
			run, err := l.opts.Runs.Run(ctx, a.Run)
			if err != nil || run.Status != holdfast.RunRunning || run.Ref() != a.AttemptRef || run.RunnerName() != l.opts.Runner.Name {
				return err
			}
			ticket, err := l.opts.Dispatcher.Ticket(ctx, l.opts.Runner.Name, a.AttemptRef)
			if err != nil {
				return err
			}
			if err = l.start(ctx, k, run, ticket); err != nil {
				mu.Lock()
				defer mu.Unlock()
				k.pause = min(max(2*k.pause, lookEvery), 15*time.Second)
				k.nextTry = time.Now().Add(k.pause)
				l.blocked = true
				var refused *protocol.LaunchError
				if k.waits = errors.As(err, &refused) && refused.Waits; k.waits {
					l.full = time.Now()
				}
			}
			return err
		})
	}
	return g.Wait()
}

// start starts what executes an attempt. If that cannot be, the run says why; what can never
// be ends it.
func (l *Launcher) start(ctx context.Context, k *attempt, run holdfast.Run, ticket string) error {
	s := l.opts.Settings
	k.tried = true
	err := l.opts.Jobs.Start(ctx, protocol.Launch{
		AttemptRef: run.Ref(), Runner: l.opts.Runner.Name, Kind: run.Kind, Cluster: run.Document, Ticket: ticket,
		Limits: s.Limits(run.Document), Timeout: s.Start + s.Timeout + s.Grace,
	})
	if err == nil {
		k.started = true
		return nil
	}
	var refused *protocol.LaunchError
	if !errors.As(err, &refused) {
		return fmt.Errorf("start run %s: %w", run.ID, err)
	}
	l.opts.Logger.WarnContext(ctx, "run was not started", "runner", l.opts.Runner.Name, "run", run.ID, "attempt", run.Attempt,
		"cluster", run.Cluster, "reason", refused.Reason, "err", err)
	if refused.Reason == holdfast.CausePodTemplateRefused {
		return l.end(ctx, run.Ref(), refused.Reason, refused.Error(), true)
	}
	return errors.Join(err, l.opts.Dispatcher.NoteLaunch(ctx, run.Ref(), refused.Reason, refused.Error()))
}
