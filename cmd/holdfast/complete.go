package main

import (
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

// completionPatience bounds how long a shell waits for names to complete.
const completionPatience = 3 * time.Second

// addCompletion completes names of clusters, of as many as a command takes, and the
// words of flags that have a few. Without an answer of the server there are none.
func (a *app) addCompletion(c *cobra.Command, conn *connection, most int) {
	c.ValidArgsFunction = func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := a.clusterNames(c.Context(), *conn)
		return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) }), cobra.ShellCompDirectiveNoFileComp
	}
	for flag, words := range map[string][]string{"phase": phaseWords(), "drift": driftWords} {
		if c.Flags().Lookup(flag) != nil {
			_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
		}
	}
}

// clusterNames are the names of the fleet, none if they cannot be asked for.
func (a *app) clusterNames(ctx context.Context, conn connection) []string {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	cl, err := a.connect(conn)
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
