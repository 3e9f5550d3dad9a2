package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	_ "time/tzdata"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint" // time zones of schedules, in images that have none
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
	"github.com/holdfast-dev/holdfast/internal/clock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks to stop; a second one does not wait for it.
	context.AfterFunc(ctx, stop)
	now, err := clock.OfProcess()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(cli.ExitError)
	}
	a := app{&cli.App{In: os.Stdin, Getenv: os.Getenv, Poll: time.Second, Version: buildVersion()}}
	a.Printer = table.Printer{Out: os.Stdout, Err: os.Stderr, Now: now, Terminal: isTerminal(os.Stdout)}
	if a.Terminal {
		a.Width = terminalWidth(os.Stdout)
	}
	a.Colour = a.Terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	os.Exit(a.run(ctx, os.Args[1:]))
}

// app is what commands share.
type app struct{ *cli.App }

// run executes one command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	root := newRootCommand(a)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return cli.ExitOK
	}
	code := cli.ExitError
	var exit *cli.ExitCodeError
	var answered *client.Error
	switch {
	case errors.As(err, &exit):
		code = exit.Code
	case errors.As(err, &answered) && answered.Refused():
		code = cli.ExitRun
	case isUnknownCommand(err):
		code = cli.ExitUsage
	}
	if exit == nil || exit.Err != nil {
		fmt.Fprintln(a.Err, "Error:", table.Clean(saidOnce(err.Error())))
	}
	if todo := hint.Of(err); todo != "" {
		fmt.Fprintln(a.Err, "Hint: ", table.Clean(todo))
	}
	return code
}

// isUnknownCommand recognises cobra's error for a word that is not a command, which has
// no type.
func isUnknownCommand(err error) bool {
	return strings.HasPrefix(err.Error(), "unknown command ")
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// terminalWidth is how many characters a line has room for, zero if it cannot be known.
func terminalWidth(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

// saidOnce takes out of an error what its next part says again, as where a server and
// its store both name a run: each layer adds what it knows.
func saidOnce(text string) string {
	parts := strings.Split(text, ": ")
	kept := parts[:0]
	for i, part := range parts {
		if i+1 < len(parts) && strings.HasSuffix(part, parts[i+1]) {
			continue
		}
		kept = append(kept, part)
	}
	return strings.Join(kept, ": ")
}
