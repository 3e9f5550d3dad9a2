package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/offline"
	"github.com/holdfast-dev/holdfast/internal/agentkey"
	"github.com/holdfast-dev/holdfast/internal/idle"
	"github.com/holdfast-dev/holdfast/policy/confined"
	"github.com/holdfast-dev/holdfast/runner"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// agentFlags are the settings of an agent. It has no configuration file: serve passes
// it what it may know.
type agentFlags struct {
	agentServer
	tokenFile, dir string
	run            bool // one attempt, and ends
	ticketFile     string
	slots          int
	kinds          []string
	grace          time.Duration
	executor       runner.ExecutorOptions
	isolation      isolationFlags
}

// agentServer is which server an agent works for, as whom.
type agentServer struct {
	id, url, caFile   string
	keyFile, audience string
}

// addFlags adds the flags of all commands that work for a server.
func (s *agentServer) addFlags(c *cobra.Command, url string) {
	flags := c.Flags()
	flags.StringVar(&s.url, "server", "", "the server: "+url)
	flags.StringVar(&s.id, "id", "", "name of this agent, stable over restarts")
	flags.StringVar(&s.caFile, "ca-file", "", "certificate authority of the server, PEM")
	flags.StringVar(&s.keyFile, "key", "", "file with the agent's private key; the runner's document contains its public key")
	flags.StringVar(&s.audience, "audience", "", "with --key: server.agents.url of the server, if that is not --server")
	for _, name := range []string{"server", "id"} {
		if err := c.MarkFlagRequired(name); err != nil {
			panic(err) // a flag that was not defined above
		}
	}
}

// signer signs what the agent shows the server.
func (s *agentServer) signer(now func() time.Time) (*agentkey.Signer, error) {
	key, err := readKeyFile(s.keyFile)
	if err != nil {
		return nil, err
	}
	signer, err := agentkey.New(key, s.id, cmp.Or(s.audience, s.url), now)
	if err != nil {
		return nil, cli.UsageError("--key: %w: set --audience to server.agents.url of the server", err)
	}
	return signer, nil
}

func newAgentCommand(a *app) *cobra.Command {
	var f agentFlags
	var env taskEnvironment
	c := &cobra.Command{
		Use:   "agent",
		Short: "Execute runs for a server (serve starts its own agents)",
		Args:  cli.Exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := errors.Join(env.take(&f), f.oneRun()); err != nil {
				return err
			}
			return a.agent(c, f)
		},
	}
	f.addFlags(c, "unix:///path or https://host:port")
	flags := c.Flags()
	flags.StringVar(&f.tokenFile, "token-file", "", "file with the agent's token; - for the standard input")
	flags.BoolVar(&f.run, "run", false, "execute only the run of the ticket in --ticket-file, and end; used in Jobs of runners")
	flags.StringVar(&f.ticketFile, "ticket-file", "", "with --run: file with the ticket of an attempt, which can be used once")
	flags.StringVar(&f.dir, "dir", "", "folder for workspaces, and for results that were not delivered yet")
	flags.IntVar(&f.slots, "slots", 4, "how many runs to execute at once")
	flags.StringSliceVar(&f.kinds, "kinds", nil, "kinds of runs to execute: "+holdfast.KindNames(holdfast.AgentKinds())+" (default all)")
	flags.DurationVar(&f.grace, "grace", 5*time.Minute, "how long runs may continue after SIGTERM")
	offline.AddEngineFlags(c, &f.executor)
	addIsolationFlags(c, &f.isolation)
	env.addFlags(c, &f)
	if err := c.MarkFlagRequired("dir"); err != nil {
		panic(err) // a flag that was not defined above
	}
	c.AddCommand(newAgentProbeCommand(a), newAgentKeyCommand(a), newAgentLaunchCommand(a))
	return c
}

func (a *app) agent(c *cobra.Command, f agentFlags) error {
	logger := slog.New(slog.NewTextHandler(a.Err, nil))
	if err := sandbox.Harden(); err != nil {
		logger.Warn("code in a plan may be able to read the memory of the agent", "err", err)
	}
	server, err := f.credentials(c.InOrStdin(), a.Now)
	if err != nil {
		return err
	}
	kinds, err := holdfast.ParseAgentKinds(f.kinds)
	if err != nil {
		return cli.UsageError("%w", err)
	}
	f.executor.WorkDir, f.executor.Logger, f.executor.Now = filepath.Join(f.dir, "work"), logger, a.Now
	users := slotUsers{first: f.isolation.firstUser, count: f.slots}
	defer users.release()
	var mode string
	if f.executor.Isolation, mode, err = f.isolation.open(c.Context(), &users, kinds, logger); err != nil {
		return err
	}
	if f.executor.Isolation.Policies, err = confined.New(confined.Options{}); err != nil {
		return err
	}
	if mode == string(sandbox.ModeLandlock) {
		applies := !f.executor.Isolation.OneUser && slices.ContainsFunc(kinds, holdfast.RunKind.Writes)
		unmark, err := markUser(sharedTmp, os.Getuid(), applies)
		if err != nil {
			return err
		}
		defer func() { _ = unmark() }()
	}
	if mode == string(sandbox.ModeUsers) {
		// Engines are other users, and pass through to their workspaces.
		if err := errors.Join(os.MkdirAll(f.dir, 0o711), os.Chmod(f.dir, 0o711)); err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
	}
	executor, err := runner.NewExecutor(f.executor)
	if err != nil {
		return err
	}
	if err := f.exposed(executor.Exposes, mode); err != nil {
		return err
	}
	agent, err := runner.NewAgent(runner.AgentOptions{
		About:  runner.About{ID: f.id, Isolation: mode, Version: buildVersion()},
		Server: server,
		Claims: runner.Claims{Slots: f.slots, Kinds: kinds},
		Stop:   f.stop(),
		Dir:    f.dir, Executor: executor, Logger: logger, Now: a.Now,
	})
	if err != nil {
		return err
	}
	if f.run {
		return endOfRun(agent.RunOne(c.Context()))
	}
	defer onSecondSignal(agent.Interrupt)()
	ctx, done := context.WithCancel(c.Context())
	var idling sync.WaitGroup
	idling.Go(func() { idle.GiveBack(ctx) })
	defer idling.Wait()
	defer done()
	if err := agent.Run(c.Context()); err != nil {
		return errors.Join(errors.New("the agent stopped"), err)
	}
	return nil
}

// oneRun checks how --run, --ticket-file, --token-file and --key go together. A ticket is
// shown as a token is.
func (f *agentFlags) oneRun() error {
	switch {
	case f.keyFile == "" && f.audience != "":
		return cli.UsageError("--audience goes with --key")
	case !f.run && f.ticketFile != "":
		return cli.UsageError("--ticket-file goes with --run")
	case !f.run && (f.tokenFile == "") == (f.keyFile == ""):
		return cli.UsageError("an agent needs --token-file or --key, one of the two")
	case f.run && (f.ticketFile == "" || f.tokenFile+f.keyFile != ""):
		return cli.UsageError("--run needs --ticket-file, and neither --token-file nor --key")
	case f.run:
		f.tokenFile, f.slots = f.ticketFile, 1
	}
	return nil
}

// credentials are where the server is, and what the agent shows it.
func (f *agentFlags) credentials(stdin io.Reader, now func() time.Time) (runner.Server, error) {
	server := runner.Server{URL: f.url, CAFile: f.caFile}
	if f.keyFile != "" {
		signer, err := f.signer(now)
		if err != nil {
			return server, err
		}
		server.Sign = signer.Token
		return server, nil
	}
	var err error
	if server.Token, err = f.credential(stdin); err != nil {
		return server, fmt.Errorf("read token: %w", err)
	}
	return server, nil
}

// credential reads a token or a ticket. A ticket's file may be readable for the
// group that a Pod's volumes have: it is good once, and spent before an engine starts.
func (f *agentFlags) credential(stdin io.Reader) (string, error) {
	if !f.run {
		return agentToken(f.tokenFile, stdin)
	}
	text, err := os.ReadFile(f.tokenFile)
	if err == nil && len(bytes.TrimSpace(text)) == 0 {
		err = fmt.Errorf("%s is empty", f.tokenFile)
	}
	return string(bytes.TrimSpace(text)), err
}

// stop is how the agent stops. That of one run has its engine interrupted at once, and the
// grace for its outcome: whoever asks it to stop kills it soon.
func (f *agentFlags) stop() runner.Stop {
	if f.run {
		return runner.Stop{Grace: -1, DeliverWait: f.grace}
	}
	return runner.Stop{Grace: f.grace}
}

// endOfRun says how a run that was executed ended: well if the server has all that came of
// it, whatever the run's own outcome.
func endOfRun(err error) error {
	var refused *runner.RefusedError
	if errors.As(err, &refused) {
		return &cli.ExitCodeError{Code: cli.ExitRun, Err: fmt.Errorf("the ticket is not valid: %w", refused.Err)}
	}
	return err
}

// exposed returns which of the agent's own places code in every plan can read, as engines
// have the agent's user; nil if none. By returns through what a path can be read.
func (f agentFlags) exposed(by func(path string) string, mode string) error {
	for _, place := range []struct{ flag, path, hint string }{
		{"--dir", f.dir, "choose a folder that engines do not see, such as /var/lib/holdfast"},
		{"--token-file", f.tokenFile, "move it out of there, such as to /etc/holdfast, or pass the token on the standard input (--token-file -)"},
		{"--key", f.keyFile, "move it out of there, such as to /etc/holdfast"},
	} {
		if place.path == "" || place.path == "-" || f.run && place.path == f.tokenFile { // a ticket is spent before an engine starts
			continue
		}
		path, err := filepath.Abs(place.path)
		if err != nil {
			return fmt.Errorf("find %s: %w", place.flag, err)
		}
		if dir := by(path); dir != "" {
			return hint.New(fmt.Errorf("%s: %s is in %s, which the code of every plan can read: in mode %s engines run as the agent's user",
				place.flag, path, dir, mode), place.hint)
		}
	}
	return nil
}

// maxToken bounds what is read of the standard input: a token is short.
const maxToken = 64 << 10

// agentToken reads the agent's token. The one that serve starts gets it on its
// standard input: what runs in a plan is the same user, and could read a file.
func agentToken(path string, stdin io.Reader) (string, error) {
	if path != "-" {
		return client.ReadSecret(path)
	}
	data, err := io.ReadAll(io.LimitReader(stdin, maxToken))
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(data))
	if token == "" {
		return "", errors.New("standard input is empty")
	}
	return token, nil
}
