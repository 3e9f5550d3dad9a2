package show

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

func newGetQueueCommand(a *app) *cobra.Command {
	var (
		conn   cli.Connection
		limit  int
		runner string
	)
	type entry = v1.QueuedRun
	c := newList(a, &conn, list[entry]{
		use:   "queue",
		short: "List runs that wait for an agent, in the order in which they are handed out",
		long: `List runs that wait for an agent, in the order in which they are handed out if no
others are queued. Applies and destroys go first, then plans, samples and drift checks;
within each of these, pull requests take turns, and so do projects for runs without
one. AHEAD shows how many runs go first and why, WAITS FOR what else delays a run.`,
		args: cli.Exactly(0, "flags only"),
		columns: []column[entry]{
			text(table.Column{Title: "#"}, func(e entry) string { return strconv.Itoa(e.Position) }),
			text(table.Column{Title: "RUN", Yields: 3}, func(e entry) string { return e.Run }),
			text(table.Column{Title: "CLUSTER"}, func(e entry) string { return e.Cluster }),
			text(table.Column{Title: "KIND"}, func(e entry) string { return string(e.Kind) }),
			text(table.Column{Title: "RUNNER", Yields: 4}, func(e entry) string { return cmp.Or(e.Runner, holdfast.LocalRunner) }),
			text(table.Column{Title: "PULL REQUEST", Yields: 2}, func(e entry) string { return e.PullRequest.String() }),
			text(table.Column{Title: "AHEAD", Min: 12, Yields: 1}, func(e entry) string { return aheadText(e.Ahead) }),
			text(table.Column{Title: "WAITS FOR"}, func(e entry) string { return string(e.Reason) }),
			text(table.Column{Title: "AGE"}, func(e entry) string { return a.Age(e.CreatedAt) }),
		},
		empty: "no runs wait",
		limit: &limit,
		fetch: func(ctx context.Context, cl *client.Client, _ []string) ([]entry, error) {
			if err := atLeastOne(limit); err != nil {
				return nil, err
			}
			query := url.Values{"limit": {strconv.Itoa(limit)}}
			if runner != "" {
				query.Set("runner", runner)
			}
			return cl.Queue(ctx, query)
		},
	})
	c.Flags().IntVar(&limit, "limit", 50, "show at most this many")
	c.Flags().StringVar(&runner, "runner", "", "only runs of this runner; # is the position in the complete queue")
	a.CompleteFlag(c, &conn, "runner", cli.Runners)
	return c
}

// aheadText is what goes before a run, such as "2 by priority, 5 in turn".
func aheadText(a v1.Ahead) string {
	var parts []string
	for _, p := range []struct {
		n    int
		word string
	}{{a.Overdue, "overdue"}, {a.Priority, "by priority"}, {a.Others, "in turn"}, {a.Own, "of its own"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.word))
		}
	}
	return strings.Join(parts, ", ")
}

// atLeastOne refuses a list of nothing.
func atLeastOne(limit int) error {
	if limit < 1 {
		return cli.UsageError("--limit %d: want 1 or more", limit)
	}
	return nil
}
