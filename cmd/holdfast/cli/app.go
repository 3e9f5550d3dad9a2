package cli

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
	"github.com/spf13/cobra"
)

// Exit codes. The root command's help tells them.
const (
	ExitOK    = 0
	ExitError = 1 // something did not work
	ExitUsage = 2 // the command line is wrong
	ExitRun   = 3 // a run failed, was held or canceled, or a command was refused
)

// App is what commands have of the world.
type App struct {
	table.Printer
	In      io.Reader
	Getenv  func(string) string
	Poll    time.Duration // how often what is waited for is looked at
	Version string        // of this binary
}

// ExitCodeError gives an error an exit code. A nil err has been told already.
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

func AtLeast(n int, want string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) >= n {
			return nil
		}
		return WrongArguments(c, args, want)
	}
}

func WrongArguments(c *cobra.Command, args []string, want string) error {
	return hint.New(
		UsageError("%s takes %s, got %d arguments", c.CommandPath(), want, len(args)),
		"see "+c.CommandPath()+" --help",
	)
}

// newGroupCommand returns a command that only has others below it.
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
				return UsageError("%s takes what to %s: %s", c.CommandPath(), c.Name(), table.OrList(names))
			}
			return UsageError("%s does not know %q: want %s", c.CommandPath(), args[0], table.OrList(names))
		},
	}
	c.AddCommand(below...)
	return c
}

var formats = []string{"table", "json", "yaml"}

func AddFormatFlag(c *cobra.Command, format *string) {
	c.Flags().StringVarP(format, "output", "o", "table", "how to print: table, json or yaml")
	checked := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		if !slices.Contains(formats, *format) {
			return UsageError("output %q: want table, json or yaml", *format)
		}
		if checked != nil {
			return checked(c, args)
		}
		return nil
	}
}
