package show

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

func newGetRunnersCommand(a *app) *cobra.Command {
	var conn cli.Connection
	type runner = v1.Runner
	return newList(a, &conn, list[runner]{
		use:     "runners",
		aliases: []string{"runner"},
		short:   "List runners: where agents execute runs, and how many environments each has",
		long: `List the runners in force: local, which always exists, then those that documents
define. FAULT shows why the current document in the repository is not in force;
holdfast describe runner NAME shows the complete error.`,
		args: cli.Exactly(0, "flags only"),
		columns: []column[runner]{
			text(table.Column{Title: "RUNNER"}, func(r runner) string { return r.Name }),
			text(table.Column{Title: "TYPE"}, func(r runner) string { return string(r.Type) }),
			text(table.Column{Title: "ENVIRONMENTS"}, func(r runner) string { return strconv.Itoa(r.Environments) }),
			text(table.Column{Title: "AGENTS"}, agentsOf),
			text(table.Column{Title: "DOCUMENT", Min: 12, Yields: 2}, func(r runner) string { return placeText(r.Place) }),
			coloured(table.Column{Title: "FAULT", Min: 12, Yields: 1}, func(r runner) table.Cell {
				if len(r.Faults) == 0 {
					return table.Cell{}
				}
				return table.Cell{Text: r.Faults[0].Message, Colour: table.Red}
			}),
		},
		empty: "no runners",
		fetch: func(ctx context.Context, cl *client.Client, _ []string) ([]runner, error) {
			return client.RunnersOf(cl).List(ctx)
		},
	})
}

// agentsOf is how many agents a runner has; of one that starts them for each run it says nothing.
func agentsOf(r v1.Runner) string {
	if r.Agents == 0 && !r.Type.Standing() {
		return "-"
	}
	return strconv.Itoa(r.Agents)
}

func placeText(p v1.DocumentPlace) string {
	if p.Repo == "" {
		return "-"
	}
	return fmt.Sprintf("%s %s:%d", p.Repo, p.Path, p.Line)
}

func newGetEnvironmentsCommand(a *app) *cobra.Command {
	var conn cli.Connection
	type environment = v1.Environment
	values := make(map[string]*string)
	c := newList(a, &conn, list[environment]{
		use:     "environments",
		aliases: []string{"environment", "env", "envs"},
		short:   "List environments that have run, and the runner that each is pinned to",
		long: `List the environments that have had runs, and the runner that each is pinned to since
its first run, or since the last holdfast refresh runner. RULE is the rule that selected
the runner; none: no rule matched then.`,
		args: cli.Exactly(0, "flags only"),
		columns: []column[environment]{
			text(table.Column{Title: "PROJECT"}, func(e environment) string { return e.Project }),
			text(table.Column{Title: "ENVIRONMENT"}, func(e environment) string { return e.Name }),
			text(table.Column{Title: "RUNNER"}, func(e environment) string { return e.Runner }),
			text(table.Column{Title: "RULE"}, func(e environment) string { return cmp.Or(e.Rule, "none") }),
			text(table.Column{Title: "PINNED"}, func(e environment) string { return a.Age(e.PinnedAt) }),
		},
		empty: "no environments",
		fetch: func(ctx context.Context, cl *client.Client, _ []string) ([]environment, error) {
			return client.RunnersOf(cl).Environments(ctx, setValues(values))
		},
	})
	addValueFlags(c, values, [][2]string{{"project", "of this project"}, {"runner", "that are pinned to this runner"}})
	a.CompleteFlag(c, &conn, "project", cli.Projects)
	a.CompleteFlag(c, &conn, "runner", cli.Runners)
	return c
}

func newDescribeRunnerCommand(a *app) *cobra.Command {
	var (
		conn   cli.Connection
		format string
	)
	c := &cobra.Command{
		Use:   "runner NAME",
		Short: "Show a runner: document, faults, rules, environments, agents",
		Args:  cli.Exactly(1, "a runner's name"),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			r, err := client.RunnersOf(cl).Get(c.Context(), args[0])
			if err != nil {
				return err
			}
			return a.Print(format, r, func() string { return a.runnerText(r) })
		},
	}
	cli.AddConnectionFlags(c, &conn)
	a.Complete(c, &conn, 1, cli.Runners)
	cli.AddFormatFlag(c, &format)
	return c
}

func (a *app) runnerText(r v1.RunnerDetail) string {
	var b strings.Builder
	fields := [][2]string{{"Runner", r.Name}, {"Type", string(r.Type)}}
	if r.Place.Repo != "" {
		fields = append(fields, [2]string{"Document", placeText(r.Place) + " at " + r.Place.Revision.Short()})
	}
	if len(r.Spec) > 0 && string(r.Spec) != "{}" {
		fields = append(fields, [2]string{"Spec", string(r.Spec)})
	}
	fields = append(fields, [2]string{"Agents", cmp.Or(strings.Join(r.IDs, ", "), "none that lives")})
	for _, f := range fields {
		fmt.Fprintf(&b, "%-10s %s\n", f[0]+":", table.Clean(f[1]))
	}
	for _, fault := range r.Faults {
		fmt.Fprintf(&b, "%-10s %s\n", "Fault:", table.Clean(fault.Error()))
	}
	var rules, pinned [][]table.Cell
	for _, rule := range r.Rules {
		rules = append(rules, table.Cells(rule.Name, cmp.Or(rule.Project, "any"), cmp.Or(rule.Environment, "any"), placeText(rule.Place)))
	}
	for _, env := range r.Pinned {
		pinned = append(pinned, table.Cells(holdfast.EnvironmentKey{Project: env.Project, Name: env.Name}.String(), cmp.Or(env.Rule, "none"), a.Age(env.PinnedAt)))
	}
	b.WriteString(a.Section("Rules", []table.Column{{Title: "RULE"}, {Title: "PROJECT"}, {Title: "ENVIRONMENT"}, {Title: "DOCUMENT"}}, rules))
	b.WriteString(a.Section("Environments", []table.Column{{Title: "ENVIRONMENT"}, {Title: "RULE"}, {Title: "PINNED"}}, pinned))
	return b.String()
}
