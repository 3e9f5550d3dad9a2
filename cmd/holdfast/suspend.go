package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newSuspendCommand(a *app) *cobra.Command {
	return newSuspensionCommand(a, "suspend", "Stop new runs of a cluster; one in progress is left alone", true)
}

func newResumeCommand(a *app) *cobra.Command {
	return newSuspensionCommand(a, "resume", "Allow runs of a suspended cluster again", false)
}

func newSuspensionCommand(a *app, word, short string, suspended bool) *cobra.Command {
	var conn connection
	c := &cobra.Command{
		Use:   word + " CLUSTER",
		Short: short,
		Args:  exactly(1, "a cluster's name"),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := a.connect(conn)
			if err != nil {
				return err
			}
			record, err := cl.suspend(c.Context(), args[0], suspended)
			if err != nil {
				return err
			}
			now := "active"
			if record.Suspended {
				now = "suspended"
			}
			_, err = fmt.Fprintf(a.out, "cluster %s is %s\n", record.Name, now)
			return err
		},
	}
	addConnectionFlags(c, &conn)
	return c
}
