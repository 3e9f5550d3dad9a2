package main

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
)

func newGetCommand(a *app) *cobra.Command {
	return newGroupCommand("get", "List clusters, runs, pull requests, drift, templates, resources, suspensions or agents",
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

// notNil makes an empty list print as one.
func notNil[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

func newGetRunsCommand(a *app) *cobra.Command {
	var (
		conn            connection
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
		Args:    exactly(0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error {
			query := url.Values{"kind": kinds, "status": statuses, "limit": {strconv.Itoa(limit)}}
			if cluster != "" {
				query.Set("cluster", cluster)
			}
			if pullRequest != "" {
				ref, err := parsePullRequest(pullRequest)
				if err != nil {
					return err
				}
				query.Set("repo", ref.Repo)
				query.Set("number", strconv.Itoa(ref.Number))
			}
			cl, err := a.connect(conn)
			if err != nil {
				return err
			}
			runs, err := cl.Runs(c.Context(), query)
			if err != nil {
				return err
			}
			return a.print(format, notNil(runs), func() string { return a.runsTable(runs) })
		},
	}
	addConnectionFlags(c, &conn)
	addFormatFlag(c, &format)
	c.Flags().StringVar(&cluster, "cluster", "", "only those of this cluster")
	c.Flags().StringVar(&pullRequest, "pull-request", "", "only those of this pull request, repository#number")
	c.Flags().StringSliceVar(&kinds, "kind", nil, "only of this kind: plan, apply, drift, destroy")
	c.Flags().StringSliceVar(&statuses, "status", nil, "only with this status, such as running or errored")
	c.Flags().IntVar(&limit, "limit", 50, "at most so many")
	return c
}

func (a *app) runsTable(runs []holdfast.Run) string {
	if len(runs) == 0 {
		return "no runs\n"
	}
	rows := make([][]cell, len(runs))
	for i, r := range runs {
		rows[i] = []cell{
			{text: r.ID},
			{text: r.Cluster},
			{text: kindText(r)},
			statusCell(r.Status),
			{text: string(r.Reason)},
			{text: countsText(r.Counts)},
			{text: r.PullRequest.String()},
			{text: a.age(r.CreatedAt)},
			{text: a.took(r)},
		}
	}
	return a.table([]string{"RUN", "CLUSTER", "KIND", "STATUS", "REASON", "CHANGES", "PULL REQUEST", "AGE", "TOOK"}, rows)
}

// kindText tells a plan of a destruction from others.
func kindText(r holdfast.Run) string {
	if r.Kind == holdfast.RunPlan && r.Destroy {
		return "plan (destroy)"
	}
	return string(r.Kind)
}

// took returns how long a run has been executed for.
func (a *app) took(r holdfast.Run) string {
	switch {
	case r.StartedAt.IsZero():
		return ""
	case r.FinishedAt.IsZero():
		return shortDuration(max(a.now().Sub(r.StartedAt), 0))
	default:
		return shortDuration(r.FinishedAt.Sub(r.StartedAt))
	}
}

func newGetPullRequestsCommand(a *app) *cobra.Command {
	var (
		conn   connection
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
		Args:    exactly(0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.connect(conn)
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
			return a.print(format, notNil(records), func() string { return a.pullRequestsTable(records) })
		},
	}
	addConnectionFlags(c, &conn)
	addFormatFlag(c, &format)
	addValueFlags(c, values, [][2]string{
		{"repo", "of this repository"},
		{"cluster", "that affect this cluster"},
	})
	c.Flags().StringSliceVar(&states, "state", []string{"open"}, "only in this state: open, merged, closed")
	c.Flags().BoolVar(&all, "all", false, "in any state")
	c.Flags().IntVar(&limit, "limit", 50, "at most so many")
	return c
}

func (a *app) pullRequestsTable(records []holdfast.PullRequestRecord) string {
	if len(records) == 0 {
		return "no pull requests\n"
	}
	rows := make([][]cell, len(records))
	for i, r := range records {
		status := string(r.Reason)
		if len(r.Faults) > 0 {
			status = strings.TrimPrefix(status+", "+string(holdfast.ReasonInvalid), ", ")
		}
		rows[i] = cells(r.String(), shorten(r.Title, 50), string(r.State), r.Author, r.Head.Short(),
			shorten(strings.Join(clusterNames(r), ","), 40), status, a.age(r.UpdatedAt))
	}
	return a.table([]string{"PULL REQUEST", "TITLE", "STATE", "AUTHOR", "HEAD", "CLUSTERS", "STATUS", "UPDATED"}, rows)
}

// clusterNames are the clusters that a pull request changes. Those that only show
// what a template would do are shown in its comment.
func clusterNames(r holdfast.PullRequestRecord) []string {
	var names []string
	for _, c := range r.Clusters {
		if !c.Trial {
			names = append(names, c.Name)
		}
	}
	return names
}
