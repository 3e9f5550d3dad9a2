package show

import (
	"fmt"
	"strconv"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
	"github.com/spf13/cobra"
)

func newGetDriftCommand(a *app) *cobra.Command {
	var (
		conn     cli.Connection
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
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			lines, err := cl.DriftList(c.Context(), query)
			if err != nil {
				return err
			}
			return a.Print(format, table.NotNil(lines), func() string { return a.driftTable(lines) })
		},
	}
	cli.AddConnectionFlags(c, &conn)
	cli.AddFormatFlag(c, &format)
	clusters.add(c, "also those without drift, and those that were never checked")
	return c
}

func (a *app) driftTable(lines []v1.DriftLine) string {
	if len(lines) == 0 {
		return "no drift\n"
	}
	rows := make([][]table.Cell, len(lines))
	for i, l := range lines {
		rows[i] = []table.Cell{
			{Text: l.Cluster},
			driftStateCell(l.State),
			{Text: a.Age(l.State.Since)},
			{Text: a.Age(l.State.CheckedAt)},
			{Text: a.Until(l.State.Due)},
			{Text: onDriftText(l)},
			notAppliedCell(l),
			{Text: issueText(l.Issue)},
		}
	}
	return a.Table([]string{"NAME", "DRIFT", "SINCE", "CHECKED", "NEXT", "ON DRIFT", "NOT APPLIED", "ISSUE"}, rows)
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
		Args: cli.Exactly(0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.Connect(conn)
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
				fmt.Fprintf(a.Err, "only the first %d are shown: narrow the search down, or raise --limit\n", limit)
			}
			return a.Print(format, table.NotNil(resources), func() string {
				return a.resourcesTable(resources, *values["cluster"] == "")
			})
		},
	}
	cli.AddConnectionFlags(c, &conn)
	cli.AddFormatFlag(c, &format)
	addValueFlags(c, values, [][2]string{
		{"cluster", "of this cluster"},
		{"type", "of this type, such as aws_vpc"},
		{"id", "with this id of the provider's"},
		{"address", "with this in their address"},
	})
	c.Flags().IntVar(&limit, "limit", 1000, "at most so many, up to 10000")
	return c
}

func (a *app) resourcesTable(resources []v1.Resource, clusters bool) string {
	if len(resources) == 0 {
		return "no resources\n"
	}
	header := []string{"ADDRESS", "TYPE", "ID", "CHANGED", "RUN"}
	if clusters {
		header = append([]string{"CLUSTER"}, header...)
	}
	rows := make([][]table.Cell, len(resources))
	for i, r := range resources {
		row := table.Cells(r.Address, r.Type, table.Shorten(r.ID, 60), a.Age(r.ChangedAt), r.Run)
		if clusters {
			row = append(table.Cells(r.Cluster), row...)
		}
		rows[i] = row
	}
	return a.Table(header, rows)
}

func newGetSuspensionsCommand(a *app) *cobra.Command {
	var (
		conn   cli.Connection
		format string
	)
	c := &cobra.Command{
		Use:     "suspensions",
		Aliases: []string{"suspension"},
		Short:   "List what is suspended: clusters, projects, everything",
		Args:    cli.Exactly(0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			suspensions, err := cl.Suspensions(c.Context(), false)
			if err != nil {
				return err
			}
			return a.Print(format, table.NotNil(suspensions), func() string { return a.suspensionsTable(suspensions) })
		},
	}
	cli.AddConnectionFlags(c, &conn)
	cli.AddFormatFlag(c, &format)
	return c
}

func (a *app) suspensionsTable(suspensions []v1.Suspension) string {
	if len(suspensions) == 0 {
		return "nothing is suspended\n"
	}
	rows := make([][]table.Cell, len(suspensions))
	for i, s := range suspensions {
		rows[i] = table.Cells(SuspendedWhat(s.Cluster, s.Project), s.By, a.Age(s.At), s.Reason)
	}
	return a.Table([]string{"SUSPENDED", "BY", "SINCE", "REASON"}, rows)
}
