package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
)

// newConsoleCommand returns the command that shows the way into the console.
func newConsoleCommand(a *app) *cobra.Command {
	var (
		conn   cli.Connection
		format string
	)
	c := &cobra.Command{
		Use:   "console",
		Short: "Print the console's address, with a one-time login",
		Long: `Print the console's address, with a code that begins one session in a browser, once and
within ten minutes. It needs a token of the server's configuration, such as that in
<dataDir>/admin.token; people log in at the console with their identity provider.`,
		Args: cli.Exactly(0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			once, err := client.OnceOf(c.Context(), cl)
			if err != nil {
				return err
			}
			return a.Print(format, once, func() string {
				return fmt.Sprintf("%s\nIt is good once, until %s.\n", once.URL, once.Until.Local().Format(time.TimeOnly))
			})
		},
	}
	cli.AddConnectionFlags(c, &conn)
	cli.AddFormatFlag(c, &format)
	return c
}
