package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
)

func newGetTemplatesCommand(a *app) *cobra.Command {
	var (
		conn   connection
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
			cl, err := a.connect(conn)
			if err != nil {
				return err
			}
			found, err := selectTemplates(c.Context(), cl, args, wide)
			if err != nil {
				return err
			}
			return a.print(format, notNil(found), func() string {
				if len(args) > 0 || wide {
					return a.templatesText(found)
				}
				return a.templatesTable(found)
			})
		},
	}
	addConnectionFlags(c, &conn)
	addFormatFlag(c, &format)
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
func selectTemplates(ctx context.Context, cl *client.Client, names []string, wide bool) ([]holdfast.TemplateStatus, error) {
	if len(names) == 0 {
		found, err := cl.Templates(ctx)
		if err != nil || !wide {
			return found, err
		}
		for _, t := range found {
			names = append(names, t.Name)
		}
	}
	found := make([]holdfast.TemplateStatus, 0, len(names))
	for _, name := range names {
		t, err := cl.Template(ctx, name)
		if err != nil {
			return nil, err
		}
		found = append(found, t)
	}
	return found, nil
}

func (a *app) templatesTable(found []holdfast.TemplateStatus) string {
	if len(found) == 0 {
		return "no templates\n"
	}
	rows := make([][]cell, len(found))
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
		rows[i] = []cell{
			{text: t.Name},
			{text: newest},
			{text: strconv.Itoa(len(t.Versions))},
			{text: strconv.Itoa(len(t.Users))},
			countCell(behind),
			{text: strconv.Itoa(len(open))},
			{shorten(t.Trouble, 100), red},
		}
	}
	return a.table([]string{"NAME", "NEWEST", "VERSIONS", "CLUSTERS", "BEHIND", "OPEN UPGRADES", "TROUBLE"}, rows)
}

// countCell marks what is not zero.
func countCell(n int) cell {
	if n == 0 {
		return cell{text: "0"}
	}
	return cell{strconv.Itoa(n), yellow}
}

func (a *app) templatesText(found []holdfast.TemplateStatus) string {
	if len(found) == 0 {
		return "no templates\n"
	}
	parts := make([]string, 0, len(found))
	for _, t := range found {
		parts = append(parts, a.templateText(t))
	}
	return strings.Join(parts, "\n")
}

func (a *app) templateText(t holdfast.TemplateStatus) string {
	out := a.fields(
		[2]string{"Template", t.Name},
		[2]string{"Repository", t.Repo},
		[2]string{"Folder", t.Dir},
		[2]string{"Prepared", t.Prepared},
		[2]string{"Trouble", a.paint(oneLine(t.Trouble), red)},
	)
	rows := make([][]cell, len(t.Versions))
	for i, v := range t.Versions {
		rows[i] = []cell{{text: v.Version}, {text: v.Tag}, {text: v.Revision.Short()}, {text: strconv.Itoa(v.Clusters)}, releaseCell(v)}
	}
	versions := "none: a tag such as " + t.Name + "/v1.0.0 makes one\n"
	if len(rows) > 0 {
		versions = a.table([]string{"VERSION", "TAG", "REVISION", "CLUSTERS", "STATUS"}, rows)
	}
	out += section("Versions", versions)
	return out + section("Clusters", a.usersTable(t.Users))
}

func releaseCell(v holdfast.TemplateRelease) cell {
	switch {
	case v.MovedTo != "":
		return cell{fmt.Sprintf("refused: its tag was moved to %s", v.MovedTo.Short()), red}
	case v.Unusable != "":
		return cell{"unusable: " + shorten(v.Unusable, 120), red}
	default:
		return cell{}
	}
}

func (a *app) usersTable(users []holdfast.TemplateUse) string {
	if len(users) == 0 {
		return "no cluster is made from it\n"
	}
	rows := make([][]cell, len(users))
	owners := slices.ContainsFunc(users, func(u holdfast.TemplateUse) bool { return u.Owner != users[0].Owner })
	trouble := slices.ContainsFunc(users, func(u holdfast.TemplateUse) bool { return u.Trouble != "" })
	for i, u := range users {
		version := u.Version
		if version == "" {
			version = "(folder)"
		}
		applied := cell{text: u.Applied}
		if u.Applied != u.Version {
			applied.colour = yellow
		}
		pullRequest := ""
		if u.Proposed > 0 {
			pullRequest = fmt.Sprintf("%s#%d", u.Owner, u.Proposed)
		}
		row := []cell{{text: u.Cluster}, {text: version}, applied, countCell(u.Behind), {text: u.Upgrades}, {text: u.Next}, {text: pullRequest}}
		if owners {
			row = append([]cell{{text: u.Owner}}, row...)
		}
		if trouble {
			row = append(row, cell{shorten(u.Trouble, 160), red})
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
	return a.table(header, rows)
}
