package show

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
	"github.com/spf13/cobra"
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
		{"phase", "in this phase, such as Active"},
		{"waiting", "waiting for this reason, '*' for any"},
		{"owner", "defined by this repository"},
		{"drift", "whose last check for drift ended so: " + table.OrList(driftWords)},
	})
	c.Flags().StringArrayVarP(&f.labels, "label", "l", nil, "with this label, key=value; may be repeated")
	c.Flags().BoolVar(&f.all, "all", false, all)
	for flag, words := range map[string][]string{"phase": phaseWords(), "drift": driftWords} {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
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
	if drift := *f.values["drift"]; drift != "" && !slices.Contains(driftWords, drift) {
		return nil, cli.UsageError("drift %q: want %s", drift, table.OrList(driftWords))
	}
	if phase := *f.values["phase"]; phase != "" && !slices.Contains(phaseWords(), phase) {
		return nil, cli.UsageError("phase %q: want %s", phase, table.OrList(phaseWords()))
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
		format   string
		clusters clusterFlags
	)
	c := &cobra.Command{
		Use:     "clusters [NAME...]",
		Aliases: []string{"cluster"},
		Short:   "List clusters",
		Example: "  holdfast get clusters --environment production\n  holdfast get clusters --waiting '*'\n" +
			"  holdfast get clusters --drift drifted -l team=payments",
		RunE: func(c *cobra.Command, args []string) error {
			query, err := clusters.query(args)
			if err != nil {
				return err
			}
			cl, err := a.Connect(conn)
			if err != nil {
				return err
			}
			summaries, err := cl.Summaries(c.Context(), query)
			if err != nil {
				return err
			}
			return a.Print(format, table.NotNil(summaries), func() string { return a.clustersTable(summaries) })
		},
	}
	cli.AddConnectionFlags(c, &conn)
	cli.AddFormatFlag(c, &format)
	clusters.add(c, "also those that are gone")
	a.AddCompletion(c, &conn, 0)
	return c
}

func (a *app) clustersTable(summaries []v1.ClusterSummary) string {
	if len(summaries) == 0 {
		return "no clusters\n"
	}
	rows := make([][]table.Cell, len(summaries))
	for i, s := range summaries {
		rows[i] = []table.Cell{
			{Text: s.Name},
			{Text: s.Project},
			{Text: s.Environment},
			phaseCell(s.Phase),
			statusOf(s),
			driftCell(s.Drift, s.DriftCounts),
			{Text: s.Applied.Revision.Short()},
			{Text: a.Age(s.UpdatedAt)},
		}
	}
	return a.Table([]string{"NAME", "PROJECT", "ENVIRONMENT", "PHASE", "STATUS", "DRIFT", "APPLIED", "UPDATED"}, rows)
}

// statusOf says in a word what keeps a cluster from being as desired.
func statusOf(s v1.ClusterSummary) table.Cell {
	switch {
	case s.Phase == holdfast.PhaseDeleted:
		return table.Cell{}
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
		Phase: r.Phase, Suspended: r.Suspended, Invalid: len(r.Desired.Faults) > 0, Waiting: r.Waiting,
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
	}{{c.Changed, "changed"}, {c.Gone, "gone"}, {c.Input, "with another input"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if len(parts) == 0 {
		return "drifted"
	}
	return strings.Join(parts, ", ")
}
