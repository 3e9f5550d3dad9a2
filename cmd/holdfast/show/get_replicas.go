package show

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

func newGetReplicasCommand(a *app) *cobra.Command {
	var conn cli.Connection
	type replica = v1.Replica
	return newList(a, &conn, list[replica]{
		use:     "replicas",
		aliases: []string{"replica"},
		short:   "List the servers that share the database: their versions, what they lead, and when they last responded",
		long: `List the servers that use the database: one, or several that share PostgreSQL. A
server is dead if it has not responded for 15 seconds, and is then listed for an hour;
a server that was stopped is not listed. LEADS lists the repositories that it polls and
decides about; (schedule) is work that belongs to no repository. Times are
those of the database.`,
		args: cli.Exactly(0, "flags only"),
		columns: []column[replica]{
			text(table.Column{Title: "REPLICA"}, func(r replica) string { return r.Identity }),
			coloured(table.Column{Title: "STATE"}, replicaState),
			text(table.Column{Title: "VERSION", Min: 8, Yields: 2}, func(r replica) string { return r.Version }),
			text(table.Column{Title: "PROTOCOL", Yields: 3}, func(r replica) string { return strconv.Itoa(r.Protocol) }),
			text(table.Column{Title: "SCHEMA", Yields: 3}, func(r replica) string { return strconv.FormatInt(r.Schema, 10) }),
			text(table.Column{Title: "ADDRESS", Min: 8, Yields: 4}, func(r replica) string { return r.Address }),
			text(table.Column{Title: "LEADS", Min: 8, Yields: 5}, replicaLeads),
			text(table.Column{Title: "STARTED", Yields: 1}, func(r replica) string { return a.Age(r.StartedAt) }),
			text(table.Column{Title: "SEEN"}, func(r replica) string { return a.Age(r.HeartbeatAt) }),
		},
		empty: "no replicas",
		fetch: func(ctx context.Context, cl *client.Client, _ []string) ([]replica, error) {
			return client.Replicas(ctx, cl)
		},
	})
}

// replicaLeads is what a replica leads, in words.
func replicaLeads(r v1.Replica) string {
	leads := r.Leads
	if r.Schedules {
		leads = append(slices.Clone(leads), "(schedule)")
	}
	return strings.Join(leads, ", ")
}

func replicaState(r v1.Replica) table.Cell {
	if r.Living {
		return table.Cell{Text: "living", Colour: table.Green}
	}
	return table.Cell{Text: "dead", Colour: table.Red}
}
