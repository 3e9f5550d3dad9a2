package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
)

// connection is how commands reach a server, from their flags.
type connection struct {
	server    string
	tokenFile string
}

func addConnectionFlags(c *cobra.Command, conn *connection) {
	c.Flags().StringVar(&conn.server, "server", "", "address of the server's API (default HOLDFAST_SERVER, then the client file)")
	c.Flags().StringVar(&conn.tokenFile, "token-file", "", "file with your token (default HOLDFAST_TOKEN, then the client file)")
}

// connect returns a client of the server that flags, environment or client file name.
func (a *app) connect(conn connection) (*client.Client, error) {
	c, err := client.Connect(client.Settings{
		Server: conn.server, TokenFile: conn.tokenFile, Getenv: a.getenv, Warnings: a.err, UserAgent: "holdfast/" + buildVersion(),
	})
	var address *client.AddressError
	if errors.As(err, &address) {
		return nil, usageError("%w", err)
	}
	return c, err
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
