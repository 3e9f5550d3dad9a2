package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/server"
)

func newGetDriftCommand(a *app) *cobra.Command {
	var (
		conn     connection
		format   string
		clusters clusterFlags
	)
	c := &cobra.Command{
		Use:   "drift [CLUSTER...]",
		Short: "List clusters that have drifted, or whose check for drift failed",
		Long: `List the clusters that are not as they were applied: how many resources were
changed or are gone outside of Holdfast, or would be changed by an apply as what
the code reads from elsewhere is another input now. What is desired and not applied
yet is not drift and is listed separately.`,
		Example: "  holdfast get drift --environment production\n  holdfast get drift --all",
		RunE: func(c *cobra.Command, args []string) error {
			query, err := clusters.query(args)
			if err != nil {
				return err
			}
			cl, err := a.connect(conn)
			if err != nil {
				return err
			}
			lines, err := cl.DriftList(c.Context(), query)
			if err != nil {
				return err
			}
			return a.print(format, notNil(lines), func() string { return a.driftTable(lines) })
		},
	}
	addConnectionFlags(c, &conn)
	addFormatFlag(c, &format)
	clusters.add(c, "also those without drift, and those that were never checked")
	return c
}

func (a *app) driftTable(lines []server.DriftLine) string {
	if len(lines) == 0 {
		return "no drift\n"
	}
	rows := make([][]cell, len(lines))
	for i, l := range lines {
		rows[i] = []cell{
			{text: l.Cluster},
			driftStateCell(l.State),
			{text: a.age(l.State.Since)},
			{text: a.age(l.State.CheckedAt)},
			{text: a.until(l.State.Due)},
			{text: onDriftText(l)},
			notAppliedCell(l),
			{text: issueText(l.Issue)},
		}
	}
	return a.table([]string{"NAME", "DRIFT", "SINCE", "CHECKED", "NEXT", "ON DRIFT", "NOT APPLIED", "ISSUE"}, rows)
}

// driftStateCell is driftCell with all that a state says.
func driftStateCell(s holdfast.DriftState) cell {
	c := driftCell(s.Status, s.Counts)
	switch {
	case s.Status == holdfast.DriftUnchecked:
		c.text = "not checked"
	case s.Status == holdfast.DriftFailed && s.Failures > 1:
		c.text = fmt.Sprintf("%d checks failed", s.Failures)
	}
	if s.Status == holdfast.DriftFailed && s.Counts.Drifted() > 0 {
		c.text += "; before: " + driftCounts(s.Counts)
	}
	if s.Counts.Ignored > 0 {
		c.text += fmt.Sprintf(" (%d ignored)", s.Counts.Ignored)
	}
	return c
}

func onDriftText(l server.DriftLine) string {
	if l.State.Hold != "" {
		return l.OnDrift + ", held"
	}
	return l.OnDrift
}

func notAppliedCell(l server.DriftLine) cell {
	switch {
	case !l.NotApplied:
		return cell{}
	case l.Waiting != "":
		return cell{l.Waiting, yellow}
	default:
		return cell{"yes", yellow}
	}
}

// issueText writes numbers as code hosts do.
func issueText(id string) string {
	if n, err := strconv.Atoi(id); err == nil && n > 0 {
		return "#" + id
	}
	return id
}

// until returns how long it is until t, nothing for the zero time.
func (a *app) until(t time.Time) string {
	switch left := t.Sub(a.now()); {
	case t.IsZero():
		return ""
	case left < time.Second:
		return "now"
	default:
		return "in " + shortDuration(left)
	}
}

func newGetResourcesCommand(a *app) *cobra.Command {
	var (
		conn   connection
		format string
		limit  int
		values = map[string]*string{}
	)
	c := &cobra.Command{
		Use:     "resources",
		Aliases: []string{"resource"},
		Short:   "Search what clusters consist of",
		Long: `Search the resources in the states of clusters, of one or of the whole fleet, with
the apply that last changed each.`,
		Example: "  holdfast get resources --cluster prod-eu\n  holdfast get resources --type aws_eks_cluster\n" +
			"  holdfast get resources --id vpc-0a1b2c3d",
		Args: exactly(0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.connect(conn)
			if err != nil {
				return err
			}
			query := setValues(values)
			query.Set("limit", strconv.Itoa(limit))
			resources, err := cl.Resources(c.Context(), query)
			if err != nil {
				return err
			}
			if len(resources) == limit {
				fmt.Fprintf(a.err, "only the first %d are shown: narrow the search down, or raise --limit\n", limit)
			}
			return a.print(format, notNil(resources), func() string {
				return a.resourcesTable(resources, *values["cluster"] == "")
			})
		},
	}
	addConnectionFlags(c, &conn)
	addFormatFlag(c, &format)
	addValueFlags(c, values, [][2]string{
		{"cluster", "of this cluster"},
		{"type", "of this type, such as aws_vpc"},
		{"id", "with this id of the provider's"},
		{"address", "with this in their address"},
	})
	c.Flags().IntVar(&limit, "limit", 1000, "at most so many, up to 10000")
	return c
}

func (a *app) resourcesTable(resources []holdfast.Resource, clusters bool) string {
	if len(resources) == 0 {
		return "no resources\n"
	}
	header := []string{"ADDRESS", "TYPE", "ID", "CHANGED", "RUN"}
	if clusters {
		header = append([]string{"CLUSTER"}, header...)
	}
	rows := make([][]cell, len(resources))
	for i, r := range resources {
		row := cells(r.Address, r.Type, shorten(r.ID, 60), a.age(r.ChangedAt), r.Run)
		if clusters {
			row = append(cells(r.Cluster), row...)
		}
		rows[i] = row
	}
	return a.table(header, rows)
}

func newGetSuspensionsCommand(a *app) *cobra.Command {
	var (
		conn   connection
		format string
	)
	c := &cobra.Command{
		Use:     "suspensions",
		Aliases: []string{"suspension"},
		Short:   "List what is suspended: clusters, projects, everything",
		Args:    exactly(0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.connect(conn)
			if err != nil {
				return err
			}
			suspensions, err := cl.Suspensions(c.Context(), false)
			if err != nil {
				return err
			}
			return a.print(format, notNil(suspensions), func() string { return a.suspensionsTable(suspensions) })
		},
	}
	addConnectionFlags(c, &conn)
	addFormatFlag(c, &format)
	return c
}

func (a *app) suspensionsTable(suspensions []server.SuspensionAnswer) string {
	if len(suspensions) == 0 {
		return "nothing is suspended\n"
	}
	rows := make([][]cell, len(suspensions))
	for i, s := range suspensions {
		rows[i] = cells(suspendedWhat(s.Cluster, s.Project), s.By, a.age(s.At), s.Reason)
	}
	return a.table([]string{"SUSPENDED", "BY", "SINCE", "REASON"}, rows)
}

func suspendedWhat(cluster, project string) string {
	switch {
	case cluster != "":
		return "cluster " + cluster
	case project != "":
		return "project " + project
	default:
		return "all clusters"
	}
}
