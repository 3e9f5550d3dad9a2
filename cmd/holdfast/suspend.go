package main

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/server"
)

func newSuspendCommand(a *app) *cobra.Command {
	c := newSuspensionCommand(a, true)
	c.Short = "Stop new runs of a cluster, a project or everything"
	c.Long = `Stop new runs of a cluster, of all clusters of a project, or of all: no apply, no
destroy and no check for drift begins. What runs already is left alone; pull
requests are still planned.`
	c.Example = "  holdfast suspend prod-eu\n  holdfast suspend --all --reason 'incident 4711'"
	return c
}

func newResumeCommand(a *app) *cobra.Command {
	c := newSuspensionCommand(a, false)
	c.Short = "Allow runs of what was suspended again"
	c.Long = `Allow runs of a cluster, of a project's clusters, or of all again. What was held
goes on. Each suspension ends by itself: a cluster that was suspended stays so when
its project is resumed.`
	return c
}

func newSuspensionCommand(a *app, suspended bool) *cobra.Command {
	var (
		conn connection
		req  server.SuspendRequest
	)
	const want = "one of a cluster's name, --project and --all"
	c := &cobra.Command{
		Use: suspendWord(suspended) + " CLUSTER | --project PROJECT | --all",
		Args: func(c *cobra.Command, args []string) error {
			given := len(args)
			if req.Project != "" {
				given++
			}
			if req.All {
				given++
			}
			switch {
			case given != 1:
				return wrongArguments(c, args, want)
			case len(args) == 1 && req.Reason != "":
				return usageError("--reason goes with --project or --all: that of one cluster is not kept")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := a.connect(conn)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				record, err := cl.suspend(c.Context(), args[0], suspended)
				if err != nil {
					return err
				}
				return a.printSuspended("cluster "+record.Name, record.Suspended)
			}
			answer, err := cl.suspendAll(c.Context(), req, suspended)
			if err != nil {
				return err
			}
			return a.printSuspended(suspendedWhat("", answer.Project), suspended)
		},
	}
	addConnectionFlags(c, &conn)
	c.Flags().StringVar(&req.Project, "project", "", "all clusters of this project")
	c.Flags().BoolVar(&req.All, "all", false, "all clusters")
	c.Flags().StringVar(&req.Reason, "reason", "", "why, for the others")
	return c
}

func (a *app) printSuspended(what string, suspended bool) error {
	is := "is"
	if what == suspendedWhat("", "") {
		is = "are"
	}
	now := "active"
	if suspended {
		now = "suspended"
	}
	_, err := fmt.Fprintf(a.out, "%s %s %s\n", what, is, now)
	return err
}

func newTransferCommand(a *app) *cobra.Command {
	var (
		conn connection
		to   string
	)
	c := &cobra.Command{
		Use:   "transfer CLUSTER --to REPOSITORY",
		Short: "Give a cluster to another repository",
		Long: `Give a cluster to another repository, which has to define it already: its document
is taken from there from then on. State and history stay; nothing is planned
unless the new document says something else.`,
		Example: "  holdfast transfer prod-eu --to acme/platform",
		Args:    exactly(1, "a cluster's name"),
		RunE: func(c *cobra.Command, args []string) error {
			if to == "" {
				return usageError("--to is missing: the repository that shall define %s", args[0])
			}
			cl, err := a.connect(conn)
			if err != nil {
				return err
			}
			record, err := cl.transfer(c.Context(), args[0], to)
			if err != nil {
				var refused *apiError
				if errors.As(err, &refused) && refused.status == http.StatusConflict && refused.hint == "" {
					return &hintError{err, "merge its document there first, let its runs end, and try again"}
				}
				return err
			}
			_, err = fmt.Fprintf(a.out, "cluster %s belongs to %s now\n", record.Name, record.Owner)
			return err
		},
	}
	addConnectionFlags(c, &conn)
	c.Flags().StringVar(&to, "to", "", "the repository, as the server's configuration names it")
	return c
}
