package serve

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/internal/idle"
	"github.com/holdfast-dev/holdfast/reconciler/queue"
	"github.com/holdfast-dev/holdfast/runner/local"
)

// listenError says what to do about an address that cannot be used.
func listenError(err error) error {
	const change = "choose another under server in holdfast.yaml"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return hint.New(err, "is another server running there? stop it, or "+change)
	case errors.Is(err, syscall.EACCES):
		return hint.New(err, "ports below 1024 need root or CAP_NET_BIND_SERVICE; or "+change)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return hint.New(err, "this machine has no such address; "+change)
	default:
		return err
	}
}

var errDatabaseLost = hint.New(errors.New("another server has taken the database"),
	"one server at a time may use a database: stop the other one, or give each its own")

// Options are what Run needs of the process.
type Options struct {
	Version string           // of the binary, for people
	Log     io.Writer        // where the log is written
	Now     func() time.Time // nil means time.Now
	// Hurry calls do when the server is asked to stop a second time: then it no longer
	// waits for runs. stop ends that. Nil means that nobody asks.
	Hurry func(do func()) (stop func())
}

// Run runs a server until ctx is done. Then it accepts nothing more, lets runs finish
// within the grace, interrupts what is left, says how they ended, and closes the
// agents' listener last: until then states and results can still come in.
func Run(ctx context.Context, cfg *config.Config, opts Options) error {
	logger := newLogger(opts.Log, cfg.Telemetry)
	began := time.Now()
	s, err := build(ctx, cfg, opts, logger)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.server.Listen(); err != nil {
		return listenError(err)
	}
	own, err := s.startAgents(ctx)
	if err != nil {
		return err
	}

	intake, closeIntake := context.WithCancel(ctx)
	defer closeIntake()
	last := context.WithoutCancel(ctx)
	agents, closeAgents := context.WithCancel(last)
	defer closeAgents()
	reconcile, stopReconciling := context.WithCancel(last)
	defer stopReconciling()
	reconcile, abort := queue.Abortable(reconcile)
	defer abort()

	var g errgroup.Group
	fail := make(chan struct{}, 3) // a part that fails ends the others
	part := func(run func() error) {
		g.Go(func() error {
			err := run()
			fail <- struct{}{}
			return err
		})
	}
	part(func() error { return s.server.RunAgents(agents) })
	part(func() error { return s.reconciler.Run(reconcile) })
	part(func() error { return s.server.RunIntake(intake) })
	g.Go(func() error { return s.launched.Run(intake) })
	s.keepHouse(intake, &g)
	besides(intake, reconcile, agents, s, &g)
	s.announce(logger, began)

	select {
	case <-ctx.Done():
	case <-fail:
	case <-s.store.Lost():
		// Agents continue what they have begun, as after any other unannounced end.
		for _, end := range []func(){closeIntake, stopReconciling, closeAgents} {
			end()
		}
		now, over := context.WithCancel(last)
		over()
		return errors.Join(errDatabaseLost, s.finishWork(now, &g, abort))
	}
	logger.Info("server is stopping", "grace", cfg.Server.Grace)
	stopping := s.clock.Now()
	graceful, over := context.WithTimeout(last, cfg.Server.Grace)
	defer over()
	if opts.Hurry != nil {
		defer opts.Hurry(over)()
	}
	closeIntake()
	s.reconciler.Leave(graceful) // other replicas go on at once
	s.finishRuns(last, graceful, own, logger)
	// Their results are reported before we stop; anything later waits for the next start.
	s.reconciler.WorkOff(graceful, stopping.Add(-justNow))
	stopReconciling()
	closeAgents()
	return s.finishWork(graceful, &g, abort)
}

// newLogger writes to w as the configuration says.
func newLogger(w io.Writer, t config.Telemetry) *slog.Logger {
	level := map[string]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	}[t.LogLevel]
	opts := &slog.HandlerOptions{Level: level}
	if t.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

// besides runs the parts whose end does not end the server.
func besides(intake, reconcile, agents context.Context, s *services, g *errgroup.Group) {
	part := func(run func()) {
		g.Go(func() error {
			run()
			return nil
		})
	}
	if s.issuer != nil {
		part(func() { s.issuer.Run(agents) })
	}
	if s.prices != nil {
		part(func() { s.refresh(intake, s.logger) })
	}
	if s.redis != nil {
		part(func() { s.redis.run(reconcile) })
	}
	if s.notifier != nil {
		g.Go(func() error { return s.notifier.Run(reconcile) })
	}
	part(func() { s.identify(intake, s.hooks.Handler) })
}

const (
	// justNow is how long before the end a run may have ended whose result is reported.
	justNow   = 10 * time.Second
	lastWork  = 5 * time.Second // at most, for work that was begun when the server is about to end
	leastWork = time.Second     // the same where the grace is over
	lastWait  = 2 * time.Second // for work that was aborted to notice it
)

// finishWork waits for the server's parts to end, and for no part that hangs: what it
// was at is asked for again at the next start.
func (s *services) finishWork(graceful context.Context, g *errgroup.Group, abort func()) error {
	ended := make(chan error, 1)
	go func() { ended <- g.Wait() }()
	left := leastWork
	if over, ok := graceful.Deadline(); ok && graceful.Err() == nil {
		left = max(left, min(time.Until(over), lastWork))
	}
	defer time.AfterFunc(left, abort).Stop()
	select {
	case err := <-ended:
		s.logger.Info("server has stopped")
		return err
	case <-time.After(left + lastWait):
		s.logger.Warn("server stopped in the middle of its work, which starts again with the next start")
		return nil
	}
}

// finishRuns lets the local agents finish their runs within the grace, and interrupts
// them after that.
func (s *services) finishRuns(ctx, graceful context.Context, agents []*local.Process, logger *slog.Logger) {
	var g errgroup.Group
	for _, agent := range agents {
		g.Go(func() error {
			s.finishAgent(ctx, graceful, agent, logger)
			return nil
		})
	}
	_ = g.Wait() // tells in the log what went wrong
}

func (s *services) finishAgent(ctx, graceful context.Context, agent *local.Process, logger *slog.Logger) {
	if err := agent.Stop(graceful); err == nil {
		return
	}
	logger.Warn("runs were interrupted", "grace", s.cfg.Server.Grace)
	if err := agent.Interrupt(); err != nil {
		logger.Error("agent was not interrupted", "err", err)
	}
	// The engine has its own grace, then the outcome is delivered.
	patience, done := context.WithTimeout(ctx, s.cfg.Engines.Grace+30*time.Second)
	defer done()
	if err := agent.Stop(patience); err != nil && !errors.Is(err, context.Canceled) {
		logger.Error("agent continues without the server, and reports when it is back", "err", err)
	}
}

// sweep removes, once a day, what crashes have left in the store, and looks at the
// certificates. A sweep that was cut short continues within the hour.
func (s *services) sweep(ctx context.Context) error {
	const day = 24 * time.Hour
	for {
		s.reportCertificates()
		pause := day
		n, err := 0, error(nil)
		if sweeps(ctx, s.store, s.logger) {
			n, err = s.store.Sweep(ctx, day)
		} else {
			pause = time.Hour
		}
		switch {
		case err != nil && ctx.Err() == nil:
			pause = time.Hour
			s.logger.Error("old records were not removed", "err", err)
		case n > 0:
			s.logger.Info("datastore was swept", "removed", n)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// keepHouse does the periodic work that nobody asks for, while the server works.
func (s *services) keepHouse(ctx context.Context, g *errgroup.Group) {
	g.Go(func() error { return s.sweep(ctx) })
	g.Go(func() error { return watchBlobs(ctx, s.store) })
	g.Go(func() error { return s.hooks.seen.run(ctx) })
	g.Go(func() error {
		idle.GiveBack(ctx)
		return nil
	})
}

// watchBlobs asks the bucket for a sign of life now and then, more often while it gives
// none: /readyz must not show for long a problem that is over.
func watchBlobs(ctx context.Context, store *datastore.Store) error {
	for {
		pause := time.Minute
		if store.BlobProblem() != "" {
			pause = 5 * time.Second
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
			store.CheckBlobs(ctx)
		}
	}
}

func (s *services) announce(logger *slog.Logger, began time.Time) {
	at := s.server.Addresses()
	logger.Info("server is listening", "webhooks", at.Public, "api", at.API, "agents", at.Agents,
		"socket", at.Socket, "duration", time.Since(began))
}
