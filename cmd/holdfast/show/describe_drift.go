package show

import (
	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
	"github.com/holdfast-dev/holdfast/report"
)

func newDescribeDriftCommand(a *app) *cobra.Command {
	var (
		conn   cli.Connection
		format string
	)
	c := &cobra.Command{
		Use:   "drift CLUSTER",
		Short: "Show how a cluster differs from its last apply, as of the last check",
		Args:  cli.Exactly(1, "a cluster's name"),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			found, err := cl.Drift(c.Context(), args[0])
			if err != nil {
				return err
			}
			return a.Print(format, found, func() string { return table.Clean(report.DriftText(found.Report())) })
		},
	}
	cli.AddConnectionFlags(c, &conn)
	a.Complete(c, &conn, 1, cli.ClusterNames)
	cli.AddFormatFlag(c, &format)
	return c
}
