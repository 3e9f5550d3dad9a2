// Command holdfast is Holdfast: the server, its agents, and the client with
// which people look at a fleet and command it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	_ "time/tzdata" // time zones of schedules, in images that have none

	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
)

// Exit codes. The root command's help tells them.
const (
	exitOK    = 0
	exitError = 1 // something did not work
	exitUsage = 2 // the command line is wrong
	exitRun   = 3 // a run failed, was held or canceled, or a command was refused
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks to stop; a second one does not wait for it.
	context.AfterFunc(ctx, stop)
	a := app{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		getenv: os.Getenv, now: time.Now, poll: time.Second,
		terminal: isTerminal(os.Stdout),
	}
	a.colour = a.terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	os.Exit(a.run(ctx, os.Args[1:]))
}

// app is what commands have of the world.
type app struct {
	in       io.Reader
	out      io.Writer
	err      io.Writer
	getenv   func(string) string
	now      func() time.Time
	poll     time.Duration // how often what is waited for is looked at
	terminal bool          // out is one: it must not be given control sequences
	colour   bool          // it wants colours
}

// run executes one command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	root := newRootCommand(a)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	code := exitError
	var exit *exitCodeError
	switch {
	case errors.As(err, &exit):
		code = exit.code
	case isUnknownCommand(err):
		code = exitUsage
	}
	if exit == nil || exit.err != nil {
		fmt.Fprintln(a.err, "Error:", clean(err.Error()))
	}
	if todo := hint.Of(err); todo != "" {
		fmt.Fprintln(a.err, "Hint: ", clean(todo))
	}
	return code
}

// exitCodeError gives an error an exit code. A nil err has been told already.
type exitCodeError struct {
	code int
	err  error
}

func (e *exitCodeError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitCodeError) Unwrap() error { return e.err }

func usageError(format string, args ...any) error {
	return &exitCodeError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// isUnknownCommand tells cobra's error for a word that is not a command: it has no
// type of its own.
func isUnknownCommand(err error) bool {
	return strings.HasPrefix(err.Error(), "unknown command ")
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
