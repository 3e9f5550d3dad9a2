package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/server"
)

func newReconcileCommand(a *app) *cobra.Command {
	var (
		conn connection
		repo string
	)
	c := &cobra.Command{
		Use:   "reconcile CLUSTER | --repo REPOSITORY",
		Short: "Look at a cluster or a repository again, now",
		Args: func(c *cobra.Command, args []string) error {
			if (len(args) == 1) == (repo == "") && len(args) < 2 {
				return nil
			}
			return wrongArguments(c, args, "a cluster's name, or --repo")
		},
		RunE: func(c *cobra.Command, args []string) error {
			req := server.ReconcileRequest{Repo: repo}
			if repo == "" {
				req.Cluster = args[0]
			}
			cl, err := a.connect(conn)
			if err != nil {
				return err
			}
			if err := cl.reconcile(c.Context(), req); err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.out, "asked to reconcile %s\n", req.Repo+req.Cluster)
			return err
		},
	}
	addConnectionFlags(c, &conn)
	c.Flags().StringVar(&repo, "repo", "", "a repository, as the server's configuration names it")
	return c
}
