package show

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/hint"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

// clusterFlags select clusters.
type clusterFlags struct {
	labels []string
	all    bool
	values map[string]*string
}

// add defines the flags; all says what --all adds.
func (f *clusterFlags) add(c *cobra.Command, all string) {
	f.values = make(map[string]*string)
	addValueFlags(c, f.values, [][2]string{
		{"project", "of this project"},
		{"environment", "of this environment"},
		{"phase", "in this phase: " + table.OrList(phaseWords())},
		{"waiting", "waiting for this reason, '*' for any"},
		{"owner", "defined by this repository"},
		{"drift", "with this result of the last drift check: " + table.OrList(driftWords)},
	})
	c.Flags().StringArrayVarP(&f.labels, "label", "l", nil, "with this label, key=value; may be repeated")
	c.Flags().BoolVar(&f.all, "all", false, all)
	completeWords(c, "phase", phaseWords())
	completeWords(c, "drift", driftWords)
	completeWords(c, "waiting", waitingWords())
}

// completeClusterFlags lets shells complete those flags whose values the server knows.
func completeClusterFlags(a *app, c *cobra.Command, conn *cli.Connection) {
	a.CompleteFlag(c, conn, "project", cli.Projects)
	a.CompleteFlag(c, conn, "environment", cli.Environments)
	a.CompleteFlag(c, conn, "owner", cli.Repositories)
}

// waitingWords are the reasons for which clusters wait.
func waitingWords() []string {
	words := []string{"*"}
	for _, reason := range holdfast.Reasons() {
		if info := reason.Info(); info.Effect != holdfast.Explains && !info.Cause {
			words = append(words, string(reason))
		}
	}
	return words
}

// phaseWords are the phases in their order.
func phaseWords() []string {
	var words []string
	for _, phase := range holdfast.Phases() {
		words = append(words, string(phase))
	}
	return words
}

var driftWords = []string{string(holdfast.DriftFound), string(holdfast.DriftNone), string(holdfast.DriftFailed)}

// query returns the parameters that ask for the clusters.
func (f *clusterFlags) query(names []string) (url.Values, error) {
	for flag, words := range map[string][]string{"drift": driftWords, "phase": phaseWords()} {
		if value := *f.values[flag]; value != "" {
			if err := cli.OneOf(flag, value, words); err != nil {
				return nil, err
			}
		}
	}
	query := setValues(f.values)
	query["name"], query["label"] = names, f.labels
	if f.all {
		query.Set("all", "true")
	}
	return query, nil
}

func newGetClustersCommand(a *app) *cobra.Command {
	var (
		conn     cli.Connection
		clusters clusterFlags
	)
	c := newList(a, &conn, list[v1.ClusterSummary]{
		use:     "clusters [NAME...]",
		aliases: []string{"cluster"},
		short:   "List clusters",
		example: "  holdfast get clusters --environment production\n  holdfast get clusters --waiting '*'\n" +
			"  holdfast get clusters --drift drifted -l team=payments",
		columns: a.clusterColumns(),
		empty:   "no clusters",
		fetch: func(ctx context.Context, cl *client.Client, args []string) ([]v1.ClusterSummary, error) {
			query, err := clusters.query(args)
			if err != nil {
				return nil, err
			}
			return cl.Summaries(ctx, query)
		},
		known: func(ctx context.Context, cl *client.Client, args []string, items []v1.ClusterSummary) error {
			return clustersExist(ctx, cl, args, items, func(s v1.ClusterSummary) string { return s.Name })
		},
	})
	clusters.add(c, "include clusters that are gone")
	completeClusterFlags(a, c, &conn)
	a.Complete(c, &conn, 0, cli.ClusterNames)
	return c
}

// clustersExist returns an error for the first name that no cluster has, whatever selects
// those that are listed: a misspelt one would read as a cluster that is well.
func clustersExist[T any](ctx context.Context, cl *client.Client, names []string, listed []T, nameOf func(T) string) error {
	missing := slices.Clone(names)
	for _, item := range listed {
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == nameOf(item) })
	}
	if len(missing) == 0 {
		return nil
	}
	found, err := cl.Summaries(ctx, url.Values{"name": missing, "all": {"true"}, "fields": {"name"}})
	if err != nil {
		return err
	}
	for _, name := range missing {
		if !slices.ContainsFunc(found, func(s v1.ClusterSummary) bool { return s.Name == name }) {
			return hint.New(fmt.Errorf("cluster %q: %w", name, holdfast.ErrNotFound), "holdfast get clusters --all lists all")
		}
	}
	return nil
}

func (a *app) clusterColumns() []column[v1.ClusterSummary] {
	type summary = v1.ClusterSummary
	return []column[summary]{
		text(table.Column{Title: "NAME"}, func(s summary) string { return s.Name }),
		text(table.Column{Title: "PROJECT", Yields: 2}, func(s summary) string { return s.Project }),
		text(table.Column{Title: "ENVIRONMENT", Yields: 1}, func(s summary) string { return s.Environment }),
		coloured(table.Column{Title: "PHASE"}, func(s summary) table.Cell { return phaseCell(s.Phase) }),
		coloured(table.Column{Title: "STATUS"}, statusOf),
		coloured(table.Column{Title: "DRIFT", Min: 12}, func(s summary) table.Cell { return driftCell(s.Drift, s.DriftCounts) }),
		text(table.Column{Title: "APPLIED", Yields: 3}, func(s summary) string { return s.Applied.Revision.Short() }),
		text(table.Column{Title: "UPDATED"}, func(s summary) string { return a.Age(s.UpdatedAt) }),
	}
}

// statusOf says in a word what keeps a cluster from being as desired.
func statusOf(s v1.ClusterSummary) table.Cell {
	switch {
	case s.Phase == holdfast.PhaseDeleted:
		return table.Cell{}
	case s.Unwatched:
		return table.Cell{Text: "Unwatched", Colour: table.Yellow}
	case s.Suspended:
		return table.Cell{Text: string(holdfast.ReasonSuspended), Colour: table.Yellow}
	case s.Invalid:
		return table.Cell{Text: string(holdfast.ReasonInvalid), Colour: table.Red}
	case s.Waiting != "":
		return table.Cell{Text: string(s.Waiting), Colour: table.Yellow}
	case s.UpToDate:
		return table.Cell{Text: string(holdfast.ReasonUpToDate), Colour: table.Green}
	case s.Removed:
		return table.Cell{Text: string(holdfast.ReasonRemoved), Colour: table.Plain}
	case s.Applied.Revision == "":
		return table.Cell{Text: "NotApplied", Colour: table.Plain}
	default:
		return table.Cell{Text: "OutOfDate", Colour: table.Yellow}
	}
}

// clusterStatus is statusOf for a record.
func clusterStatus(r v1.Cluster) table.Cell {
	return statusOf(v1.ClusterSummary{
		Phase: r.Phase, Unwatched: r.Unwatched, Suspended: r.Suspended, Invalid: len(r.Desired.Faults) > 0, Waiting: r.Waiting,
		UpToDate: r.Applied.SourceDigest.Equal(r.Desired.SourceDigest), Removed: r.Desired.Removed,
		Applied: v1.AppliedRevision{Revision: r.Applied.Revision},
	})
}

// documentOf returns what is desired, or what is left of a removed cluster.
func documentOf(r v1.Cluster) v1.Document {
	if r.Desired.Document.Name == "" {
		return r.Applied.Document
	}
	return r.Desired.Document
}

// driftCell says what the last check found, nothing if there was none.
func driftCell(status holdfast.DriftStatus, counts v1.DriftCounts) table.Cell {
	switch status {
	case holdfast.DriftFound:
		return table.Cell{Text: driftCounts(counts), Colour: table.Red}
	case holdfast.DriftFailed:
		return table.Cell{Text: "check failed", Colour: table.Yellow}
	case holdfast.DriftNone:
		return table.Cell{Text: "none", Colour: table.Green}
	default:
		return table.Cell{}
	}
}

// driftCounts says how much of a cluster has drifted, "drifted" if the numbers
// are not known.
func driftCounts(c v1.DriftCounts) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{c.Changed, "changed"}, {c.Gone, "gone"}, {c.Input, map[bool]string{true: "input changed", false: "inputs changed"}[c.Input == 1]}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if len(parts) == 0 {
		return "drifted"
	}
	return strings.Join(parts, ", ")
}
