package secrets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/runner/failure"
)

// command is one start of a program of ours: what a secret store is asked with. It has
// an explicit environment, SIGINT and a grace before SIGKILL, its own process group,
// and dies with its parent. Engines are started in a sandbox.
type command struct {
	path   string
	dir    string
	env    map[string]string
	args   []string
	stdout io.Writer // nil discards
	stderr io.Writer // nil discards
	grace  time.Duration
}

// run starts the engine and waits for its end. The error is a *failure.ExitError if
// it ran; whether ctx ended is for the caller to see. Children that the engine
// leaves behind are killed.
func (c command) run(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// The kernel's parent of the engine is this thread: it must outlive it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	cmd := exec.CommandContext(ctx, c.path, c.args...)
	cmd.Dir = c.dir
	cmd.Env = environ(c.env)
	cmd.Stdout, cmd.Stderr = c.stdout, c.stderr
	cmd.SysProcAttr = engineAttributes()
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = c.grace
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", c.path, err)
	}
	err := cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what the engine left in its group

	state := cmd.ProcessState
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return &failure.ExitError{Code: -1, Signal: status.Signal()}
	}
	if code := state.ExitCode(); code != 0 {
		return &failure.ExitError{Code: code}
	}
	if err == nil || errors.Is(err, exec.ErrWaitDelay) || ctx.Err() != nil {
		return nil // it ended well, even if a child held its output or we had just interrupted it
	}
	return fmt.Errorf("run %s: %w", c.path, err)
}

// environ returns env in the form of os/exec, never nil: nil would inherit.
func environ(env map[string]string) []string {
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}
