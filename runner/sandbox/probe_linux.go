package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/holdfast-dev/holdfast/runner/sandbox/internal/stage"
)

// Options are what Probe is given.
type Options struct {
	Mode    Mode   // the only one to take; empty means the strongest that works, never ModeNone
	Slot    Slot   // whom a probing start is, in modes for which OwnUser holds
	Program string // a program that the slot's user can start, which imports this package; empty means this one
}

// Probe returns a Starter of the strongest mode that a probing start shows to
// work. If none does, or not the one that was asked for, the error is
// ErrUnavailable and says why.
func Probe(ctx context.Context, o Options) (*Starter, error) {
	if o.Program == "" {
		path, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("probe isolation: %w", err)
		}
		o.Program = path
	}
	modes := Modes()[:len(Modes())-1]
	if o.Mode != "" {
		modes = []Mode{o.Mode}
	}
	groups, grouped := findGroups(kernelTree{}, markedDelegated)
	var refused []Refusal
	for _, mode := range modes {
		s := &Starter{mode: mode, refused: refused, groups: groups, grouped: grouped}
		err := s.possible()
		if err == nil {
			err = s.try(ctx, o)
		}
		if err == nil {
			return s, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		refused = append(refused, Refusal{Mode: mode, Err: err})
	}
	return nil, refusals(refused)
}

// possible says what no probing start is needed for.
func (s *Starter) possible() error {
	root, mapped := os.Geteuid() == 0, inUserNamespace()
	switch s.mode {
	case ModeSlots:
		if !root || mapped {
			return errors.New("the agent is not root")
		}
	case ModeRange:
		if !root || !mapped {
			return errors.New("the agent is not in a user namespace that root made for it")
		}
	case ModeUserNamespace:
		if root {
			return errors.New("the agent is root")
		}
	case ModeLandlock:
		// As root, what is seen but not read could still be changed.
		if root {
			return errors.New("the agent is root")
		}
		if abi := stage.LandlockABI(); abi < stage.LandlockScope {
			return fmt.Errorf("version %d of Landlock does not scope signals: Linux 6.12 does", abi)
		}
	case ModeUsers, ModeNone:
	default:
		return fmt.Errorf("there is no mode %q", s.mode)
	}
	return nil
}

// inUserNamespace says whether users of this process are not those of the host.
func inUserNamespace() bool {
	b, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && strings.Join(strings.Fields(string(b)), " ") != "0 0 4294967295"
}

// try starts a program that ends at once.
func (s *Starter) try(ctx context.Context, o Options) error {
	exit, err := s.Run(ctx, Command{
		Path: o.Program, Dir: "/", Env: map[string]string{stage.Mark: "probe"}, Slot: o.Slot,
	})
	if err != nil {
		return err
	}
	if exit.Code != stage.ProbeCode {
		return fmt.Errorf("a probing start ended with code %d, signal %d", exit.Code, exit.Signal)
	}
	return nil
}
