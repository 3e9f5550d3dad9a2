package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/show"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

func newLogsCommand(a *app) *cobra.Command {
	var (
		conn    cli.Connection
		follow  bool
		attempt int
	)
	c := &cobra.Command{
		Use:   "logs RUN",
		Short: "Print a run's log",
		Long: `Print the log of a run's last attempt, or of another one.

With --follow, the command waits for the run to begin, prints the log as it grows, and
continues with the next attempt if there is one. It ends with the run: with exit code 0,
or 3 if the run failed, was held or canceled.`,
		Args: cli.Exactly(1, "a run's ID"),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			if !follow {
				return a.copyLog(c.Context(), cl, args[0], attempt)
			}
			run, err := a.followRun(c.Context(), cl, a.logOut(), args[0], attempt)
			if err != nil {
				return err
			}
			return a.outcome(run)
		},
	}
	cli.AddConnectionFlags(c, &conn)
	a.Complete(c, &conn, 1, cli.RunIDs)
	c.Flags().BoolVarP(&follow, "follow", "f", false, "continue until the run ends")
	c.Flags().IntVar(&attempt, "attempt", 0, "attempt number (default: the last one); with --follow, start with this one")
	return c
}

// logOut returns where a log goes: a terminal is not given everything.
func (a *app) logOut() io.Writer {
	if a.Terminal {
		return &table.CalmWriter{Out: a.Out, Colour: a.Colour}
	}
	return a.Out
}

func (a *app) copyLog(ctx context.Context, cl *client.Client, id string, attempt int) error {
	log, err := cl.Log(ctx, id, attempt, 0, false)
	if err != nil {
		return err
	}
	defer log.Close()
	if _, err := io.Copy(a.logOut(), log); err != nil {
		return fmt.Errorf("read log of %s: %w", id, err)
	}
	return nil
}

// logOutFor returns where logs go of a command that answers in a format: what is for
// programs is printed alone, and the logs go to the error output.
func (a *app) logOutFor(format string) io.Writer {
	if format == "table" {
		return a.logOut()
	}
	return &table.CalmWriter{Out: a.Err, Colour: a.Colour} // it may be a terminal
}

// followRun prints a run's log, attempt after attempt, until the run has ended,
// and returns it. What it waits for is shown on the error output.
func (a *app) followRun(ctx context.Context, cl *client.Client, out io.Writer, id string, from int) (v1.Run, error) {
	shown, told := max(from-1, 0), ""
	for patience := a.patience(); ; {
		run, err := cl.Run(ctx, id)
		if err = patience.judge(err); err != nil {
			return run, err
		}
		if run.ID != "" {
			if from == 0 && shown == 0 && run.Attempt > 1 {
				shown = run.Attempt - 1 // as without --follow: the last attempt
			}
			if shown < run.Attempt {
				shown++
				if err := a.followAttempt(ctx, cl, out, id, shown); err != nil {
					return run, err
				}
				continue
			}
			if run.Status.Done() {
				return run, nil
			}
			if now := table.Joined(string(run.Status), table.Joined(string(run.Reason), run.Detail)); run.Status.Pending() && now != told {
				fmt.Fprintf(a.Err, "%s: %s\n", id, table.OneLine(now))
				told = now
			}
		}
		if err := cli.Pause(ctx, a.Poll); err != nil {
			return run, err
		}
	}
}

// followAttempt prints one attempt's log until it ends. A connection that was
// cut is made again, and continues where it was.
func (a *app) followAttempt(ctx context.Context, cl *client.Client, out io.Writer, id string, attempt int) error {
	var offset int64
	for patience := a.patience(); ; {
		log, err := cl.Log(ctx, id, attempt, offset, true)
		if err == nil {
			var n int64
			n, err = copyUntilCut(out, log)
			offset += n
			if n > 0 {
				patience = a.patience()
			}
			if err == nil {
				return nil
			}
		}
		if err := patience.judge(err); err != nil {
			return fmt.Errorf("follow log of %s: %w", id, err)
		}
		if err := cli.Pause(ctx, a.Poll); err != nil {
			return err
		}
	}
}

// copyUntilCut distinguishes a cut connection, which is worth another try, from an
// output that accepts no more.
func copyUntilCut(out io.Writer, log io.ReadCloser) (int64, error) {
	defer log.Close()
	source := &cutReader{Reader: log}
	n, err := io.Copy(out, source)
	if source.err != nil {
		return n, &client.UnreachableError{Err: fmt.Errorf("connection was cut: %w", source.err)}
	}
	return n, err
}

type cutReader struct {
	io.Reader
	err error
}

func (r *cutReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// patience bounds how often in a row a server may be unreachable before a follower
// gives up: about a minute, long enough for a restart.
type patience struct {
	left int
	said func(error) // is called for the first of them
}

// tries is how many failures in a row are too many.
const tries = 60

func (a *app) patience() *patience {
	return &patience{left: tries, said: func(err error) { cli.SayRetried(a.Err, err) }}
}

// judge returns the errors that are not worth another try.
func (p *patience) judge(err error) error {
	if err == nil {
		p.left = tries
		return nil
	}
	p.left--
	if !errors.Is(err, holdfast.ErrUnavailable) || p.left <= 0 {
		return err
	}
	if p.left == tries-1 {
		p.said(err)
	}
	return nil
}

// outcome says how a run ended, on the error output, and returns what that
// means for the exit code.
func (a *app) outcome(run v1.Run) error {
	text := table.Joined(string(run.Status), table.Joined(string(run.Reason), run.Detail))
	if counts := show.CountsText(run.Counts); counts != "" {
		text += " [" + counts + "]"
	}
	fmt.Fprintf(a.Err, "%s %s of %s: %s\n", run.ID, run.Kind, run.Cluster, table.OneLine(text))
	if run.Failure != nil {
		fmt.Fprint(a.Err, a.Fields(
			[2]string{"Cause", run.Failure.Summary}, [2]string{"At", run.Failure.Address}, [2]string{"Hint", run.Failure.Hint},
			[2]string{"More", "holdfast describe run " + run.ID}))
	}
	// An apply that ended planned was held: what it found is not what was reviewed.
	held := run.Kind.Writes() && run.Status == holdfast.RunPlanned
	if !run.Status.Good() || held {
		return &cli.ExitCodeError{Code: cli.ExitRun}
	}
	return nil
}
