//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"
)

// Options are what Probe is given.
type Options struct {
	Mode    Mode             // the only one to take; empty means the strongest that works, never ModeNone
	Slot    Slot             // not used on this platform
	Program string           // not used on this platform
	Hold    func(Mode) error // not used on this platform
}

// HoldUsers holds nothing: on this platform engines have no users of their own.
func HoldUsers(int, int) (release func(), err error) { return func() {}, nil }

// shown is empty: on this platform there are no sandboxes.
func (m Mode) shown() []string { return nil }

// Starter starts engines without isolation: this platform has no other mode.
type Starter struct{}

// Probe returns a Starter if o asks for ModeNone, otherwise ErrUnavailable.
func Probe(_ context.Context, o Options) (*Starter, error) {
	if o.Mode != ModeNone {
		return nil, refusals([]Refusal{{Mode: o.Mode, Err: errors.New("isolation needs Linux")}})
	}
	return &Starter{}, nil
}

// Mode returns ModeNone.
func (s *Starter) Mode() Mode { return ModeNone }

// Counted says that nothing counts what a start uses.
func (s *Starter) Counted() error { return errors.New("control groups need Linux") }

// Refused returns nothing: there is no stronger mode.
func (s *Starter) Refused() []Refusal { return nil }

// Harden does nothing on this platform.
func Harden() error { return nil }

// Run starts c and returns how it ended, when it and its process group are
// dead. When ctx ends, c gets SIGINT, and SIGKILL after c.Grace.
func (s *Starter) Run(ctx context.Context, c Command) (Exit, error) {
	cmd := exec.CommandContext(ctx, c.Path, c.Args...)
	cmd.Dir, cmd.Env = c.Dir, []string{}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		cmd.Env = append(cmd.Env, name+"="+c.Env[name])
	}
	cmd.Stdout, cmd.Stderr = hidden(c.Stdout), hidden(c.Stderr)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		if c.Grace == 0 {
			return cmd.Process.Kill()
		}
		return cmd.Process.Signal(os.Interrupt)
	}
	cmd.WaitDelay = max(c.Grace, 2*time.Second)
	if err := cmd.Start(); err != nil {
		return Exit{}, fmt.Errorf("start %s: %w", c.Path, err)
	}
	err := cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) && !errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil {
		return Exit{}, fmt.Errorf("run %s: %w", c.Path, err)
	}
	exit := Exit{Code: cmd.ProcessState.ExitCode()}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		exit.Signal = status.Signal()
	}
	return exit, nil
}

// Delegate makes no control group: this system has none.
func Delegate(string, int) (string, error) {
	return "", errors.New("control groups need Linux")
}

// hidden keeps os/exec from handing a file to the engine: it gets pipes only.
func hidden(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return struct{ io.Writer }{w}
}

// open opens name below dir without following a link at its end.
func open(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		return nil, err
	}
	return root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}
