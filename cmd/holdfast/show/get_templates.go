package show

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "github.com/holdfast-dev/holdfast/api/v1"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

func newGetTemplatesCommand(a *app) *cobra.Command {
	var conn cli.Connection
	var full bool
	c := newList(a, &conn, list[v1.Template]{
		use:     "templates [NAME...]",
		aliases: []string{"template"},
		short:   "List templates, and how far behind their clusters are",
		long: `List the templates that the repositories publish: the newest version, how many
there are, how many clusters use them and how many of these are behind,
and how many pull requests propose a newer version.

With names, or with -o wide, every version and every cluster is shown.`,
		example: "  holdfast get templates\n  holdfast get templates kubernetes",
		columns: templateColumns,
		empty:   "no templates",
		fetch: func(ctx context.Context, cl *client.Client, args []string) ([]v1.Template, error) {
			return selectTemplates(ctx, cl, args, full)
		},
		text: func(found []v1.Template, args []string, wide bool) (string, bool) {
			return a.templatesText(found), wide || len(args) > 0
		},
	})
	a.Complete(c, &conn, 0, cli.TemplateNames)
	checked := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		full = c.Flag("output").Value.String() == wide
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

var templateColumns = []column[v1.Template]{
	text(table.Column{Title: "NAME"}, func(t v1.Template) string { return t.Name }),
	text(table.Column{Title: "NEWEST"}, func(t v1.Template) string {
		if len(t.Versions) == 0 {
			return "none"
		}
		return t.Versions[0].Version
	}),
	text(table.Column{Title: "VERSIONS", Yields: 2}, func(t v1.Template) string { return strconv.Itoa(len(t.Versions)) }),
	text(table.Column{Title: "CLUSTERS"}, func(t v1.Template) string { return strconv.Itoa(len(t.Users)) }),
	coloured(table.Column{Title: "BEHIND"}, func(t v1.Template) table.Cell {
		behind := 0
		for _, u := range t.Users {
			if u.Behind > 0 {
				behind++
			}
		}
		return countCell(behind)
	}),
	text(table.Column{Title: "OPEN UPGRADES", Yields: 1}, func(t v1.Template) string {
		open := make(map[string]bool)
		for _, u := range t.Users {
			if u.Proposed > 0 {
				open[fmt.Sprintf("%s#%d", u.Owner, u.Proposed)] = true
			}
		}
		return strconv.Itoa(len(open))
	}),
	coloured(table.Column{Title: "TROUBLE", Min: 20}, func(t v1.Template) table.Cell {
		return table.Cell{Text: table.Shorten(t.Trouble, 100), Colour: table.Red}
	}),
}

// countCell marks what is not zero.
func countCell(n int) table.Cell {
	if n == 0 {
		return table.Cell{Text: "0"}
	}
	return table.Cell{Text: strconv.Itoa(n), Colour: table.Yellow}
}

func (a *app) templatesText(found []v1.Template) string {
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
	if len(rows) == 0 {
		out += table.Section("Versions", "none: a tag such as "+t.Name+"/v1.0.0 makes one")
	}
	out += a.Section("Versions", []table.Column{
		{Title: "VERSION"}, {Title: "TAG", Yields: 1}, {Title: "REVISION", Yields: 2}, {Title: "CLUSTERS"}, {Title: "STATUS", Min: 24},
	}, rows)
	return out + a.usersSection(t.Users)
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

func (a *app) usersSection(users []v1.TemplateUse) string {
	type use = v1.TemplateUse
	if len(users) == 0 {
		return table.Section("Clusters", "no cluster uses it")
	}
	columns := []column[use]{
		text(table.Column{Title: "CLUSTER"}, func(u use) string { return u.Cluster }),
		text(table.Column{Title: "VERSION"}, func(u use) string { return cmp.Or(u.Version, "(folder)") }),
		coloured(table.Column{Title: "APPLIED"}, func(u use) table.Cell {
			if u.Applied != u.Version {
				return table.Cell{Text: u.Applied, Colour: table.Yellow}
			}
			return table.Cell{Text: u.Applied}
		}),
		coloured(table.Column{Title: "BEHIND"}, func(u use) table.Cell { return countCell(u.Behind) }),
		text(table.Column{Title: "UPGRADES", Yields: 1}, func(u use) string { return u.Upgrades }),
		text(table.Column{Title: "NEXT"}, func(u use) string { return u.Next }),
		text(table.Column{Title: "PULL REQUEST"}, func(u use) string {
			if u.Proposed == 0 {
				return ""
			}
			return fmt.Sprintf("%s#%d", u.Owner, u.Proposed)
		}),
	}
	if slices.ContainsFunc(users, func(u use) bool { return u.Trouble != "" }) {
		columns = append(columns, coloured(table.Column{Title: "TROUBLE", Min: 24}, func(u use) table.Cell {
			return table.Cell{Text: table.Shorten(u.Trouble, 160), Colour: table.Red}
		}))
	}
	if slices.ContainsFunc(users, func(u use) bool { return u.Owner != users[0].Owner }) {
		columns = append([]column[use]{text(table.Column{Title: "OWNER", Yields: 2}, func(u use) string { return u.Owner })}, columns...)
	}
	return a.Section("Clusters", columnsOf(columns), rowsOf(columns, users))
}
