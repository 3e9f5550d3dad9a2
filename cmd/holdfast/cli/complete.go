package cli

import (
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
)

// completionPatience bounds how long a shell waits for names to complete.
const completionPatience = 3 * time.Second

// Names are what a server can be asked for: the words that complete an argument.
type Names func(ctx context.Context, cl *client.Client) ([]string, error)

// ClusterNames are the clusters of the fleet.
func ClusterNames(ctx context.Context, cl *client.Client) ([]string, error) {
	return ofClusters(ctx, cl, "name", func(s v1.ClusterSummary) string { return s.Name })
}

// Projects yields the projects of clusters, each once.
func Projects(ctx context.Context, cl *client.Client) ([]string, error) {
	return ofClusters(ctx, cl, "project", func(s v1.ClusterSummary) string { return s.Project })
}

// Environments yields the environments of clusters, each once.
func Environments(ctx context.Context, cl *client.Client) ([]string, error) {
	return ofClusters(ctx, cl, "environment", func(s v1.ClusterSummary) string { return s.Environment })
}

// Repositories yields the repositories that clusters belong to, each once.
func Repositories(ctx context.Context, cl *client.Client) ([]string, error) {
	return ofClusters(ctx, cl, "owner", func(s v1.ClusterSummary) string { return s.Owner })
}

// ofClusters are the values of a field of all clusters, sorted.
func ofClusters(ctx context.Context, cl *client.Client, field string, value func(v1.ClusterSummary) string) ([]string, error) {
	summaries, err := cl.Summaries(ctx, url.Values{"fields": {field}})
	var values []string
	for _, s := range summaries {
		if v := value(s); v != "" {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	return slices.Compact(values), err
}

// completedRuns is as many of the newest runs as are offered.
const completedRuns = "50"

// Runners are the names of the runners.
func Runners(ctx context.Context, cl *client.Client) ([]string, error) {
	runners, err := client.RunnersOf(cl).List(ctx)
	names := make([]string, len(runners))
	for i, r := range runners {
		names[i] = r.Name
	}
	return names, err
}

// PinnedEnvironments are the environments that have run, with their projects.
func PinnedEnvironments(ctx context.Context, cl *client.Client) ([]string, error) {
	environments, err := client.RunnersOf(cl).Environments(ctx, nil)
	names := make([]string, len(environments))
	for i, e := range environments {
		names[i] = e.Project + "/" + e.Name
	}
	return names, err
}

// RunIDs are the newest runs, each with what it is.
func RunIDs(ctx context.Context, cl *client.Client) ([]string, error) {
	runs, err := cl.Runs(ctx, url.Values{"limit": {completedRuns}})
	ids := make([]string, len(runs))
	for i, r := range runs {
		ids[i] = cobra.CompletionWithDesc(r.ID, string(r.Kind)+" of "+r.Cluster+": "+string(r.Status))
	}
	return ids, err
}

// PullRequestNames are the open pull requests.
func PullRequestNames(ctx context.Context, cl *client.Client) ([]string, error) {
	records, err := cl.PullRequests(ctx, url.Values{"state": {"open"}})
	names := make([]string, len(records))
	for i, r := range records {
		names[i] = cobra.CompletionWithDesc(r.String(), r.Title)
	}
	return names, err
}

// TemplateNames are the templates that repositories publish.
func TemplateNames(ctx context.Context, cl *client.Client) ([]string, error) {
	templates, err := cl.Templates(ctx)
	names := make([]string, len(templates))
	for i, t := range templates {
		names[i] = t.Name
	}
	return names, err
}

// Complete completes the arguments of a command with names, as many as it takes; zero
// means any number. Without an answer of the server there are none.
func (a *App) Complete(c *cobra.Command, conn *Connection, most int, kinds ...Names) {
	c.ValidArgsFunction = func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := a.names(c.Context(), *conn, kinds)
		return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) }), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteFlag completes the value of a flag with names.
func (a *App) CompleteFlag(c *cobra.Command, conn *Connection, flag string, kinds ...Names) {
	_ = c.RegisterFlagCompletionFunc(flag, func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return a.names(c.Context(), *conn, kinds), cobra.ShellCompDirectiveNoFileComp
	})
}

func (a *App) names(ctx context.Context, conn Connection, kinds []Names) []string {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	cl, err := a.Connect(conn)
	if err != nil {
		return nil
	}
	var all []string
	for _, names := range kinds {
		found, err := names(ctx, cl)
		if err != nil {
			continue
		}
		all = append(all, found...)
	}
	return all
}
