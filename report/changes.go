package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/report/markdown"
	"github.com/holdfast-dev/holdfast/rollout"
)

// ChangesText returns how two versions of a template differ as a Markdown list of
// changes, at most that many, those that break something first. Zero means all of them.
// It ends with a newline, and is empty if nothing has changed.
func ChangesText(changes []rollout.TemplateChange, most int) string {
	changes = breakingFirst(changes)
	more := 0
	if most > 0 && len(changes) > most {
		changes, more = changes[:most], len(changes)-most
	}
	var b strings.Builder
	for _, c := range changes {
		mark := ""
		if c.Breaking {
			mark = "⚠️ **breaking:** "
		}
		fmt.Fprintf(&b, "- %s%s\n", mark, changeWords(c))
	}
	if more > 0 {
		fmt.Fprintf(&b, "- … and %s\n", markdown.Plural(more, "more change"))
	}
	return b.String()
}

// breakingFirst keeps the order otherwise.
func breakingFirst(changes []rollout.TemplateChange) []rollout.TemplateChange {
	sorted := slices.Clone(changes)
	slices.SortStableFunc(sorted, func(a, b rollout.TemplateChange) int {
		switch {
		case a.Breaking == b.Breaking:
			return 0
		case a.Breaking:
			return -1
		default:
			return 1
		}
	})
	return sorted
}

// changeWords is "variable `node_count` is now required".
func changeWords(c rollout.TemplateChange) string {
	kind, name, named := strings.Cut(markdown.OneLine(c.About), " ")
	about := markdown.ShortText(kind, 60)
	if named {
		name, rest, more := strings.Cut(name, " ")
		about += " " + markdown.Code(markdown.Shorten(name, 100))
		if more {
			about += " " + markdown.ShortText(rest, 100)
		}
	}
	return about + " " + markdown.ShortText(c.What, 400)
}

// breaking counts the changes that break something.
func breaking(changes []rollout.TemplateChange) int {
	n := 0
	for _, c := range changes {
		if c.Breaking {
			n++
		}
	}
	return n
}
