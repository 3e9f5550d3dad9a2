package show

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
	"github.com/spf13/cobra"
)

func newGetTemplatesCommand(a *app) *cobra.Command {
	var (
		conn   cli.Connection
		format string
		wide   bool
	)
	c := &cobra.Command{
		Use:     "templates [NAME...]",
		Aliases: []string{"template"},
		Short:   "List templates, and how far behind the clusters are that are made from them",
		Long: `List the templates that the repositories publish: the newest version, how many
there are, how many clusters are made from them and how many of these are behind,
and how many pull requests propose a newer version.

With names, or with -o wide, every version and every cluster is shown.`,
		Example: "  holdfast get templates\n  holdfast get templates kubernetes",
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			found, err := selectTemplates(c.Context(), cl, args, wide)
			if err != nil {
				return err
			}
			return a.Print(format, table.NotNil(found), func() string {
				if len(args) > 0 || wide {
					return a.templatesText(found)
				}
				return a.templatesTable(found)
			})
		},
	}
	cli.AddConnectionFlags(c, &conn)
	cli.AddFormatFlag(c, &format)
	c.Flags().Lookup("output").Usage = "how to print: table, wide, json or yaml"
	checked := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		if format == "wide" {
			format, wide = "table", true
		}
		return checked(c, args)
	}
	return c
}

// selectTemplates returns the templates with some names, or all of them. What is
// asked for by name is shown in full.
func selectTemplates(ctx context.Context, cl *client.Client, names []string, wide bool) ([]v1.Template, error) {
	if len(names) == 0 {
		found, err := cl.Templates(ctx)
		if err != nil || !wide {
			return found, err
		}
		for _, t := range found {
			names = append(names, t.Name)
		}
	}
	found := make([]v1.Template, 0, len(names))
	for _, name := range names {
		t, err := cl.Template(ctx, name)
		if err != nil {
			return nil, err
		}
		found = append(found, t)
	}
	return found, nil
}

func (a *app) templatesTable(found []v1.Template) string {
	if len(found) == 0 {
		return "no templates\n"
	}
	rows := make([][]table.Cell, len(found))
	for i, t := range found {
		newest := "none"
		if len(t.Versions) > 0 {
			newest = t.Versions[0].Version
		}
		behind, open := 0, make(map[string]bool)
		for _, u := range t.Users {
			if u.Behind > 0 {
				behind++
			}
			if u.Proposed > 0 {
				open[fmt.Sprintf("%s#%d", u.Owner, u.Proposed)] = true
			}
		}
		rows[i] = []table.Cell{
			{Text: t.Name},
			{Text: newest},
			{Text: strconv.Itoa(len(t.Versions))},
			{Text: strconv.Itoa(len(t.Users))},
			countCell(behind),
			{Text: strconv.Itoa(len(open))},
			{Text: table.Shorten(t.Trouble, 100), Colour: table.Red},
		}
	}
	return a.Table([]string{"NAME", "NEWEST", "VERSIONS", "CLUSTERS", "BEHIND", "OPEN UPGRADES", "TROUBLE"}, rows)
}

// countCell marks what is not zero.
func countCell(n int) table.Cell {
	if n == 0 {
		return table.Cell{Text: "0"}
	}
	return table.Cell{Text: strconv.Itoa(n), Colour: table.Yellow}
}

func (a *app) templatesText(found []v1.Template) string {
	if len(found) == 0 {
		return "no templates\n"
	}
	parts := make([]string, 0, len(found))
	for _, t := range found {
		parts = append(parts, a.templateText(t))
	}
	return strings.Join(parts, "\n")
}

func (a *app) templateText(t v1.Template) string {
	out := a.Fields(
		[2]string{"Template", t.Name},
		[2]string{"Repository", t.Repo},
		[2]string{"Folder", t.Dir},
		[2]string{"Prepared", t.Prepared},
		[2]string{"Trouble", a.Paint(table.OneLine(t.Trouble), table.Red)},
	)
	rows := make([][]table.Cell, len(t.Versions))
	for i, v := range t.Versions {
		rows[i] = []table.Cell{{Text: v.Version}, {Text: v.Tag}, {Text: v.Revision.Short()}, {Text: strconv.Itoa(v.Clusters)}, releaseCell(v)}
	}
	versions := "none: a tag such as " + t.Name + "/v1.0.0 makes one\n"
	if len(rows) > 0 {
		versions = a.Table([]string{"VERSION", "TAG", "REVISION", "CLUSTERS", "STATUS"}, rows)
	}
	out += table.Section("Versions", versions)
	return out + table.Section("Clusters", a.usersTable(t.Users))
}

func releaseCell(v v1.TemplateVersion) table.Cell {
	switch {
	case v.MovedTo != "":
		return table.Cell{Text: fmt.Sprintf("refused: its tag was moved to %s", v.MovedTo.Short()), Colour: table.Red}
	case v.Unusable != "":
		return table.Cell{Text: "unusable: " + table.Shorten(v.Unusable, 120), Colour: table.Red}
	default:
		return table.Cell{}
	}
}

func (a *app) usersTable(users []v1.TemplateUse) string {
	if len(users) == 0 {
		return "no cluster is made from it\n"
	}
	rows := make([][]table.Cell, len(users))
	owners := slices.ContainsFunc(users, func(u v1.TemplateUse) bool { return u.Owner != users[0].Owner })
	trouble := slices.ContainsFunc(users, func(u v1.TemplateUse) bool { return u.Trouble != "" })
	for i, u := range users {
		version := u.Version
		if version == "" {
			version = "(folder)"
		}
		applied := table.Cell{Text: u.Applied}
		if u.Applied != u.Version {
			applied.Colour = table.Yellow
		}
		pullRequest := ""
		if u.Proposed > 0 {
			pullRequest = fmt.Sprintf("%s#%d", u.Owner, u.Proposed)
		}
		row := []table.Cell{{Text: u.Cluster}, {Text: version}, applied, countCell(u.Behind), {Text: u.Upgrades}, {Text: u.Next}, {Text: pullRequest}}
		if owners {
			row = append([]table.Cell{{Text: u.Owner}}, row...)
		}
		if trouble {
			row = append(row, table.Cell{Text: table.Shorten(u.Trouble, 160), Colour: table.Red})
		}
		rows[i] = row
	}
	header := []string{"CLUSTER", "VERSION", "APPLIED", "BEHIND", "UPGRADES", "NEXT", "PULL REQUEST"}
	if trouble {
		header = append(header, "TROUBLE")
	}
	if owners {
		header = append([]string{"OWNER"}, header...)
	}
	return a.Table(header, rows)
}
