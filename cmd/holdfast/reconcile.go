package main

import (
	"cmp"
	"fmt"

	v1 "github.com/holdfast-dev/holdfast/api/v1"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
)

func newReconcileCommand(a *app) *cobra.Command {
	var (
		conn   cli.Connection
		format string
		repo   string
		all    bool
	)
	c := &cobra.Command{
		Use:   "reconcile CLUSTER | --repo REPOSITORY | --all",
		Short: "Check a cluster, a repository or everything again, now",
		Args: func(c *cobra.Command, args []string) error {
			given := len(args)
			if repo != "" {
				given++
			}
			if all {
				given++
			}
			if given == 1 {
				return nil
			}
			return cli.WrongArguments(c, args, "one of a cluster's name, --repo and --all")
		},
		RunE: func(c *cobra.Command, args []string) error {
			req, what := v1.ReconcileRequest{Repo: repo, All: all}, cmp.Or(repo, "everything")
			if len(args) == 1 {
				req.Cluster, what = args[0], args[0]
			}
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			if err := cl.Reconcile(c.Context(), req); err != nil {
				return err
			}
			return a.Print(format, struct{}{}, func() string { return fmt.Sprintf("asked to reconcile %s\n", what) })
		},
	}
	cli.AddConnectionFlags(c, &conn)
	cli.AddFormatFlag(c, &format)
	a.Complete(c, &conn, 1, cli.ClusterNames)
	c.Flags().StringVar(&repo, "repo", "", "a repository, as the server's configuration names it")
	c.Flags().BoolVar(&all, "all", false, "all repositories")
	a.CompleteFlag(c, &conn, "repo", cli.Repositories)
	return c
}
