package template

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

func newUpgradeCommand(a *app) *cobra.Command {
	var (
		conn   cli.Connection
		format string
		req    v1.UpgradeRequest
	)
	c := &cobra.Command{
		Use:   "upgrade CLUSTER... | KEY=VALUE[,KEY=VALUE] | --all",
		Short: "Propose newer versions of a template by pull request, now",
		Long: `Open pull requests that move clusters to a newer version of their template: named
clusters, clusters with some labels, or all. Without --to, the version is the newest one
that upgrades in a cluster's document allows; if there is no such key, the newest one of
the same major version.

The command applies nothing: each cluster is planned in its pull request, and a merge
applies what was reviewed. Upgrades that were already proposed are not repeated.

The exit code is 3 if there is nothing to propose, or something could not be
proposed yet.`,
		Example: "  holdfast template upgrade prod-eu prod-us\n  holdfast template upgrade team=payments,tier=gold --to 1.5.0\n" +
			"  holdfast template upgrade --all --template kubernetes",
		RunE: func(c *cobra.Command, args []string) error {
			if err := selectUpgrades(args, &req); err != nil {
				return err
			}
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			upgrades, err := cl.Upgrade(c.Context(), req)
			if err != nil {
				var refused *client.Error
				if errors.As(err, &refused) && refused.Status == http.StatusConflict {
					return &cli.ExitCodeError{Code: cli.ExitRun, Err: fmt.Errorf("nothing to propose: %w", err)}
				}
				return err
			}
			if err := a.Print(format, table.NotNil(upgrades), func() string { return a.upgradesTable(upgrades) }); err != nil {
				return err
			}
			if slices.ContainsFunc(upgrades, func(u v1.Upgrade) bool { return u.Trouble != "" }) {
				return &cli.ExitCodeError{Code: cli.ExitRun}
			}
			return nil
		},
	}
	cli.AddConnectionFlags(c, &conn)
	a.Complete(c, &conn, 0, cli.ClusterNames)
	cli.AddFormatFlag(c, &format)
	c.Flags().BoolVar(&req.All, "all", false, "all clusters that use a template")
	c.Flags().StringVar(&req.Template, "template", "", "only those that use this template")
	a.CompleteFlag(c, &conn, "template", cli.TemplateNames)
	c.Flags().StringVar(&req.To, "to", "", "the version (default: the newest that each cluster allows)")
	return c
}

// selectUpgrades reads which clusters are meant.
func selectUpgrades(args []string, req *v1.UpgradeRequest) error {
	const want = "clusters' names, or labels such as team=payments, or --all"
	labels := slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, "=") })
	switch {
	case req.All == (len(args) > 0):
		return cli.UsageError("which clusters: give %s", want)
	case !labels:
		for _, arg := range args {
			if !cli.ClusterName.MatchString(arg) {
				return cli.UsageError("%q is not a cluster's name: give %s", arg, want)
			}
		}
		req.Clusters = args
		return nil
	}
	req.Labels = make(map[string]string)
	for _, arg := range args {
		for pair := range strings.SplitSeq(arg, ",") {
			key, value, ok := strings.Cut(pair, "=")
			if key = strings.TrimSpace(key); !ok || key == "" {
				return cli.UsageError("%q is not a label such as team=payments", pair)
			}
			if _, twice := req.Labels[key]; twice {
				return cli.UsageError("label %q is given twice: a cluster has one value of it", key)
			}
			req.Labels[key] = strings.TrimSpace(value)
		}
	}
	return nil
}

func (a *app) upgradesTable(upgrades []v1.Upgrade) string {
	rows := make([][]table.Cell, len(upgrades))
	for i, u := range upgrades {
		pullRequest := "(not open yet)"
		if u.PullRequest > 0 {
			pullRequest = fmt.Sprintf("%s#%d", u.Repo, u.PullRequest)
		}
		to := make(map[string]bool)
		for _, c := range u.Clusters {
			to[c.To] = true
		}
		version := fmt.Sprintf("%d versions", len(to))
		if len(to) == 1 {
			version = u.Clusters[0].To
		}
		rows[i] = []table.Cell{
			{Text: pullRequest},
			{Text: u.Template},
			{Text: version},
			{Text: table.Shorten(upgradedNames(u), 60)},
			{Text: string(u.State)},
			{Text: u.URL},
			{Text: u.Trouble, Colour: table.Red},
		}
	}
	return a.Table([]table.Column{
		{Title: "PULL REQUEST"},
		{Title: "TEMPLATE"},
		{Title: "TO"},
		{Title: "CLUSTERS", Min: 12},
		{Title: "STATE"},
		{Title: "URL", Yields: 1},
		{Title: "TROUBLE", Min: 20},
	}, rows)
}

func upgradedNames(u v1.Upgrade) string {
	names := make([]string, len(u.Clusters))
	for i, c := range u.Clusters {
		names[i] = c.Name
	}
	if len(names) > 3 {
		return fmt.Sprintf("%d: %s, …", len(names), strings.Join(names[:3], ", "))
	}
	return strings.Join(names, ", ")
}
