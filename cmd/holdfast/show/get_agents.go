package show

import (
	"cmp"
	"strings"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
	"github.com/spf13/cobra"
)

func newGetAgentsCommand(a *app) *cobra.Command {
	var (
		conn   cli.Connection
		format string
	)
	c := &cobra.Command{
		Use:     "agents",
		Aliases: []string{"agent"},
		Short:   "List agents: what they execute, how they isolate engines, and when they were heard of",
		Long: `List the agents that the server has heard of since it was started, and not only
more than a day ago: those beside it and those elsewhere. An agent that is silent has
not been heard of for 30 seconds; its runs wait for it, see describe run.`,
		Args: cli.Exactly(0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			agents, err := cl.Agents(c.Context())
			if err != nil {
				return err
			}
			return a.Print(format, table.NotNil(agents), func() string { return a.agentsTable(agents) })
		},
	}
	cli.AddConnectionFlags(c, &conn)
	cli.AddFormatFlag(c, &format)
	return c
}

func (a *app) agentsTable(agents []v1.Agent) string {
	if len(agents) == 0 {
		return "no agents\n"
	}
	rows := make([][]table.Cell, len(agents))
	for i, agent := range agents {
		state := table.Cell{Text: "living", Colour: table.Green}
		if !agent.Living {
			state = table.Cell{Text: "silent", Colour: table.Red}
		}
		kinds := make([]string, len(agent.Kinds))
		for j, kind := range agent.Kinds {
			kinds[j] = string(kind)
		}
		isolation := table.Cell{Text: cmp.Or(agent.Isolation, "unavailable")}
		switch {
		case len(kinds) == 0: // only its heartbeats were heard
			isolation = table.Cell{Text: "?"}
			kinds = []string{"?"}
		case agent.Isolation == "":
			isolation.Colour = table.Red
		case agent.Isolation == "none":
			isolation.Colour = table.Yellow
		}
		rows[i] = []table.Cell{
			{Text: agent.ID},
			state,
			{Text: strings.Join(kinds, ",")},
			{Text: cmp.Or(strings.Join(agent.Projects, ","), "all")},
			isolation,
			{Text: agent.Host},
			{Text: agent.Version},
			{Text: a.Age(agent.SeenAt)},
			{Text: strings.Join(agent.Runs, ",")},
		}
	}
	return a.Table([]string{"AGENT", "STATE", "KINDS", "PROJECTS", "ISOLATION", "HOST", "VERSION", "SEEN", "RUNS"}, rows)
}
