package show

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

func newGetDriftCommand(a *app) *cobra.Command {
	var (
		conn     cli.Connection
		clusters clusterFlags
	)
	c := newList(a, &conn, list[v1.DriftLine]{
		use:   "drift [CLUSTER...]",
		short: "List clusters that have drifted, or whose drift check failed",
		long: `List the clusters that differ from their last apply: how many resources were changed
or deleted outside of Holdfast, or would change because an input that is read from
elsewhere (a data source, a file) changed. Merged changes that are not applied yet are
not drift, and are listed separately.`,
		example: "  holdfast get drift --environment production\n  holdfast get drift --all",
		columns: a.driftColumns(),
		empty:   "no drift was found: holdfast get drift --all lists what was checked, and when",
		fetch: func(ctx context.Context, cl *client.Client, args []string) ([]v1.DriftLine, error) {
			query, err := clusters.query(args)
			if err != nil {
				return nil, err
			}
			return cl.DriftList(ctx, query)
		},
		known: func(ctx context.Context, cl *client.Client, args []string, items []v1.DriftLine) error {
			return clustersExist(ctx, cl, args, items, func(l v1.DriftLine) string { return l.Cluster })
		},
	})
	clusters.add(c, "include clusters without drift, and those that were never checked")
	completeClusterFlags(a, c, &conn)
	a.Complete(c, &conn, 0, cli.ClusterNames)
	return c
}

func (a *app) driftColumns() []column[v1.DriftLine] {
	type line = v1.DriftLine
	return []column[line]{
		text(table.Column{Title: "NAME"}, func(l line) string { return l.Cluster }),
		coloured(table.Column{Title: "DRIFT", Min: 16}, func(l line) table.Cell { return driftStateCell(l.State) }),
		text(table.Column{Title: "SINCE"}, func(l line) string { return a.Age(l.State.Since) }),
		text(table.Column{Title: "CHECKED", Yields: 2}, func(l line) string { return a.Age(l.State.CheckedAt) }),
		text(table.Column{Title: "NEXT", Yields: 3}, func(l line) string { return a.Until(l.State.Due) }),
		text(table.Column{Title: "ON DRIFT", Yields: 1}, onDriftText),
		coloured(table.Column{Title: "NOT APPLIED"}, notAppliedCell),
		text(table.Column{Title: "ISSUE"}, func(l line) string { return issueText(l.Issue) }),
	}
}

// driftStateCell is driftCell with all that a state says.
func driftStateCell(s v1.DriftState) table.Cell {
	c := driftCell(s.Status, s.Counts)
	switch {
	case s.Status == holdfast.DriftUnchecked:
		c.Text = "not checked"
	case s.Status == holdfast.DriftFailed && s.Failures > 1:
		c.Text = fmt.Sprintf("%d checks failed", s.Failures)
	}
	if s.Status == holdfast.DriftFailed && s.Counts.Drifted() > 0 {
		c.Text += "; before: " + driftCounts(s.Counts)
	}
	if s.Counts.Ignored > 0 {
		c.Text += fmt.Sprintf(" (%d ignored)", s.Counts.Ignored)
	}
	return c
}

func onDriftText(l v1.DriftLine) string {
	if l.State.Hold != "" {
		return l.OnDrift + ", held"
	}
	return l.OnDrift
}

func notAppliedCell(l v1.DriftLine) table.Cell {
	switch {
	case !l.NotApplied:
		return table.Cell{}
	case l.Waiting != "":
		return table.Cell{Text: string(l.Waiting), Colour: table.Yellow}
	default:
		return table.Cell{Text: "yes", Colour: table.Yellow}
	}
}

// issueText writes numbers as code hosts do.
func issueText(id string) string {
	if n, err := strconv.Atoi(id); err == nil && n > 0 {
		return "#" + id
	}
	return id
}

func newGetResourcesCommand(a *app) *cobra.Command {
	var (
		conn   cli.Connection
		limit  int
		values = map[string]*string{}
	)
	type resource = v1.Resource
	c := newList(a, &conn, list[resource]{
		use:     "resources",
		aliases: []string{"resource"},
		short:   "Search the resources that clusters consist of",
		long: `Search the resources in the states of clusters, of one or of the whole fleet, with
the apply that last changed each.`,
		example: "  holdfast get resources --cluster prod-eu\n  holdfast get resources --type aws_eks_cluster\n" +
			"  holdfast get resources --id vpc-0a1b2c3d",
		args: cli.Exactly(0, "flags only"),
		columns: []column[resource]{
			text(table.Column{Title: "CLUSTER"}, func(r resource) string { return r.Cluster }),
			text(table.Column{Title: "ADDRESS"}, func(r resource) string { return r.Address }),
			text(table.Column{Title: "TYPE", Yields: 2}, func(r resource) string { return r.Type }),
			text(table.Column{Title: "ID", Yields: 1}, func(r resource) string { return r.ID }),
			text(table.Column{Title: "CHANGED"}, func(r resource) string { return a.Age(r.ChangedAt) }),
			text(table.Column{Title: "RUN", Yields: 3}, func(r resource) string { return r.Run }),
		},
		without: func() string {
			if *values["cluster"] != "" {
				return "CLUSTER"
			}
			return ""
		},
		empty: "no resources",
		limit: &limit,
		fetch: func(ctx context.Context, cl *client.Client, _ []string) ([]resource, error) {
			query := setValues(values)
			if err := atLeastOne(limit); err != nil {
				return nil, err
			}
			query.Set("limit", strconv.Itoa(limit))
			return cl.Resources(ctx, query)
		},
	})
	addValueFlags(c, values, [][2]string{
		{"cluster", "of this cluster"},
		{"type", "of this type, such as aws_vpc"},
		{"id", "with this ID at the provider"},
		{"address", "with this text in their address"},
	})
	c.Flags().IntVar(&limit, "limit", 1000, "show at most this many")
	a.CompleteFlag(c, &conn, "cluster", cli.ClusterNames)
	return c
}

func newGetSuspensionsCommand(a *app) *cobra.Command {
	var conn cli.Connection
	type suspension = v1.Suspension
	return newList(a, &conn, list[suspension]{
		use:     "suspensions",
		aliases: []string{"suspension"},
		short:   "List what is suspended: clusters, projects, everything",
		args:    cli.Exactly(0, "flags only"),
		columns: []column[suspension]{
			text(table.Column{Title: "SUSPENDED"}, func(s suspension) string { return SuspendedWhat(s.Cluster, s.Project) }),
			text(table.Column{Title: "BY"}, func(s suspension) string { return s.By }),
			text(table.Column{Title: "SINCE"}, func(s suspension) string { return a.Age(s.At) }),
			text(table.Column{Title: "REASON", Min: 16}, func(s suspension) string { return s.Reason }),
		},
		empty: "nothing is suspended",
		fetch: func(ctx context.Context, cl *client.Client, _ []string) ([]suspension, error) {
			return cl.Suspensions(ctx, false)
		},
	})
}
