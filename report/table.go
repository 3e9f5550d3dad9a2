package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report/markdown"
)

// tableWriter writes the summary.
type tableWriter struct{ *writer }

// column is one of the summary. It is left out if it says nothing of any cluster.
type column struct {
	head, rule string
	cell       func(row []outcome) string
}

// columns are those of the summary, in their order.
func (w tableWriter) columns() []column {
	return []column{
		{"", "---", func(row []outcome) string { return row[0].icon }},
		{"Cluster", "---", w.clustersCell},
		{"Plan", "---", func(row []outcome) string { return planCell(row[0]) }},
		{"Policies", "---", func(row []outcome) string { return policyCell(row[0]) }},
		{"Run", "---", func(row []outcome) string { return w.runCell(row[0].run) }},
	}
}

// summary is the table of clusters; of a single one, what the headline does not say.
func (w tableWriter) summary() {
	switch {
	case len(w.outcomes) == 0:
		return
	case w.lone():
		w.single(w.outcomes[0])
		return
	}
	columns := slices.DeleteFunc(w.columns(), func(c column) bool {
		return c.head != "" && !slices.ContainsFunc(w.tabled, func(row []outcome) bool { return c.cell(row) != "" })
	})
	line := func(text func(c column) string) {
		cells := make([]string, len(columns))
		for i, c := range columns {
			cells[i] = text(c)
		}
		w.line("| " + strings.Join(cells, " | ") + " |")
	}
	line(func(c column) string { return c.head })
	line(func(c column) string { return c.rule })
	hidden := 0
	for i, row := range w.tabled {
		if i >= w.level.clusters && !w.named(row[0]) {
			hidden += len(row)
			continue
		}
		line(func(c column) string { return c.cell(row) })
	}
	if hidden > 0 {
		w.dropped = true
		w.linef("\n… and %s more: %s lists the runs of all.", markdown.Plural(hidden, "cluster"),
			markdown.Code("holdfast get runs --pull-request "+markdown.OneLine(w.r.PullRequest.String())))
	}
	if slices.ContainsFunc(w.outcomes, func(o outcome) bool { return len(o.provisional()) > 0 }) {
		w.line("\n" + provisionalNote)
	}
	w.line("")
}

const provisionalNote = "A provisional plan is made again once the cluster before it is applied, and held if it then differs."

// lone reports whether the headline is about one cluster, so that no table and no title
// has to name it.
func (w *writer) lone() bool { return len(w.outcomes) == 1 && len(w.impacts) == 0 }

// single is what there is to say of the only cluster besides the headline.
func (w tableWriter) single(o outcome) {
	var parts []string
	add := func(format, s string) {
		if s != "" {
			parts = append(parts, fmt.Sprintf(format, s))
		}
	}
	add("Environment %s", markdown.ShortText(o.cluster.Document.Environment, 40))
	if !slices.Contains(ordinary, o.result) && o.result != "held: "+markdown.Text(string(o.reason)) {
		add("%s", o.result)
	}
	parts = append(parts, o.remarks()...)
	add("policies %s", policyCell(o))
	add("run %s", w.runCell(o.run))
	if len(parts) == 0 {
		return
	}
	parts[0] = capital(parts[0])
	w.line(strings.Join(parts, " · ") + "\n")
	if len(o.provisional()) > 0 {
		w.line(provisionalNote + "\n")
	}
}

// ordinary are results that the headline has shown already, in its own words.
var ordinary = []string{
	"changes", "destroys", "replaces", "destroys and replaces", "forgets", "only outputs change", "no changes", "has faults",
	"**destroys the cluster**", "**destroyed**", "applied", "plan failed", "apply failed", "destroy failed", "apply interrupted", "destroy interrupted",
}

// capital is a text that begins with a capital, if it begins with a letter.
func capital(s string) string {
	if s != "" && s[0] >= 'a' && s[0] <= 'z' {
		return string(s[0]-'a'+'A') + s[1:]
	}
	return s
}

// aRowEach is how many clusters that have the same to show have a row each.
const aRowEach = 5

// rows puts clusters that have the same to show into one row, if they are many. What
// failed has its own rows.
func (w *writer) rows() [][]outcome {
	keys := make([]string, len(w.outcomes))
	members := map[string][]outcome{}
	for i, o := range w.outcomes {
		keys[i] = fmt.Sprint("alone ", i)
		if o.stage != stageFailed {
			plan := "-"
			if o.plan != nil {
				plan = o.key
			}
			keys[i] = strings.Join([]string{o.icon, planCell(o), policyCell(o), o.cluster.Document.Environment, plan}, "\x00")
		}
		members[keys[i]] = append(members[keys[i]], o)
	}
	var rows [][]outcome
	for i, o := range w.outcomes {
		switch all := members[keys[i]]; {
		case len(all) <= aRowEach:
			rows = append(rows, []outcome{o})
		case all[0].cluster.Name == o.cluster.Name:
			rows = append(rows, all)
		}
	}
	return rows
}

// clustersCell names the clusters of a row.
func (w *writer) clustersCell(row []outcome) string {
	if len(row) == 1 {
		return clusterCell(row[0].cluster)
	}
	cell := fmt.Sprintf("**%d clusters, each:** %s", len(row), planWriter{w}.memberNames(row))
	if env := row[0].cluster.Document.Environment; env != "" {
		cell += " " + markdown.ShortText(env, 40)
	}
	return cell
}

func clusterCell(c Cluster) string {
	cell := markdown.Code(c.Name)
	if env := c.Document.Environment; env != "" {
		cell += " " + markdown.ShortText(env, 40)
	}
	return cell
}

// planCell is what a plan would do, or has done, and what else is to be known of it.
func planCell(o outcome) string {
	cell := o.result
	switch counts := countsCell(o); {
	case counts == "":
	case o.stage == stageDone && !o.applied && !o.destroy:
		cell = counts // the icon says that it changes
	default:
		cell += " (" + strings.ReplaceAll(counts, "**", "") + ")" // the result says what is lost
	}
	return strings.Join(append([]string{cell}, o.remarks()...), "; ")
}

// countsCell is how many resources a plan moves, what is lost in bold; empty if that is
// no longer known, or nothing.
func countsCell(o outcome) string {
	if o.stale || o.counts.Zero() {
		return ""
	}
	var parts []string
	for _, part := range countParts(o.counts) {
		words := fmt.Sprintf("%d %s", part.n, part.verb)
		if o.applied {
			words = fmt.Sprintf("%d %s", part.n, part.done)
		}
		if part.loses && !o.applied {
			words = "**" + words + "**"
		}
		parts = append(parts, words)
	}
	if resources := o.counts; resources.Outputs > 0 && resources != (holdfast.Counts{Outputs: resources.Outputs}) {
		parts = append(parts, markdown.Plural(resources.Outputs, "output"))
	}
	return strings.Join(parts, ", ")
}

// remarks are what else is to be known of a cluster's plan.
func (o outcome) remarks() (remarks []string) {
	if from := o.cluster.Document.RenamedFrom; from != "" && !o.destroy && o.reason != holdfast.ReasonInvalid {
		remarks = append(remarks, "renamed from "+markdown.Code(markdown.Shorten(from, 63))+": state and history continue")
	}
	if ahead := o.provisional(); len(ahead) > 0 {
		remarks = append(remarks, "provisional: planned before "+names(ahead)+" "+oneOrMany(len(ahead), "is", "are")+" applied")
	}
	return remarks
}

// provisional are the clusters whose applies are still to come before that of
// what is shown.
func (o outcome) provisional() []string {
	if o.run == nil || o.run.Kind != holdfast.RunPlan || o.stale || o.plan == nil {
		return nil
	}
	return o.run.Provisional
}

// oneOrMany is the word for one thing, or for several.
func oneOrMany(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// runCell names a run that has a log, to be read with holdfast logs, or at its
// address.
func (w *writer) runCell(run *holdfast.Run) string {
	if run == nil || run.Attempt == 0 {
		return ""
	}
	if w.r.LogURL == nil {
		return markdown.Code(run.ID)
	}
	url := w.r.LogURL(run.ID)
	if !isLink(url) {
		return markdown.Code(run.ID)
	}
	return "[" + markdown.Code(run.ID) + "](" + url + ")"
}

// isLink reports whether something may be the target of a link.
func isLink(url string) bool {
	return (strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://")) && !strings.ContainsFunc(url, notInURL)
}

// notInURL is what could end a link early.
func notInURL(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("|()<>[]\\\"'`@", r) }
