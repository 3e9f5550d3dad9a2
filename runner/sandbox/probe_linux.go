package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/runner/folders"
	"github.com/holdfast-dev/holdfast/runner/sandbox/internal/stage"
)

// Options are what Probe is given.
type Options struct {
	Mode    Mode   // the only one to take; empty means the strongest that works, never ModeNone
	Slot    Slot   // whom a probing start is, in modes for which OwnUser holds
	Program string // a program that the slot's user can start, which imports this package; empty means this one
	// Hold is called before anything is started, or killed, as Slot in a mode that may work.
	// Its error is why that one does not, and the end of Probe if it is an ErrUserHeld. Nil
	// means that nobody else has the user.
	Hold func(Mode) error
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
		if err == nil && mode.OwnUser() && o.Hold != nil {
			err = o.Hold(mode)
		}
		if errors.Is(err, ErrUserHeld) {
			return nil, err
		}
		if err == nil {
			err = s.try(ctx, o)
		}
		if err == nil && mode.OwnUser() {
			err = s.handOver(ctx, o.Slot)
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
	if s.mode.OwnUser() && !maySignal() {
		return errors.New("the agent lacks the capability KILL: it could not interrupt an engine")
	}
	return nil
}

// maySignal says whether this process may signal those of other users.
func maySignal() bool {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&head, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_KILL) != 0
}

// handOver does with files what an agent does for a run: it gives a workspace to the
// slot's user, takes a file from where only that user can go, and removes all of it. An
// agent that may change users, and is kept from their folders, could do nothing else.
func (s *Starter) handOver(ctx context.Context, slot Slot) (err error) {
	dir, err := os.MkdirTemp("", "holdfast-probe-")
	if err != nil {
		return fmt.Errorf("make folder for temporary files: %w", err)
	}
	defer func() {
		if removed := folders.RemoveAll(dir); err == nil && removed != nil {
			err = fmt.Errorf("clear the workspace of another user: %w", removed)
		}
	}()
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(work, "plan"), nil, 0o600); err != nil {
		return err
	}
	// What is in such a folder is removed by whoever owns it only, or has the right to.
	if err := os.Chmod(work, 0o700|os.ModeSticky); err != nil {
		return err
	}
	if err := s.Give(ctx, work, slot); err != nil {
		return err
	}
	return s.Take(work, "plan", slot, 0, filepath.Join(dir, "taken"))
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
