package show

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
	"github.com/spf13/cobra"
)

// NewGetCommand returns the command get.
func NewGetCommand(base *cli.App) *cobra.Command {
	a := &app{base}
	return cli.NewGroup("get", "List clusters, runs, pull requests, drift, templates, resources, suspensions or agents",
		newGetClustersCommand(a), newGetRunsCommand(a), newGetPullRequestsCommand(a),
		newGetDriftCommand(a), newGetTemplatesCommand(a), newGetResourcesCommand(a), newGetSuspensionsCommand(a), newGetAgentsCommand(a))
}

// addValueFlags adds flags that become parameters of the same name.
func addValueFlags(c *cobra.Command, values map[string]*string, flags [][2]string) {
	for _, f := range flags {
		values[f[0]] = c.Flags().String(f[0], "", "only those "+f[1])
	}
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
		format, cluster string
		pullRequest     string
		kinds, statuses []string
		limit           int
	)
	c := &cobra.Command{
		Use:     "runs",
		Aliases: []string{"run"},
		Short:   "List runs, newest first",
		Example: "  holdfast get runs --cluster prod-eu --kind apply\n  holdfast get runs --pull-request shop#7",
		Args:    cli.Exactly(0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error {
			query := url.Values{"kind": kinds, "status": statuses, "limit": {strconv.Itoa(limit)}}
			if cluster != "" {
				query.Set("cluster", cluster)
			}
			if pullRequest != "" {
				ref, err := cli.ParsePullRequest(pullRequest)
				if err != nil {
					return err
				}
				query.Set("repo", ref.Repo)
				query.Set("number", strconv.Itoa(ref.Number))
			}
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			runs, err := cl.Runs(c.Context(), query)
			if err != nil {
				return err
			}
			return a.Print(format, table.NotNil(runs), func() string { return a.runsTable(runs) })
		},
	}
	cli.AddConnectionFlags(c, &conn)
	cli.AddFormatFlag(c, &format)
	c.Flags().StringVar(&cluster, "cluster", "", "only those of this cluster")
	c.Flags().StringVar(&pullRequest, "pull-request", "", "only those of this pull request, repository#number")
	c.Flags().StringSliceVar(&kinds, "kind", nil, "only of this kind: plan, apply, drift, destroy")
	c.Flags().StringSliceVar(&statuses, "status", nil, "only with this status, such as running or errored")
	c.Flags().IntVar(&limit, "limit", 50, "at most so many")
	return c
}

func (a *app) runsTable(runs []v1.Run) string {
	if len(runs) == 0 {
		return "no runs\n"
	}
	rows := make([][]table.Cell, len(runs))
	for i, r := range runs {
		rows[i] = []table.Cell{
			{Text: r.ID},
			{Text: r.Cluster},
			{Text: kindText(r)},
			statusCell(r.Status),
			{Text: string(r.Reason)},
			{Text: CountsText(r.Counts)},
			{Text: r.PullRequest.String()},
			{Text: a.Age(r.CreatedAt)},
			{Text: a.took(r)},
		}
	}
	return a.Table([]string{"RUN", "CLUSTER", "KIND", "STATUS", "REASON", "CHANGES", "PULL REQUEST", "AGE", "TOOK"}, rows)
}

// kindText tells a plan of a destruction from others.
func kindText(r v1.Run) string {
	if r.Kind == holdfast.RunPlan && r.Destroy {
		return "plan (destroy)"
	}
	return string(r.Kind)
}

// took returns how long a run has been executed for.
func (a *app) took(r v1.Run) string {
	switch {
	case r.StartedAt.IsZero():
		return ""
	case r.FinishedAt.IsZero():
		return table.ShortDuration(max(a.Now().Sub(r.StartedAt), 0))
	default:
		return table.ShortDuration(r.FinishedAt.Sub(r.StartedAt))
	}
}

func newGetPullRequestsCommand(a *app) *cobra.Command {
	var (
		conn   cli.Connection
		format string
		states []string
		all    bool
		values = map[string]*string{}
		limit  int
	)
	c := &cobra.Command{
		Use:     "pullrequests",
		Aliases: []string{"pullrequest", "pr", "prs"},
		Short:   "List pull requests",
		Args:    cli.Exactly(0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			query := setValues(values)
			query.Set("limit", strconv.Itoa(limit))
			if !all {
				query["state"] = states
			}
			records, err := cl.PullRequests(c.Context(), query)
			if err != nil {
				return err
			}
			return a.Print(format, table.NotNil(records), func() string { return a.pullRequestsTable(records) })
		},
	}
	cli.AddConnectionFlags(c, &conn)
	cli.AddFormatFlag(c, &format)
	addValueFlags(c, values, [][2]string{
		{"repo", "of this repository"},
		{"cluster", "that affect this cluster"},
	})
	c.Flags().StringSliceVar(&states, "state", []string{"open"}, "only in this state: open, merged, closed")
	c.Flags().BoolVar(&all, "all", false, "in any state")
	c.Flags().IntVar(&limit, "limit", 50, "at most so many")
	return c
}

func (a *app) pullRequestsTable(records []v1.PullRequest) string {
	if len(records) == 0 {
		return "no pull requests\n"
	}
	rows := make([][]table.Cell, len(records))
	for i, r := range records {
		status := string(r.Reason)
		if len(r.Faults) > 0 {
			status = strings.TrimPrefix(status+", "+string(holdfast.ReasonInvalid), ", ")
		}
		rows[i] = table.Cells(r.String(), table.Shorten(r.Title, 50), string(r.State), r.Author, r.Head.Short(),
			table.Shorten(strings.Join(clusterNames(r), ","), 40), status, a.Age(r.UpdatedAt))
	}
	return a.Table([]string{"PULL REQUEST", "TITLE", "STATE", "AUTHOR", "HEAD", "CLUSTERS", "STATUS", "UPDATED"}, rows)
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
	case holdfast.RunWaiting, holdfast.RunRetrying, holdfast.RunCanceled:
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
