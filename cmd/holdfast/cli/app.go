package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
	"github.com/holdfast-dev/holdfast/internal/nearest"

	"github.com/spf13/cobra"
)

// Exit codes, as in the help of the root command.
const (
	ExitOK    = 0
	ExitError = 1 // something did not work
	ExitUsage = 2 // the command line is wrong
	ExitRun   = 3 // a run failed, was held or canceled, or a command was refused
)

// App is what commands share.
type App struct {
	table.Printer
	In      io.Reader
	Getenv  func(string) string
	Poll    time.Duration // how often what is waited for is looked at
	Version string        // of this binary
}

// ExitCodeError gives an error an exit code. A nil err has been reported already.
type ExitCodeError struct {
	Code int
	Err  error
}

func (e *ExitCodeError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitCodeError) Unwrap() error { return e.Err }

// UsageError says that the command line is wrong: exit code 2.
func UsageError(format string, args ...any) error {
	return &ExitCodeError{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// Exactly makes a wrong number of arguments a usage error that says what is
// wanted.
func Exactly(n int, want string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return WrongArguments(c, args, want)
	}
}

// AtLeast makes too few arguments a usage error that says what is wanted.
func AtLeast(n int, want string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) >= n {
			return nil
		}
		return WrongArguments(c, args, want)
	}
}

// WrongArguments is the usage error of a number of arguments that is not right.
func WrongArguments(c *cobra.Command, args []string, want string) error {
	return hint.New(
		UsageError("%s takes %s, got %d arguments", c.CommandPath(), want, len(args)),
		"see "+c.CommandPath()+" --help",
	)
}

// NewGroup returns a command that only has others below it.
func NewGroup(use, short string, below ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			names := make([]string, len(below))
			for i, b := range below {
				names[i] = b.Name()
			}
			if len(args) == 0 {
				return UsageError("%s: want %s", c.CommandPath(), table.OrList(names))
			}
			return UsageError("%s does not know %q: want %s", c.CommandPath(), args[0], table.OrList(names))
		},
	}
	c.AddCommand(below...)
	return c
}

// AddFormatFlag adds -o: how an answer is printed. It is a format everywhere; what
// commands write to a file is named by --out. more are formats of this command's own.
func AddFormatFlag(c *cobra.Command, format *string, more ...string) {
	formats := append(append([]string{"table"}, more...), "json", "yaml")
	c.Flags().StringVarP(format, "output", "o", "table", "output format: "+table.OrList(formats))
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	checked := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		if err := OneOf("output", *format, formats); err != nil {
			return err
		}
		if checked != nil {
			return checked(c, args)
		}
		return nil
	}
}

// OneOf refuses a flag's value that is not one of some words, and suggests the nearest.
func OneOf(flag, value string, words []string) error {
	if slices.Contains(words, value) {
		return nil
	}
	err := UsageError("--%s %q: want %s", flag, value, table.OrList(words))
	if near := nearest.Of(value, words); near != "" && len(value) > 3 { // short words are all near
		return hint.New(err, fmt.Sprintf("did you mean %s?", near))
	}
	return err
}

// SayRetried reports a server that is unreachable to whoever waits for it.
func SayRetried(out io.Writer, err error) {
	fmt.Fprintf(out, "%s; retrying for about a minute\n", table.Clean(err.Error()))
}

// Pause waits, and returns why it could not.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
