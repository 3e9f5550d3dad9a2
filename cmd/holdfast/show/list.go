package show

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

// list is a get command: how it is called, what it asks the server for, and the
// columns that show the answer.
type list[T any] struct {
	use, short, long, example string
	aliases                   []string
	args                      cobra.PositionalArgs
	fetch                     func(ctx context.Context, cl *client.Client, args []string) ([]T, error)
	// known returns an error if the arguments name what does not exist, which fetch leaves
	// out; nil: there are no such arguments, or fetch returns it.
	known   func(ctx context.Context, cl *client.Client, args []string, items []T) error
	columns []column[T]
	// without is the title of a column that the flags make the same in each row, which
	// is left out; nil, or an empty title: none.
	without func() string
	empty   string // what is printed where there is none
	limit   *int   // the most that fetch returns, as --limit says; nil: all
	// text prints the answer in another way than as a table; nil: never. It is
	// asked with the arguments, and whether -o wide is given.
	text func(items []T, args []string, wide bool) (string, bool)
}

// column shows one thing of an item.
type column[T any] struct {
	table.Column
	cell func(T) table.Cell
}

// text is a column without colours.
func text[T any](c table.Column, of func(T) string) column[T] {
	return column[T]{c, func(item T) table.Cell { return table.Cell{Text: of(item)} }}
}

func coloured[T any](c table.Column, of func(T) table.Cell) column[T] { return column[T]{c, of} }

func tableOf[T any](p *table.Printer, columns []column[T], items []T) string {
	return p.Table(columnsOf(columns), rowsOf(columns, items))
}

func columnsOf[T any](columns []column[T]) []table.Column {
	out := make([]table.Column, len(columns))
	for i, c := range columns {
		out[i] = c.Column
	}
	return out
}

func rowsOf[T any](columns []column[T], items []T) [][]table.Cell {
	rows := make([][]table.Cell, len(items))
	for i, item := range items {
		for _, c := range columns {
			rows[i] = append(rows[i], c.cell(item))
		}
	}
	return rows
}

const wide = "wide"

// newList returns the command of a list. The caller adds the flags that filter it.
func newList[T any](a *app, conn *cli.Connection, l list[T]) *cobra.Command {
	var format string
	var watch bool
	c := &cobra.Command{
		Use: l.use, Aliases: l.aliases, Short: l.short, Long: l.long, Example: l.example, Args: l.args,
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := a.Connect(*conn)
			if err != nil {
				return err
			}
			show := func(p *table.Printer) (any, error) {
				items, err := l.fetch(c.Context(), cl, args)
				if err != nil {
					return nil, err
				}
				if l.known != nil && !watch { // what does not exist yet may be watched for
					if err := l.known(c.Context(), cl, args, items); err != nil {
						return nil, err
					}
				}
				if l.limit != nil && len(items) == *l.limit && !watch {
					fmt.Fprintf(a.Err, "only the first %d are shown, there may be more: see --limit\n", *l.limit)
				}
				return items, p.Print(format, table.NotNil(items), func() string { return l.print(p, items, args, format) })
			}
			if watch {
				return a.watch(c.Context(), show)
			}
			_, err = show(&a.Printer)
			return err
		},
	}
	cli.AddConnectionFlags(c, conn)
	cli.AddFormatFlag(c, &format, wide)
	c.Flags().BoolVarP(&watch, "watch", "w", false, "show every change, until interrupted")
	return c
}

func (l list[T]) print(p *table.Printer, items []T, args []string, format string) string {
	if len(items) == 0 {
		return l.empty + "\n"
	}
	if l.text != nil {
		if out, ok := l.text(items, args, format == wide); ok {
			return out
		}
	}
	if format == wide {
		all := *p
		all.Width = 0
		p = &all
	}
	columns := l.columns
	if l.without != nil {
		columns = slices.DeleteFunc(slices.Clone(columns), func(c column[T]) bool { return c.Title == l.without() })
	}
	return tableOf(p, columns, items)
}

const (
	clearScreen = "\x1b[H\x1b[2J\x1b[3J"
	watchEvery  = 2 * time.Second
	watchMisses = 30 // in a row; a restart of the server takes less
)

// watch shows something again whenever it has changed, until it is interrupted. A
// terminal shows the newest only, with its ages; elsewhere each one follows the one before,
// and an age that has grown is not a change. show returns what it prints.
func (a *app) watch(ctx context.Context, show func(*table.Printer) (any, error)) error {
	var shown []byte
	var last any
	every := min(watchEvery, 2*a.Poll)
	for misses := 0; ; {
		p, out := a.Buffered()
		found, err := show(p)
		switch {
		case ctx.Err() != nil:
			return nil // interrupted: that is how it ends
		case errors.Is(err, holdfast.ErrUnavailable) && misses < watchMisses:
			if misses++; misses == 1 {
				cli.SayRetried(a.Err, err)
			}
			if a.Terminal {
				shown = nil // what was reported is cleared with the next answer
			}
		case err != nil:
			return err
		default:
			misses = 0
			if same := !a.Terminal && reflect.DeepEqual(found, last); !same && !slices.Equal(shown, out.Bytes()) {
				shown, last = slices.Clone(out.Bytes()), found
				if a.Terminal {
					fmt.Fprint(a.Out, clearScreen)
				}
				if _, err := a.Out.Write(shown); err != nil {
					return fmt.Errorf("write output: %w", err)
				}
			}
		}
		if cli.Pause(ctx, every) != nil {
			return nil
		}
	}
}
