package show

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

// NewGetCommand returns the command get.
func NewGetCommand(base *cli.App) *cobra.Command {
	a := &app{base}
	return cli.NewGroup("get", "List clusters, runs, the queue, pull requests, drift, templates, resources, suspensions, agents, runners, environments, replicas or tokens",
		newGetClustersCommand(a), newGetRunsCommand(a), newGetQueueCommand(a), newGetPullRequestsCommand(a),
		newGetDriftCommand(a), newGetTemplatesCommand(a), newGetResourcesCommand(a), newGetSuspensionsCommand(a), newGetAgentsCommand(a),
		newGetRunnersCommand(a), newGetEnvironmentsCommand(a), newGetReplicasCommand(a), newGetTokensCommand(a))
}

// addValueFlags adds flags that become parameters of the same name.
func addValueFlags(c *cobra.Command, values map[string]*string, flags [][2]string) {
	for _, f := range flags {
		values[f[0]] = c.Flags().String(f[0], "", "only those "+f[1])
	}
}

// The words of flags that have a few.
var (
	runKinds          = []string{"plan", "apply", "drift", "destroy", "state", "unlock"}
	runStatuses       = []string{"queued", "retrying", "running", "planned", "applied", "no_changes", "errored", "canceled", "interrupted"}
	pullRequestStates = []string{"open", "merged", "closed"}
)

func completeWords(c *cobra.Command, flag string, words []string) {
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

func setValues(values map[string]*string) url.Values {
	query := url.Values{}
	for name, value := range values {
		if *value != "" {
			query.Set(name, *value)
		}
	}
	return query
}

func newGetRunsCommand(a *app) *cobra.Command {
	var (
		conn            cli.Connection
		cluster         string
		pullRequest     string
		kinds, statuses []string
		limit           int
	)
	c := newList(a, &conn, list[v1.Run]{
		use:     "runs",
		aliases: []string{"run"},
		short:   "List runs, newest first",
		example: "  holdfast get runs --cluster prod-eu --kind apply\n  holdfast get runs --pull-request shop#7",
		args:    cli.Exactly(0, "flags only"),
		columns: a.runColumns(),
		empty:   "no runs",
		limit:   &limit,
		fetch: func(ctx context.Context, cl *client.Client, _ []string) ([]v1.Run, error) {
			if err := atLeastOne(limit); err != nil {
				return nil, err
			}
			query := url.Values{"kind": kinds, "status": statuses, "limit": {strconv.Itoa(limit)}}
			for _, word := range kinds {
				if err := cli.OneOf("kind", word, runKinds); err != nil {
					return nil, err
				}
			}
			for _, word := range statuses {
				if err := cli.OneOf("status", word, runStatuses); err != nil {
					return nil, err
				}
			}
			if cluster != "" {
				query.Set("cluster", cluster)
			}
			if pullRequest != "" {
				ref, err := cli.ParsePullRequest(pullRequest)
				if err != nil {
					return nil, err
				}
				query.Set("repo", ref.Repo)
				query.Set("number", strconv.Itoa(ref.Number))
			}
			return cl.Runs(ctx, query)
		},
	})
	c.Flags().StringVar(&cluster, "cluster", "", "only those of this cluster")
	c.Flags().StringVar(&pullRequest, "pull-request", "", "only those of this pull request, repository#number")
	c.Flags().StringSliceVar(&kinds, "kind", nil, "only of this kind: "+table.OrList(runKinds))
	c.Flags().StringSliceVar(&statuses, "status", nil, "only with this status: "+table.OrList(runStatuses))
	c.Flags().IntVar(&limit, "limit", 50, "show at most this many")
	a.CompleteFlag(c, &conn, "cluster", cli.ClusterNames)
	a.CompleteFlag(c, &conn, "pull-request", cli.PullRequestNames)
	completeWords(c, "kind", runKinds)
	completeWords(c, "status", runStatuses)
	return c
}

func (a *app) runColumns() []column[v1.Run] {
	return []column[v1.Run]{
		text(table.Column{Title: "RUN"}, func(r v1.Run) string { return r.ID }),
		text(table.Column{Title: "CLUSTER"}, func(r v1.Run) string { return r.Cluster }),
		text(table.Column{Title: "KIND"}, kindText),
		coloured(table.Column{Title: "STATUS"}, func(r v1.Run) table.Cell { return statusCell(r.Status) }),
		text(table.Column{Title: "REASON", Yields: 1}, func(r v1.Run) string { return string(reasonOf(r)) }),
		text(table.Column{Title: "CHANGES", Min: 8}, func(r v1.Run) string { return CountsText(r.Counts) }),
		text(table.Column{Title: "PULL REQUEST", Yields: 2}, func(r v1.Run) string { return r.PullRequest.String() }),
		text(table.Column{Title: "AGE"}, func(r v1.Run) string { return a.Age(r.CreatedAt) }),
		text(table.Column{Title: "TOOK", Yields: 3}, a.duration),
	}
}

// reasonOf is the reason of a run's status: of one that is still running, why it is to stop.
func reasonOf(r v1.Run) holdfast.Reason {
	if r.Status == holdfast.RunRunning {
		return cmp.Or(r.Reason, r.Cancel)
	}
	return r.Reason
}

// kindText distinguishes destroy plans from others.
func kindText(r v1.Run) string {
	if r.Kind == holdfast.RunPlan && r.Destroy {
		return "plan (destroy)"
	}
	return string(r.Kind)
}

// duration returns how long a run has been executed for.
func (a *app) duration(r v1.Run) string {
	switch {
	case r.StartedAt.IsZero():
		return ""
	case r.FinishedAt.IsZero():
		return table.ShortDuration(max(a.Now().Sub(r.StartedAt), 0))
	default:
		return table.ShortDuration(max(r.FinishedAt.Sub(r.StartedAt), 0)) // a clock was put back meanwhile
	}
}

func newGetPullRequestsCommand(a *app) *cobra.Command {
	var (
		conn   cli.Connection
		states []string
		all    bool
		values = map[string]*string{}
		limit  int
	)
	c := newList(a, &conn, list[v1.PullRequest]{
		use:     "pullrequests",
		aliases: []string{"pullrequest", "pr", "prs"},
		short:   "List pull requests",
		args:    cli.Exactly(0, "flags only"),
		columns: a.pullRequestColumns(),
		empty:   "no pull requests",
		limit:   &limit,
		fetch: func(ctx context.Context, cl *client.Client, _ []string) ([]v1.PullRequest, error) {
			if err := atLeastOne(limit); err != nil {
				return nil, err
			}
			query := setValues(values)
			query.Set("limit", strconv.Itoa(limit))
			for _, word := range states {
				if err := cli.OneOf("state", word, pullRequestStates); err != nil {
					return nil, err
				}
			}
			if !all {
				query["state"] = states
			}
			return cl.PullRequests(ctx, query)
		},
	})
	addValueFlags(c, values, [][2]string{
		{"repo", "of this repository"},
		{"cluster", "that affect this cluster"},
	})
	c.Flags().StringSliceVar(&states, "state", []string{"open"}, "only in this state: "+table.OrList(pullRequestStates))
	c.Flags().BoolVar(&all, "all", false, "include merged and closed pull requests")
	c.Flags().IntVar(&limit, "limit", 50, "show at most this many")
	a.CompleteFlag(c, &conn, "cluster", cli.ClusterNames)
	a.CompleteFlag(c, &conn, "repo", cli.Repositories)
	completeWords(c, "state", pullRequestStates)
	return c
}

func (a *app) pullRequestColumns() []column[v1.PullRequest] {
	type record = v1.PullRequest
	return []column[record]{
		text(table.Column{Title: "PULL REQUEST"}, func(r record) string { return r.String() }),
		text(table.Column{Title: "TITLE", Min: 16}, func(r record) string { return table.Shorten(r.Title, 50) }),
		text(table.Column{Title: "STATE"}, func(r record) string { return string(r.State) }),
		text(table.Column{Title: "AUTHOR", Yields: 2}, func(r record) string { return r.Author }),
		text(table.Column{Title: "HEAD", Yields: 3}, func(r record) string { return r.Head.Short() }),
		text(table.Column{Title: "CLUSTERS", Min: 12, Yields: 1}, func(r record) string {
			return table.Shorten(strings.Join(clusterNames(r), ","), 40)
		}),
		text(table.Column{Title: "STATUS"}, pullRequestStatus),
		text(table.Column{Title: "UPDATED"}, func(r record) string { return a.Age(r.UpdatedAt) }),
	}
}

func pullRequestStatus(r v1.PullRequest) string {
	status := string(r.Reason)
	if len(r.Faults) > 0 {
		status = strings.TrimPrefix(status+", "+string(holdfast.ReasonInvalid), ", ")
	}
	return status
}

// clusterNames are the clusters that a pull request changes. Those that only show
// what a template would do are shown in its comment.
func clusterNames(r v1.PullRequest) []string {
	var names []string
	for _, c := range r.Clusters {
		if !c.Sample {
			names = append(names, c.Name)
		}
	}
	return names
}

// CountsText is what a plan changes, in signs: +1 ~2.
func CountsText(c v1.Counts) string {
	if c.Zero() {
		return ""
	}
	var parts []string
	for _, p := range []struct {
		sign string
		n    int
	}{
		{"+", c.Create},
		{"~", c.Update},
		{"±", c.Replace},
		{"-", c.Delete},
		{"import ", c.Import},
		{"move ", c.Move},
		{"forget ", c.Forget},
		{"outputs ", c.Outputs},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%s%d", p.sign, p.n))
		}
	}
	return strings.Join(parts, " ")
}

func statusCell(s holdfast.RunStatus) table.Cell {
	c := table.Cell{Text: string(s)}
	switch s {
	case holdfast.RunErrored, holdfast.RunInterrupted:
		c.Colour = table.Red
	case holdfast.RunApplied, holdfast.RunNoChanges:
		c.Colour = table.Green
	case holdfast.RunRetrying, holdfast.RunCanceled:
		c.Colour = table.Yellow
	case holdfast.RunRunning, holdfast.RunPlanned:
		c.Colour = table.Blue
	default: // queued: not worth a colour
	}
	return c
}

func phaseCell(p holdfast.Phase) table.Cell {
	c := table.Cell{Text: string(p)}
	switch p {
	case holdfast.PhaseFailed:
		c.Colour = table.Red
	case holdfast.PhaseActive:
		c.Colour = table.Green
	case holdfast.PhaseProvisioning, holdfast.PhaseConfiguring, holdfast.PhaseUpdating, holdfast.PhaseDeleting:
		c.Colour = table.Blue
	default: // pending or deleted: nothing continues
	}
	return c
}
