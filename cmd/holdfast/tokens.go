package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
)

func newCreateTokenCommand(a *app) *cobra.Command {
	var (
		conn     cli.Connection
		format   string
		lifetime time.Duration
		req      v1.TokenRequest
	)
	c := &cobra.Command{
		Use:     "token NAME",
		Short:   "Create a token for a script; it is shown once",
		Example: "  holdfast create token nightly-report --role viewer --project payments --lifetime 720h",
		Args:    cli.Exactly(1, "a name for the token"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := cli.OneOf("role", req.Role, roles); err != nil {
				return err
			}
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			req.Name, req.Lifetime = args[0], lifetime.String()
			made, err := client.TokensOf(cl).Create(c.Context(), req)
			if err != nil {
				return err
			}
			return a.Print(format, made, func() string {
				return fmt.Sprintf("%s\n", made.Secret)
			})
		},
	}
	cli.AddConnectionFlags(c, &conn)
	cli.AddFormatFlag(c, &format)
	c.Flags().StringVar(&req.Role, "role", "viewer", "the strongest role that it allows; yours may be weaker: "+strings.Join(roles, ", "))
	c.Flags().StringArrayVar(&req.Projects, "project", nil, "limit the token to this project; may be repeated")
	c.Flags().DurationVar(&lifetime, "lifetime", 30*24*time.Hour, "how long the token lasts")
	_ = c.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(roles, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func newDeleteTokenCommand(a *app) *cobra.Command {
	var (
		conn cli.Connection
		all  bool
	)
	c := &cobra.Command{
		Use:   "token ID",
		Short: "Delete a token, so that it is refused",
		Args:  cli.Exactly(1, "a token's ID"),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			if err := client.TokensOf(cl).Delete(c.Context(), args[0], all); err != nil {
				return err
			}
			fmt.Fprintf(a.Out, "%s is deleted\n", args[0])
			return nil
		},
	}
	cli.AddConnectionFlags(c, &conn)
	c.Flags().BoolVar(&all, "all", false, "also a token of somebody else (requires the role admin)")
	return c
}
