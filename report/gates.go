package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report/markdown"
)

// gatesOf are the conditions that the apply of what is planned has to meet.
func gatesOf(o outcome) []holdfast.Gate {
	if o.stage != stageDone || o.applied {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(o.cluster.Gates), func(g holdfast.Gate) bool { return g.Idle })
}

// gateView is a condition and how far it is met for some clusters.
type gateView struct {
	gate     holdfast.Gate
	clusters []string
}

// gateViews puts clusters together for which a condition is met, or not, in the same
// way: those that are not met first.
func gateViews(outcomes []outcome) []gateView {
	var views []gateView
	at := make(map[string]int)
	for _, o := range outcomes {
		for _, g := range gatesOf(o) {
			alike := fmt.Sprintf("%q", append([]string{g.Name, g.Missing, g.From, fmt.Sprint(g.Lifted, g.Met)}, g.Given...))
			i, known := at[alike]
			if !known {
				i = len(views)
				at[alike], views = i, append(views, gateView{gate: g})
			}
			views[i].clusters = append(views[i].clusters, o.cluster.Name)
		}
	}
	slices.SortStableFunc(views, func(a, b gateView) int {
		switch {
		case a.gate.Met == b.gate.Met:
			return 0
		case b.gate.Met:
			return -1
		default:
			return 1
		}
	})
	return views
}

// gates is a table of what an apply will ask for, before the merge: what is missing, who
// can give it, and what was given.
func (w *writer) gates() {
	views := gateViews(w.outcomes)
	if w.r.merged() || len(views) == 0 {
		return
	}
	several := len(w.outcomes) > 1
	header, rule := "| | Required | Status |", "|---|---|---|"
	if several {
		header, rule = "| | Required | Clusters | Status |", "|---|---|---|---|"
	}
	w.line(header + "\n" + rule)
	for _, v := range firstOf(&w.page, views, w.level.notes) {
		line := fmt.Sprintf("| %s | **%s** |", gateIcon(v.gate), markdown.Text(v.gate.Name))
		if several {
			line += " " + w.gateClusters(v) + " |"
		}
		w.line(line + " " + gateWords(v.gate) + " |")
	}
	w.line("")
}

// gateIcon marks a condition as met, refused or still open.
func gateIcon(g holdfast.Gate) string {
	switch {
	case g.Met:
		return "✅"
	case g.Name == holdfast.GatePolicy:
		return "❌"
	default:
		return "⏳"
	}
}

// gateWords says how far a condition is met: what is missing, and what was given.
func gateWords(g holdfast.Gate) string {
	var sentences []string
	if !g.Met {
		sentences = append(sentences, markdown.Text(markdown.Shorten(markdown.OneLine(g.Missing), 500)))
		if g.From != "" {
			sentences = append(sentences, "Needed: "+spans(markdown.Shorten(markdown.OneLine(g.From), 300)))
		}
	}
	switch given := givenWords(g); {
	case given == "":
	case g.Met:
		sentences = append(sentences, given)
	default:
		sentences = append(sentences, "Given: "+given)
	}
	return strings.Join(sentences, ". ") + liftedWords(g)
}

// liftedWords says why something that the documents do not ask for is required.
func liftedWords(g holdfast.Gate) string {
	if !g.Lifted {
		return ""
	}
	return ". The document no longer requires it; the last applied version does, or a merge that is not applied yet, so it still holds for this apply"
}

func (w *writer) gateClusters(v gateView) string {
	if len(v.clusters) > 1 && len(v.clusters) == w.total.all {
		return "all clusters"
	}
	return names(v.clusters)
}

func givenWords(g holdfast.Gate) string {
	given := make([]string, len(g.Given))
	for i, word := range g.Given {
		given[i] = markdown.Text(markdown.Shorten(markdown.OneLine(word), 100)) // reasons of waivers are in it
	}
	return markdown.List(given, 10)
}

// missingGates are the names of the conditions that are not met, once each.
func missingGates(outcomes []outcome) []string {
	var missing []string
	for _, o := range outcomes {
		for _, g := range gatesOf(o) {
			if !g.Met && !slices.Contains(missing, g.Name) {
				missing = append(missing, g.Name)
			}
		}
	}
	return missing
}

// missingWords is "approval missing" for a status; empty if nothing is.
func missingWords(outcomes []outcome) string {
	var words []string
	for _, name := range missingGates(outcomes) {
		words = append(words, holdfast.GateMissing(name))
	}
	return strings.Join(words, ", ")
}

// heldMissingWords is "approval missing" for what is held for a reason, after the
// merge; empty if nothing is.
func heldMissingWords(outcomes []outcome, reason holdfast.Reason) string {
	var words []string
	for _, o := range outcomes {
		if o.stage != stageHeld || o.reason != reason || o.cluster.Apply == nil {
			continue
		}
		for _, g := range o.cluster.Gates {
			if word := holdfast.GateMissing(g.Name); !g.Met && !slices.Contains(words, word) {
				words = append(words, word)
			}
		}
	}
	return strings.Join(words, ", ")
}
