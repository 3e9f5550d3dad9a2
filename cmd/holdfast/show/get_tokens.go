package show

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

func newGetTokensCommand(a *app) *cobra.Command {
	var (
		conn cli.Connection
		all  bool
	)
	c := newList(a, &conn, list[v1.Token]{
		use:     "tokens",
		aliases: []string{"token"},
		short:   "List tokens that you have made, or got by login",
		args:    cli.Exactly(0, "flags only"),
		columns: []column[v1.Token]{
			text(table.Column{Title: "ID"}, func(t v1.Token) string { return t.ID }),
			text(table.Column{Title: "NAME", Min: 8, Yields: 3}, func(t v1.Token) string { return t.Name }),
			text(table.Column{Title: "OWNER", Min: 8, Yields: 2}, func(t v1.Token) string { return t.Owner }),
			text(table.Column{Title: "ROLE"}, func(t v1.Token) string { return t.Role }),
			text(table.Column{Title: "PROJECTS", Min: 8, Yields: 4}, func(t v1.Token) string { return strings.Join(t.Projects, ", ") }),
			text(table.Column{Title: "FROM", Min: 8, Yields: 5}, func(t v1.Token) string { return t.From }),
			text(table.Column{Title: "USED", Yields: 1}, func(t v1.Token) string { return a.Age(t.LastUsedAt) }),
			text(table.Column{Title: "EXPIRES"}, func(t v1.Token) string { return t.ExpiresAt.Format("2006-01-02") }),
		},
		empty: "no tokens",
		fetch: func(ctx context.Context, cl *client.Client, _ []string) ([]v1.Token, error) {
			return client.TokensOf(cl).List(ctx, all)
		},
	})
	c.Flags().BoolVar(&all, "all", false, "tokens of everybody (requires the role admin)")
	return c
}
