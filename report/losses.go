package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report/markdown"
)

// Unshown says why the comment of a pull request cannot show what a person would
// have to see: what is destroyed, replaced or forgotten is never cut. Empty: it is
// all there. Plans of a comment that does not show it are not reviewed.
func Unshown(r PullRequest) string {
	if silent(r) {
		return ""
	}
	w := newWriter(r)
	n := 0
	for _, o := range w.outcomes {
		if w.minded(o) {
			n += len(losses(o.plan))
		}
	}
	if n == 0 || len(w.comment(details[len(details)-1])) <= commentLimit {
		return ""
	}
	return fmt.Sprintf("%s to destroy, replace or forget: too many for one comment", markdown.Plural(n, "resource"))
}

// minded reports whether what a plan destroys is still to come, and so has to be
// seen.
func (w *writer) minded(o outcome) bool {
	return o.plan != nil && !o.applied && !o.stale && o.stage != stageLeft
}

// named reports whether a cluster is never cut from the table: it loses something, and
// the list of all losses is not there.
func (w *writer) named(o outcome) bool {
	return w.level.rows > 0 && w.minded(o) && slices.ContainsFunc(o.plan.Changes, loses)
}

// losses lists what is destroyed, replaced or forgotten where there is no room for
// tables: all of it, with clusters that lose the same listed together.
func (w *writer) losses() {
	var lists []string
	clusters := map[string][]string{}
	for _, o := range w.outcomes {
		if !w.minded(o) {
			continue
		}
		all := lossLines(losses(o.plan))
		if all == "" {
			continue
		}
		if clusters[all] == nil {
			lists = append(lists, all)
		}
		clusters[all] = append(clusters[all], markdown.Code(o.cluster.Name))
	}
	if len(lists) == 0 {
		return
	}
	w.line("Everything that is destroyed, replaced or forgotten:\n")
	for _, all := range lists {
		w.line("- " + markdown.List(clusters[all], len(clusters[all])) + "\n" + all)
	}
}

// lossLines has a line for each change; instances of a resource to which the same happens
// for the same cause share one.
func lossLines(changes []holdfast.ResourceChange) string {
	var b strings.Builder
	for _, row := range instanceRows(changes, dangerCause) {
		cell, _ := rowCell(row)
		b.WriteString("  - " + actionIcon(row.first.Action) + " " + cell + row.why + "\n")
	}
	return b.String()
}
