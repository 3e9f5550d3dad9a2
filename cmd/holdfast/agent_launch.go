package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/reconciler/launch"
	"github.com/holdfast-dev/holdfast/runner"
	"github.com/holdfast-dev/holdfast/runner/kubernetes"
	"github.com/holdfast-dev/holdfast/runner/uplink"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

// launchFlags are the settings of an agent that launches Jobs: all else is said by the server.
type launchFlags struct {
	agentServer
	kubeconfig string
}

// newAgentLaunchCommand returns the agent of a runner of type kubernetes-agent.
func newAgentLaunchCommand(a *app) *cobra.Command {
	var f launchFlags
	c := &cobra.Command{
		Use:   "launch",
		Short: "Launch a Kubernetes Job for each run of a runner (type kubernetes-agent)",
		Long: `Launch a Kubernetes Job for each run of a runner of type kubernetes-agent, in the
cluster of this agent. The agent connects to the server; nothing connects to the agent.
The runner's document configures the Jobs. The agent executes nothing itself: if it is
stopped, Jobs that were started continue.`,
		Example: "  holdfast agent launch --server https://agents.holdfast.example.com --id east/agent --key /etc/holdfast/key",
		Args:    cli.Exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			if f.keyFile == "" {
				return cli.UsageError("required flag(s) \"key\" not set")
			}
			return a.launch(c.Context(), f)
		},
	}
	f.addFlags(c, "https://host:port")
	c.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster (default: the cluster of the agent's Pod)")
	return c
}

const (
	// settingsEvery is how often the server is asked for the runner's document: a change
	// applies to Jobs that are started after it.
	settingsEvery = 5 * time.Second
	// launchLookEvery is between two looks at all Jobs, if no event comes.
	launchLookEvery = 3 * time.Second
)

// launcher is an agent that launches the runs of its runner.
type launcher struct {
	flags    launchFlags
	access   kubernetes.Access
	launches *uplink.Launches
	logger   *slog.Logger
	now      func() time.Time

	settings protocol.LaunchSettings // in force; of the goroutine that follows them
	stop     func()                  // ends what launches by them; nil: nothing does
	trouble  bool                    // the log has said that the server does not answer
}

func (a *app) launch(ctx context.Context, f launchFlags) error {
	logger := slog.New(slog.NewTextHandler(a.Err, nil))
	if err := protocol.CheckAgentID(f.id); err != nil {
		return cli.UsageError("--id %q %w", f.id, err)
	}
	signer, err := f.signer(a.Now)
	if err != nil {
		return err
	}
	client, err := uplink.NewClient(f.url, signer.Token, f.caFile)
	if err != nil {
		return err
	}
	l := &launcher{flags: f, access: kubernetes.Access{InCluster: true}, launches: uplink.NewLaunches(client), logger: logger, now: a.Now}
	if f.kubeconfig != "" {
		text, err := os.ReadFile(f.kubeconfig)
		if err != nil {
			return fmt.Errorf("read kubeconfig: %w", err)
		}
		l.access = kubernetes.Access{Kubeconfig: text}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return l.launches.Listen(ctx) })
	g.Go(func() error { return l.follow(ctx) })
	return g.Wait()
}

// follow launches by what the server says of the runner, until ctx is done, or the server has
// refused the agent.
func (l *launcher) follow(ctx context.Context) error {
	defer func() {
		if l.stop != nil {
			l.stop()
		}
	}()
	for ctx.Err() == nil {
		settings, err := l.launches.Settings(ctx)
		switch {
		case err == nil:
			l.trouble = false
			if err := l.adopt(ctx, settings); err != nil {
				return err
			}
		case uplink.Final(err):
			return &runner.RefusedError{Server: l.flags.url, Err: err}
		case ctx.Err() == nil && !l.trouble:
			l.trouble = true
			l.logger.WarnContext(ctx, "server does not answer: Jobs that were started continue", "agent", l.flags.id, "err", err)
		}
		uplink.Sleep(ctx, settingsEvery)
	}
	return nil
}

// adopt launches by settings from now on, if they are others than before.
func (l *launcher) adopt(ctx context.Context, settings protocol.LaunchSettings) error {
	if l.stop != nil && reflect.DeepEqual(settings, l.settings) {
		return nil
	}
	if settings.Runner.Type != runnerspec.KubernetesAgent {
		return errors.New("the server's answer is not about a runner of type kubernetes-agent")
	}
	if l.stop != nil {
		l.stop() // and wait: two of one process would be in each other's way
		l.stop = nil
	}
	pool, err := launch.NewPool(launch.PoolOptions{
		Runners: oneRunner{launch.Launching{Runner: settings.Runner, Former: settings.Former}}, Open: l.open(settings), Dispatcher: l.launches, Runs: runsBy(l.launches.RunOf),
		Settings: launch.Settings{
			Replica: l.flags.id, Agent: l.flags.id, Isolation: settings.Isolation,
			Start: settings.Start, Timeout: settings.Timeout, Grace: settings.Grace, Every: launchLookEvery,
			Limits: func(c holdfast.Cluster) holdfast.RunLimits { return c.Limits }, // the server has granted them
		},
		Logger: l.logger, Now: l.now,
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = pool.Run(ctx) // ends with ctx alone
	}()
	l.settings, l.stop = settings, func() { cancel(); <-done }
	l.logger.InfoContext(ctx, "runs are launched", "agent", l.flags.id, "runner", settings.Runner.Name, "namespace", settings.Runner.Job.Namespace)
	return nil
}

// oneRunner is the runner of the agent.
type oneRunner struct{ runner launch.Launching }

func (r oneRunner) LaunchingRunners(context.Context) ([]launch.Launching, error) {
	return []launch.Launching{r.runner}, nil
}

// runsBy are the records of runs, as a server shows them.
type runsBy func(ctx context.Context, id string) (holdfast.Run, error)

// Run returns one.
func (r runsBy) Run(ctx context.Context, id string) (holdfast.Run, error) { return r(ctx, id) }

// open makes what starts Jobs by settings.
func (l *launcher) open(settings protocol.LaunchSettings) launch.OpenFunc {
	return func(_ context.Context, r runnerspec.Runner) (launch.Jobs, func(context.Context) error, error) {
		agent := settings.Agent
		cluster, err := kubernetes.Open(kubernetes.Options{
			Runner: r, Access: l.access, Installation: settings.Installation,
			Agent: kubernetes.Agent{
				ServerURL: agent.ServerURL, CA: agent.CA, Image: agent.Image, Isolation: agent.Isolation, Args: agent.Flags, Grace: settings.Grace,
			},
			Logger: l.logger,
		})
		if err != nil {
			return nil, nil, err
		}
		return cluster, cluster.Run, nil
	}
}
