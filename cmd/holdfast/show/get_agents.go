package show

import (
	"cmp"
	"context"
	"strings"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/protocol"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

func newGetAgentsCommand(a *app) *cobra.Command {
	var conn cli.Connection
	type agent = v1.Agent
	return newList(a, &conn, list[agent]{
		use:     "agents",
		aliases: []string{"agent"},
		short:   "List agents: what they execute, how they isolate engines, and when they last responded",
		long: `List the agents that have contacted the server since its start and within the last
day: its own and those on other machines. A silent agent has not contacted the server
for 30 seconds, or for a lease if one of its runs waits for it (AgentSilent); see
describe run. A refused agent gets no runs, because its isolation is weaker than
holdfast.yaml requires (--output yaml says why).`,
		args: cli.Exactly(0, "flags only"),
		columns: []column[agent]{
			text(table.Column{Title: "AGENT"}, func(s agent) string { return s.ID }),
			coloured(table.Column{Title: "STATE"}, agentState),
			text(table.Column{Title: "RUNNER", Yields: 5}, func(s agent) string { return cmp.Or(s.Runner, holdfast.LocalRunner) }),
			text(table.Column{Title: "KINDS", Min: 8}, agentKinds),
			text(table.Column{Title: "PROJECTS", Min: 8, Yields: 2}, func(s agent) string { return cmp.Or(strings.Join(s.Projects, ","), "all") }),
			coloured(table.Column{Title: "ISOLATION"}, agentIsolation),
			text(table.Column{Title: "HOST", Min: 8, Yields: 3}, func(s agent) string { return s.Host }),
			text(table.Column{Title: "VERSION", Min: 8, Yields: 4}, func(s agent) string { return s.Version }),
			text(table.Column{Title: "SEEN"}, func(s agent) string { return a.Age(s.SeenAt) }),
			text(table.Column{Title: "RUNS", Yields: 1}, func(s agent) string { return strings.Join(s.Runs, ",") }),
		},
		empty: "no agents",
		fetch: func(ctx context.Context, cl *client.Client, _ []string) ([]agent, error) { return cl.Agents(ctx) },
	})
}

func agentState(s v1.Agent) table.Cell {
	switch {
	case !s.Living:
		return table.Cell{Text: "silent", Colour: table.Red}
	case s.Refused != "":
		return table.Cell{Text: "refused", Colour: table.Red}
	default:
		return table.Cell{Text: "living", Colour: table.Green}
	}
}

// agentKinds are what an agent executes, unknown while only its heartbeats came.
func agentKinds(s v1.Agent) string {
	kinds := make([]string, len(s.Kinds))
	for i, kind := range s.Kinds {
		kinds[i] = string(kind)
	}
	return cmp.Or(strings.Join(kinds, ","), "?")
}

func agentIsolation(s v1.Agent) table.Cell {
	switch {
	case len(s.Kinds) == 0:
		return table.Cell{Text: "?"}
	case s.Isolation == protocol.IsolationUnavailable:
		return table.Cell{Text: s.Isolation, Colour: table.Red}
	case s.Isolation == "", s.Isolation == protocol.IsolationNone:
		return table.Cell{Text: protocol.IsolationNone, Colour: table.Yellow}
	default:
		return table.Cell{Text: s.Isolation}
	}
}
