package main

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast"
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
		{"drift", "whose last check for drift ended so: " + orList(driftWords)},
	})
	c.Flags().StringArrayVarP(&f.labels, "label", "l", nil, "with this label, key=value; may be repeated")
	c.Flags().BoolVar(&f.all, "all", false, all)
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
		return nil, usageError("drift %q: want %s", drift, orList(driftWords))
	}
	if phase := *f.values["phase"]; phase != "" && !slices.Contains(phaseWords(), phase) {
		return nil, usageError("phase %q: want %s", phase, orList(phaseWords()))
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
		conn     connection
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
			cl, err := a.connect(conn)
			if err != nil {
				return err
			}
			summaries, err := cl.Summaries(c.Context(), query)
			if err != nil {
				return err
			}
			return a.print(format, notNil(summaries), func() string { return a.clustersTable(summaries) })
		},
	}
	addConnectionFlags(c, &conn)
	addFormatFlag(c, &format)
	clusters.add(c, "also those that are gone")
	a.addCompletion(c, &conn, 0)
	return c
}

func (a *app) clustersTable(summaries []holdfast.ClusterSummary) string {
	if len(summaries) == 0 {
		return "no clusters\n"
	}
	rows := make([][]cell, len(summaries))
	for i, s := range summaries {
		rows[i] = []cell{
			{text: s.Name},
			{text: s.Project},
			{text: s.Environment},
			phaseCell(s.Phase),
			statusOf(s),
			driftCell(s.Drift, s.DriftCounts),
			{text: s.Applied.Revision.Short()},
			{text: a.age(s.UpdatedAt)},
		}
	}
	return a.table([]string{"NAME", "PROJECT", "ENVIRONMENT", "PHASE", "STATUS", "DRIFT", "APPLIED", "UPDATED"}, rows)
}

// statusOf says in a word what keeps a cluster from being as desired.
func statusOf(s holdfast.ClusterSummary) cell {
	switch {
	case s.Phase == holdfast.PhaseDeleted:
		return cell{}
	case s.Suspended:
		return cell{string(holdfast.ReasonSuspended), yellow}
	case s.Invalid:
		return cell{string(holdfast.ReasonInvalid), red}
	case s.Waiting != "":
		return cell{string(s.Waiting), yellow}
	case s.UpToDate:
		return cell{string(holdfast.ReasonUpToDate), green}
	case s.Removed:
		return cell{string(holdfast.ReasonRemoved), plain}
	case s.Applied.Revision == "":
		return cell{"NotApplied", plain}
	default:
		return cell{"OutOfDate", yellow}
	}
}

// clusterStatus is statusOf for a record.
func clusterStatus(r holdfast.ClusterRecord) cell {
	return statusOf(holdfast.ClusterSummary{
		Phase: r.Phase, Suspended: r.Suspended, Invalid: len(r.Desired.Faults) > 0, Waiting: r.Waiting,
		UpToDate: r.Applied.SourceDigest.Equal(r.Desired.SourceDigest), Removed: r.Desired.Removed,
		Applied: holdfast.AppliedLine{Revision: r.Applied.Revision},
	})
}

// documentOf returns what is desired, or what is left of a removed cluster.
func documentOf(r holdfast.ClusterRecord) holdfast.Cluster {
	if r.Desired.Document.Name == "" {
		return r.Applied.Document
	}
	return r.Desired.Document
}

// driftCell says what the last check found, nothing if there was none.
func driftCell(status holdfast.DriftStatus, counts holdfast.DriftCounts) cell {
	switch status {
	case holdfast.DriftFound:
		return cell{driftCounts(counts), red}
	case holdfast.DriftFailed:
		return cell{"check failed", yellow}
	case holdfast.DriftNone:
		return cell{"none", green}
	default:
		return cell{}
	}
}

// driftCounts says how much of a cluster has drifted, "drifted" if the numbers
// are not known.
func driftCounts(c holdfast.DriftCounts) string {
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
