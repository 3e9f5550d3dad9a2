package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
)

func newStateCommand(a *app) *cobra.Command {
	c := cli.NewGroup("state", "Recover a state that could not be saved, or migrate one",
		newStateGetCommand(a), newStatePushCommand(a), newStateWaiveCommand(a), newStateMigrateCommand(a))
	c.Long = `Move states to another place (migrate), and manage states that could not be saved (StateUnsaved) because the backend failed
during an apply. Nothing is planned or applied on such a cluster until the state is
pushed, which Holdfast retries automatically, or given up. The commands require the
role operator.`
	return c
}

func newStateGetCommand(a *app) *cobra.Command {
	var conn cli.Connection
	var out string
	c := &cobra.Command{
		Use:   "get CLUSTER",
		Short: "Write the state that could not be saved",
		Long: `Write the state that an apply of the cluster could not save, to a file or to
standard output. The state contains secrets in clear text. The audit trail records
who read it.`,
		Example: "  holdfast state get prod-eu --out rescued.tfstate",
		Args:    cli.Exactly(1, "a cluster's name"),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			body, err := cl.UnsavedState(c.Context(), args[0])
			if err != nil {
				return err
			}
			defer body.Close()
			return a.writeState(body, out)
		},
	}
	cli.AddConnectionFlags(c, &conn)
	a.Complete(c, &conn, 1, cli.ClusterNames)
	c.Flags().StringVar(&out, "out", "-", "the file to write, with mode 0600; it must not exist")
	return c
}

func (a *app) writeState(from io.Reader, name string) error {
	if name == "-" {
		if _, err := io.Copy(a.Out, from); err != nil {
			return fmt.Errorf("write the state: %w", err)
		}
		return nil
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	_, err = io.Copy(file, from)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("write the state to %s: %w", name, err)
	}
	return nil
}

func newStatePushCommand(a *app) *cobra.Command {
	var conn cli.Connection
	var format string
	c := &cobra.Command{
		Use:   "push CLUSTER [FILE]",
		Short: "Push the state that could not be saved, now",
		Long: `Queue a run that pushes the state which an apply of the cluster could not save, or a
file instead. An agent for applies pushes it, with the cluster's credentials; the engine
compares lineage and serial with those in the backend.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return cli.WrongArguments(c, args, "a cluster's name, and optionally a file")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			var data []byte
			if len(args) == 2 {
				if data, err = os.ReadFile(args[1]); err != nil {
					return fmt.Errorf("read the state: %w", err)
				}
				if !json.Valid(data) {
					return fmt.Errorf("read the state: %s is not JSON", args[1])
				}
			}
			run, err := cl.PushState(c.Context(), args[0], data)
			if err != nil {
				return err
			}
			return a.Print(format, run, func() string {
				return fmt.Sprintf("%s pushes the state of %s; follow it with: holdfast logs %s --follow\n", run.ID, args[0], run.ID)
			})
		},
	}
	cli.AddConnectionFlags(c, &conn)
	a.Complete(c, &conn, 1, cli.ClusterNames)
	cli.AddFormatFlag(c, &format)
	return c
}

func newStateWaiveCommand(a *app) *cobra.Command {
	var conn cli.Connection
	var format, reason string
	c := &cobra.Command{
		Use:   "waive CLUSTER --reason TEXT",
		Short: "Give up the state that could not be saved",
		Long: `Give up the state that an apply of the cluster could not save. Plans continue with
the state in the backend: resources that are recorded only in the lost state will be
created again, unless they are imported. The reason is recorded.`,
		Args: cli.Exactly(1, "a cluster's name"),
		RunE: func(c *cobra.Command, args []string) error {
			if reason == "" {
				return cli.UsageError("--reason is missing: it is recorded")
			}
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			u, err := cl.WaiveState(c.Context(), args[0], reason)
			if err != nil {
				return err
			}
			return a.Print(format, u, func() string {
				return fmt.Sprintf("gave up the state that %s could not save; %s is planned with the state that its backend has\n", u.Run, args[0])
			})
		},
	}
	cli.AddConnectionFlags(c, &conn)
	a.Complete(c, &conn, 1, cli.ClusterNames)
	cli.AddFormatFlag(c, &format)
	c.Flags().StringVar(&reason, "reason", "", "why it may be given up")
	return c
}

func newStateMigrateCommand(a *app) *cobra.Command {
	var conn cli.Connection
	var format string
	var req v1.MigrateStateRequest
	c := &cobra.Command{
		Use:   "migrate CLUSTER",
		Short: "Move a cluster's state to its new place",
		Long: `Queue a run that moves the state of a cluster to the place that its code, its document
or its runner defines (StateWouldMove). An agent for applies moves it, with the cluster's
credentials: a plan of the last apply must have no changes, the state is copied with its
lineage and serial, and the same plan must have no changes at the new place. Only then
is the new place used. If anything fails, or the run dies, the current place stays in
use, and the command can be repeated. The state at the former place is kept.`,
		Example: "  holdfast state migrate prod-eu --dry-run",
		Args:    cli.Exactly(1, "a cluster's name"),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			m, err := client.MigrateState(c.Context(), cl, args[0], req)
			if err != nil {
				return err
			}
			return a.Print(format, m, func() string {
				if m.Run == "" {
					return fmt.Sprintf("the state of %s would move from %s to %s\n", m.Cluster, m.From, m.To)
				}
				return fmt.Sprintf("%s moves the state of %s from %s to %s; follow it with: holdfast logs %s --follow\n", m.Run, m.Cluster, m.From, m.To, m.Run)
			})
		},
	}
	cli.AddConnectionFlags(c, &conn)
	a.Complete(c, &conn, 1, cli.ClusterNames)
	cli.AddFormatFlag(c, &format)
	c.Flags().BoolVar(&req.DryRun, "dry-run", false, "only show from where to where the state would move")
	c.Flags().BoolVar(&req.Copied, "copied", false, "the state was copied to its new place by hand: only verify the copy")
	return c
}
