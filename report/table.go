package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report/markdown"
)

// summary is the table of clusters.
func (w *writer) summary() {
	if len(w.outcomes) == 0 {
		return
	}
	header, rule := "| | Cluster | Result |", "|---|---|---|"
	counted := slices.ContainsFunc(w.outcomes, func(o outcome) bool { return !o.stale && !o.counts.Zero() })
	if counted {
		header, rule = header+" Create | Change | Replace | Destroy |", rule+"--:|--:|--:|--:|"
	}
	header, rule = header+" Run |", rule+"---|"
	w.line(header + "\n" + rule)
	hidden := 0
	for i, row := range w.tabled {
		o := row[0]
		if i >= w.level.clusters && !w.named(o) {
			hidden += len(row)
			continue
		}
		line := fmt.Sprintf("| %s | %s | %s |", o.icon, w.clustersCell(row), resultCell(o))
		if counted {
			line += " " + countCells(o) + " |"
		}
		w.line(line + " " + w.runCell(o.run) + " |")
	}
	if hidden > 0 {
		w.dropped = true
		w.linef("\n… and %s more: %s lists the runs of all.", markdown.Plural(hidden, "cluster"),
			markdown.Code("holdfast get runs --pull-request "+markdown.OneLine(w.r.PullRequest.String())))
	}
	if slices.ContainsFunc(w.outcomes, func(o outcome) bool { return len(o.provisional()) > 0 }) {
		w.line("\nA provisional plan is made again once the cluster before it is applied, and held if it then differs.")
	}
	w.line("")
}

// aRowEach is how many clusters that have the same to show have a row each.
const aRowEach = 5

// rows puts clusters that have the same to show into one row, if they are
// many. What failed has rows of its own.
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
			keys[i] = strings.Join([]string{o.icon, resultCell(o), countCells(o), o.cluster.Document.Environment, plan}, "\x00")
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

func resultCell(o outcome) string {
	result := o.result
	if extra := otherCounts(o.counts); extra != "" {
		result += " (" + extra + ")"
	}
	if from := o.cluster.Document.RenamedFrom; from != "" && !o.destroy && o.reason != holdfast.ReasonInvalid {
		result += "; renamed from " + markdown.Code(markdown.Shorten(from, 63)) + ": state and history continue"
	}
	if ahead := o.provisional(); len(ahead) > 0 {
		result += "; provisional: planned before " + names(ahead) + " " + oneOrMany(len(ahead), "is", "are") + " applied"
	}
	return result
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

// otherCounts is what has no column of its own.
func otherCounts(c holdfast.Counts) string {
	var parts []string
	for _, part := range countParts(holdfast.Counts{Forget: c.Forget, Import: c.Import, Move: c.Move}) {
		parts = append(parts, fmt.Sprintf("%d %s", part.n, part.verb))
	}
	if c.Outputs > 0 {
		parts = append(parts, markdown.Plural(c.Outputs, "output"))
	}
	return strings.Join(parts, ", ")
}

func countCells(o outcome) string {
	if o.stale || o.counts.Zero() {
		return " | | |"
	}
	cells := make([]string, 0, 4)
	for _, n := range []int{o.counts.Create, o.counts.Update} {
		cells = append(cells, number(n))
	}
	for _, n := range []int{o.counts.Replace, o.counts.Delete} {
		if n > 0 {
			cells = append(cells, "**"+number(n)+"**")
		} else {
			cells = append(cells, "")
		}
	}
	return strings.Join(cells, " | ")
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
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
