package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// isolationFlags are how an agent keeps engines from all else.
type isolationFlags struct {
	wanted             string // as isolation in holdfast.yaml
	firstUser          int
	readOnly, writable []string
}

func addIsolationFlags(c *cobra.Command, f *isolationFlags) {
	flags := c.Flags()
	flags.StringVar(&f.wanted, "isolation", "auto", "how engines are isolated: auto, none, or the weakest acceptable mode")
	flags.IntVar(&f.firstUser, "slot-user", 60600, "first uid and gid of engines, in modes with separate users")
	flags.StringArrayVar(&f.readOnly, "sandbox-read", nil, "file or folder that engines may read")
	flags.StringArrayVar(&f.writable, "sandbox-write", nil, "file or folder that engines may write")
}

func newAgentProbeCommand(a *app) *cobra.Command {
	var f isolationFlags
	c := &cobra.Command{
		Use:   "probe",
		Short: "Print how engines would be isolated here, by starting one",
		Args:  cli.Exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			users := slotUsers{first: f.firstUser, count: 1}
			defer users.release()
			starter, err := f.probe(c.Context(), users.holdToKill)
			if err != nil {
				return err
			}
			fmt.Fprintln(a.Out, starter.Mode())
			if err := starter.Counted(); err != nil {
				fmt.Fprintf(a.Err, "%s: %v\n", withoutGroups(starter.Mode()), err)
			}
			return nil
		},
	}
	addIsolationFlags(c, &f)
	return c
}

// open finds the strongest mode that works, and returns its name:
// protocol.IsolationUnavailable if none does that may be used. Then the agent refuses
// what it is given, and says why. Users are held in modes that have them.
func (f isolationFlags) open(
	ctx context.Context, users *slotUsers, kinds []holdfast.RunKind, logger *slog.Logger,
) (runner.Isolation, string, error) {
	o := runner.Isolation{
		FirstUser: users.first, Slots: users.count, ReadOnly: f.readOnly, Writable: f.writable, OneUser: bothKinds(kinds),
	}
	starter, err := f.probe(ctx, users.hold)
	switch {
	case err == nil:
		o.Starter = starter
		if starter.Mode() == sandbox.ModeNone {
			logger.Warn("engines are not isolated: code in a plan can read and do what this agent can")
			return o, protocol.IsolationNone, nil
		}
		logger.Info("engines are isolated", "mode", string(starter.Mode()))
		if err := starter.Counted(); err != nil {
			logger.Info("limits hold only in part", "what", withoutGroups(starter.Mode()), "err", err)
		}
		return o, string(starter.Mode()), nil
	case !errors.Is(err, sandbox.ErrUnavailable):
		return o, "", err
	}
	logger.Error("no run is started: engines cannot be isolated", "err", err)
	o.Unavailable = err
	return o, protocol.IsolationUnavailable, nil
}

// withoutGroups says what limits are in a mode where control groups cannot be used.
func withoutGroups(mode sandbox.Mode) string {
	if mode.CountsProcesses() {
		return "memory limits apply per process; CPU is not limited"
	}
	return "memory limits apply per process; CPU and the number of processes are not limited"
}

// bothKinds reports whether an agent of these kinds executes plans and applies.
func bothKinds(kinds []holdfast.RunKind) bool {
	writes := slices.ContainsFunc(kinds, holdfast.RunKind.Writes)
	reads := slices.ContainsFunc(kinds, func(k holdfast.RunKind) bool { return !k.Writes() })
	return len(kinds) == 0 || writes && reads
}

// probe returns a Starter of the strongest mode that works and may be used. Hold is as in
// sandbox.Options.
func (f isolationFlags) probe(ctx context.Context, hold func(sandbox.Mode) error) (*sandbox.Starter, error) {
	if !slices.Contains(config.Isolations, f.wanted) {
		return nil, cli.UsageError("--isolation %q: want one of %v", f.wanted, config.Isolations)
	}
	if f.wanted == string(sandbox.ModeNone) {
		return sandbox.Probe(ctx, sandbox.Options{Mode: sandbox.ModeNone})
	}
	slot := sandbox.Slot{UID: f.firstUser, GID: f.firstUser}
	return strongest(f.wanted, func(mode sandbox.Mode) (*sandbox.Starter, error) {
		return sandbox.Probe(ctx, sandbox.Options{Mode: mode, Slot: slot, Hold: hold})
	})
}

// strongest returns a Starter of the strongest mode that probe finds to work, none that
// is weaker than wanted. It never tries ModeNone.
func strongest(wanted string, probe func(sandbox.Mode) (*sandbox.Starter, error)) (*sandbox.Starter, error) {
	var refused []error
	for _, mode := range config.IsolationModes(wanted) {
		if mode == sandbox.ModeNone {
			break // only if it was asked for
		}
		starter, err := probe(mode)
		if err == nil {
			return starter, nil
		}
		if !errors.Is(err, sandbox.ErrUnavailable) {
			return nil, err
		}
		refused = append(refused, err)
	}
	return nil, fmt.Errorf("isolation %s: %w", wanted, errors.Join(refused...))
}
