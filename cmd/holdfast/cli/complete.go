package cli

import (
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

// completionPatience bounds how long a shell waits for names to complete.
const completionPatience = 3 * time.Second

// AddCompletion completes names of clusters, of as many as a command takes. Without an answer of the server there are none.
func (a *App) AddCompletion(c *cobra.Command, conn *Connection, most int) {
	c.ValidArgsFunction = func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := a.clusterNames(c.Context(), *conn)
		return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) }), cobra.ShellCompDirectiveNoFileComp
	}
}

// clusterNames are the names of the fleet, none if they cannot be asked for.
func (a *App) clusterNames(ctx context.Context, conn Connection) []string {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	cl, err := a.Connect(conn)
	if err != nil {
		return nil
	}
	summaries, err := cl.Summaries(ctx, url.Values{})
	if err != nil {
		return nil
	}
	names := make([]string, len(summaries))
	for i, s := range summaries {
		names[i] = s.Name
	}
	return names
}
