package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/runner/local"
)

func newServeCommand(a *app) *cobra.Command {
	var path string
	var check bool
	c := &cobra.Command{
		Use:   "serve",
		Short: "Watch repositories, plan pull requests, apply merges",
		Args:  exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := config.Load(path)
			if err != nil {
				return configError(path, err)
			}
			if check {
				fmt.Fprintf(a.out, "%s is valid: %d repositories\n", path, len(cfg.Repositories))
				return nil
			}
			return a.serve(c.Context(), cfg)
		},
	}
	c.Flags().StringVarP(&path, "config", "c", "holdfast.yaml", "configuration file")
	c.Flags().BoolVar(&check, "check", false, "only check the configuration")
	return c
}

func configError(path string, err error) error {
	return &hintError{
		fmt.Errorf("configuration is not valid:\n%w", err),
		"docs/config.md has every key of " + path,
	}
}

// listenError says what to do about an address that cannot be had.
func listenError(err error) error {
	const change = "choose another under server in holdfast.yaml"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return &hintError{err, "is another server running there? stop it, or " + change}
	case errors.Is(err, syscall.EACCES):
		return &hintError{err, "ports below 1024 need root or CAP_NET_BIND_SERVICE; or " + change}
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return &hintError{err, "this machine has no such address; " + change}
	default:
		return err
	}
}

// serve runs a server until ctx is done. Then it takes nothing more in, lets
// runs finish within the grace, interrupts what is left, and closes the agents'
// listener last: until then states and results can still come in.
func (a *app) serve(ctx context.Context, cfg *config.Config) error {
	logger := newLogger(a.err, cfg.Telemetry)
	began := time.Now()
	h, err := build(ctx, cfg, logger)
	if err != nil {
		return err
	}
	defer h.close()
	if err := h.server.Listen(); err != nil {
		return listenError(err)
	}
	beside, err := h.startAgents(ctx)
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

	var g errgroup.Group
	fail := make(chan struct{}, 3) // a part that fails ends the others
	part := func(run func() error) {
		g.Go(func() error {
			err := run()
			fail <- struct{}{}
			return err
		})
	}
	part(func() error { return h.server.RunAgents(agents) })
	part(func() error { return h.reconciler.Run(reconcile) })
	part(func() error { return h.server.RunIntake(intake) })
	g.Go(func() error { return h.sweep(intake) })
	h.announce(logger, began)

	select {
	case <-ctx.Done():
	case <-fail:
	}
	logger.Info("server is stopping", "grace", cfg.Server.Grace)
	closeIntake()
	h.reconciler.Dispatcher().Drain()
	h.finishRuns(last, beside, logger)
	stopReconciling()
	closeAgents()
	err = g.Wait()
	logger.Info("server has stopped")
	return err
}

// finishRuns lets the local agents bring their runs to an end within the grace,
// and interrupts them after that.
func (h *house) finishRuns(ctx context.Context, agents []*local.Process, logger *slog.Logger) {
	graceful, cancel := context.WithTimeout(ctx, h.cfg.Server.Grace)
	defer cancel()
	defer onSecondSignal(cancel)()
	var g errgroup.Group
	for _, agent := range agents {
		g.Go(func() error {
			h.finishAgent(ctx, graceful, agent, logger)
			return nil
		})
	}
	_ = g.Wait() // tells in the log what went wrong
}

func (h *house) finishAgent(ctx, graceful context.Context, agent *local.Process, logger *slog.Logger) {
	if err := agent.Stop(graceful); err == nil {
		return
	}
	logger.Warn("runs were interrupted", "grace", h.cfg.Server.Grace)
	if err := agent.Interrupt(); err != nil {
		logger.Error("agent was not interrupted", "err", err)
	}
	// The engine has its own grace, then the outcome is delivered.
	patience, done := context.WithTimeout(ctx, h.cfg.Engines.Grace+30*time.Second)
	defer done()
	if err := agent.Stop(patience); err != nil && !errors.Is(err, context.Canceled) {
		logger.Error("agent goes on without the server, and reports when it is back", "err", err)
	}
}

// sweep removes, once a day, what crashes have left in the store.
func (h *house) sweep(ctx context.Context) error {
	const day = 24 * time.Hour
	for {
		n, err := h.store.Sweep(ctx, day)
		switch {
		case err != nil && ctx.Err() == nil:
			h.logger.Error("datastore was not swept", "err", err)
		case n > 0:
			h.logger.Info("datastore was swept", "removed", n)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(day):
		}
	}
}

func (h *house) announce(logger *slog.Logger, began time.Time) {
	at := h.server.Addresses()
	logger.Info("server is listening", "webhooks", at.Public, "api", at.API, "agents", at.Agents,
		"socket", at.Socket, "duration", time.Since(began))
}
