package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "github.com/holdfast-dev/holdfast/api/v1"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
	"github.com/holdfast-dev/holdfast/report"
)

func newDriftCommand(a *app) *cobra.Command {
	return cli.NewGroup("drift", "Run drift checks", newDriftCheckCommand(a))
}

func newDriftCheckCommand(a *app) *cobra.Command {
	var (
		conn   cli.Connection
		format string
		wait   bool
	)
	c := &cobra.Command{
		Use:   "check CLUSTER",
		Short: "Check a cluster for drift now",
		Long: `Check whether a cluster still matches its last apply. A check that is already queued or
running is used instead of a new one.

With --wait, the command shows the result. The exit code is then 0, with or without
drift, or 3 if the check failed or was canceled.`,
		Args: cli.Exactly(1, "a cluster's name"),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			run, err := cl.CheckDrift(c.Context(), args[0])
			if err != nil {
				return err
			}
			if !wait {
				return a.Print(format, run, func() string {
					return fmt.Sprintf("%s checks %s for drift; then see: holdfast describe drift %[2]s\n", run.ID, run.Cluster)
				})
			}
			return a.awaitDrift(c.Context(), cl, format, run)
		},
	}
	cli.AddConnectionFlags(c, &conn)
	a.Complete(c, &conn, 1, cli.ClusterNames)
	cli.AddFormatFlag(c, &format)
	c.Flags().BoolVarP(&wait, "wait", "w", false, "follow the check to its end, and show the result")
	return c
}

// awaitDrift waits for a check, reports its progress on the error output, and
// shows what it found.
func (a *app) awaitDrift(ctx context.Context, cl *client.Client, format string, run v1.Run) error {
	run, err := a.awaitEnd(ctx, cl, run)
	if err != nil {
		return err
	}
	if !run.Status.Good() {
		return a.outcome(run)
	}
	found, err := a.awaitReport(ctx, cl, run)
	if err != nil {
		return err
	}
	return a.Print(format, found, func() string { return table.Clean(report.DriftText(found.Report())) })
}

// awaitEnd waits until a run has ended. What it does meanwhile is shown on the
// error output, each thing once.
func (a *app) awaitEnd(ctx context.Context, cl *client.Client, run v1.Run) (v1.Run, error) {
	told := ""
	for patience := a.patience(); ; {
		if run.ID != "" {
			if run.Status.Done() {
				return run, nil
			}
			if now := table.Joined(string(run.Status), table.Joined(run.Step, run.Detail)); now != told {
				fmt.Fprintf(a.Err, "%s: %s\n", run.ID, table.OneLine(now))
				told = now
			}
		}
		if err := cli.Pause(ctx, a.Poll); err != nil {
			return run, err
		}
		next, err := cl.Run(ctx, run.ID)
		if err := patience.judge(err); err != nil {
			return run, err
		}
		if err == nil {
			run = next
		}
	}
}

// reportAppears is how long what a check found may take to be known.
const reportAppears = time.Minute

// awaitReport returns what a check that has ended found.
func (a *app) awaitReport(ctx context.Context, cl *client.Client, run v1.Run) (v1.DriftReport, error) {
	ctx, cancel := context.WithTimeout(ctx, reportAppears)
	defer cancel()
	for patience := a.patience(); ; {
		found, err := cl.Drift(ctx, run.Cluster)
		if err := patience.judge(err); err != nil {
			return found, err
		}
		// A newer check has a greater id: ids begin with the time.
		if err == nil && found.State.Run >= run.ID {
			return found, nil
		}
		if err := cli.Pause(ctx, a.Poll); errors.Is(err, context.DeadlineExceeded) {
			return found, hint.New(
				fmt.Errorf("the check has ended, and its result was not accepted: %s", run.ID),
				"the cluster may have been applied in the meantime: check again",
			)
		} else if err != nil {
			return found, err
		}
	}
}
