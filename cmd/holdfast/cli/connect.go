package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
)

// Connection is how commands reach a server, from their flags.
type Connection struct {
	server    string
	tokenFile string
}

// AddConnectionFlags adds the flags that name a server and a token.
func AddConnectionFlags(c *cobra.Command, conn *Connection) {
	c.Flags().StringVar(&conn.server, "server", "", "address of the server's API (default HOLDFAST_SERVER, then the client file)")
	c.Flags().StringVar(&conn.tokenFile, "token-file", "", "file with your token (default HOLDFAST_TOKEN, then the client file)")
}

// Connect returns a client of the server that flags, environment or client file name.
func (a *App) Connect(conn Connection) (*client.Client, error) {
	c, err := client.Connect(client.Settings{
		Server: conn.server, TokenFile: conn.tokenFile, Getenv: a.Getenv, Warnings: a.Err, UserAgent: "holdfast/" + a.Version,
	})
	var address *client.AddressError
	if errors.As(err, &address) {
		return nil, UsageError("%w", err)
	}
	return c, err
}
