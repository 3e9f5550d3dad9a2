package main

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
)

func newGetAgentsCommand(a *app) *cobra.Command {
	var (
		conn   connection
		format string
	)
	c := &cobra.Command{
		Use:     "agents",
		Aliases: []string{"agent"},
		Short:   "List agents: what they execute, how they isolate engines, and when they were heard of",
		Long: `List the agents that the server has heard of since it was started, and not only
more than a day ago: those beside it and those elsewhere. An agent that is silent has
not been heard of for 30 seconds; its runs wait for it, see describe run.`,
		Args: exactly(0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.connect(conn)
			if err != nil {
				return err
			}
			agents, err := cl.Agents(c.Context())
			if err != nil {
				return err
			}
			return a.print(format, notNil(agents), func() string { return a.agentsTable(agents) })
		},
	}
	addConnectionFlags(c, &conn)
	addFormatFlag(c, &format)
	return c
}

func (a *app) agentsTable(agents []holdfast.AgentStatus) string {
	if len(agents) == 0 {
		return "no agents\n"
	}
	rows := make([][]cell, len(agents))
	for i, agent := range agents {
		state := cell{"living", green}
		if !agent.Living {
			state = cell{"silent", red}
		}
		kinds := make([]string, len(agent.Kinds))
		for j, kind := range agent.Kinds {
			kinds[j] = string(kind)
		}
		isolation := cell{text: cmp.Or(agent.Isolation, "unavailable")}
		switch {
		case len(kinds) == 0: // only its heartbeats were heard
			isolation = cell{text: "?"}
			kinds = []string{"?"}
		case agent.Isolation == "":
			isolation.colour = red
		case agent.Isolation == "none":
			isolation.colour = yellow
		}
		rows[i] = []cell{
			{text: agent.ID},
			state,
			{text: strings.Join(kinds, ",")},
			{text: cmp.Or(strings.Join(agent.Projects, ","), "all")},
			isolation,
			{text: agent.Host},
			{text: agent.Version},
			{text: a.age(agent.SeenAt)},
			{text: strings.Join(agent.Runs, ",")},
		}
	}
	return a.table([]string{"AGENT", "STATE", "KINDS", "PROJECTS", "ISOLATION", "HOST", "VERSION", "SEEN", "RUNS"}, rows)
}
