package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report/markdown"
	"github.com/holdfast-dev/holdfast/rollout"
)

// effectLine is an effect without what is behind it.
func (w impactWriter) effectLine(e *effect) string {
	names := make([]string, 0, len(e.clusters))
	for _, c := range firstOf(&w.page, e.clusters, 3) {
		names = append(names, markdown.Code(markdown.Shorten(c.Name, 63)))
	}
	if more := len(e.clusters) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return e.counted(asMarkdown, 3, true) + " (" + markdown.List(names, len(names)) + ")"
}

// counted says of how many clusters it is known, and of how many it is not.
func (e *effect) counted(m markup, most int, brief bool) string {
	words := e.words(m, most, brief)
	n, rest := len(e.outcomes), e.unplanned()
	b := m.bold
	switch {
	case e.rank == rankUnplanned:
		return fmt.Sprintf("%s %s%s%s: %s", e.icon(), b[0], markdown.Plural(len(e.clusters), "cluster"), b[1], words)
	case rest == 0:
		return fmt.Sprintf("%s %s%s%s: %s", e.icon(), b[0], markdown.Plural(n, "cluster"), b[1], words)
	default:
		return fmt.Sprintf("%s %s%s%s: %s · ❔ %s%d%s not planned", e.icon(), b[0], markdown.Plural(n, "cluster"), b[1], words, b[0], rest, b[1])
	}
}

// effect is an effect with its clusters and the plans behind it, folded.
func (w impactWriter) effect(v *impactView, e *effect) {
	if e.rank == rankUnchanged && !w.level.unmoved {
		w.dropped = true
		w.line(w.effectLine(e) + "\n")
		return
	}
	open := ""
	sample := slices.ContainsFunc(e.outcomes, func(o outcome) bool { return o.cluster.Sample })
	if !w.r.merged() && sample && (e.rank >= rankFailed || len(v.effects) <= 2 && e.rank >= rankChanges) {
		open = " open"
	}
	w.linef("<details%s><summary>%s</summary>\n", open, e.counted(asHTML, 4, false))
	w.roots(e)
	planned, others := e.parted()
	w.affected(v, planned, "")
	w.affected(v, others, "Not planned; ")
	w.samples(e)
	w.line("</details>\n")
}

// roots is what changes in the root modules.
func (w impactWriter) roots(e *effect) {
	roots := firstOf(&w.page, e.roots, w.level.notes)
	for _, root := range roots {
		who := "In the root module"
		switch {
		case len(e.roots) > 1:
			who = "In the root modules of " + markdown.Plural(root.clusters, "cluster")
		case root.clusters > 1:
			who = "In the root modules"
		}
		changes := root.changes
		switch {
		case len(changes) == 0:
			continue
		case len(changes) == 1:
			w.linef("%s: %s\n", who, sentence(markdown.ShortText(changes[0], 400)))
			continue
		}
		w.line(who + ":\n")
		for _, change := range firstOf(&w.page, changes, w.level.notes) {
			w.line("- " + markdown.ShortText(change, 400))
		}
		if more := len(changes) - w.level.notes; more > 0 {
			w.linef("- … and %d more", more)
		}
		w.line("")
	}
	if more := len(e.roots) - len(roots); more > 0 {
		w.linef("… and %s of root modules.\n", markdown.Plural(more, "other change"))
	}
}

// affected is who has the effect, by the way in which the new version reaches
// them.
func (w impactWriter) affected(v *impactView, clusters []rollout.ImpactCluster, prefix string) {
	for at := 0; at < len(clusters); {
		end := at
		for end < len(clusters) && clusters[end].Reach == clusters[at].Reach {
			end++
		}
		group := clusters[at:end]
		names := make([]string, 0, min(len(group), w.level.names)+1)
		for _, c := range firstOf(&w.page, group, w.level.names) {
			name := markdown.Code(markdown.Shorten(c.Name, 63))
			if c.Version != "" && c.Version != v.Released && c.Version != v.Version {
				name += " (" + markdown.ShortText(c.Version, 40) + ")"
			}
			names = append(names, name)
		}
		if more := len(group) - len(names); more > 0 {
			names = append(names, fmt.Sprintf("%d more", more))
		}
		count := ""
		if len(group) > 1 {
			count = fmt.Sprintf(" (%d)", len(group))
		}
		reach := w.reachWords(v, group[0].Reach)
		if prefix != "" {
			reach = prefix + strings.ToLower(reach[:1]) + reach[1:]
		}
		w.linef("**%s**%s%s: %s\n", reach, w.reposOf(group), count, markdown.List(names, len(names)))
		at = end
	}
}

// samples are the plans behind an effect: one of them, and where the others are.
func (w impactWriter) samples(e *effect) {
	if e.rank == rankFailed || e.rank == rankWorking {
		w.unfinished(e)
		return
	}
	if len(e.outcomes) == 0 {
		return
	}
	w.linef("%s\n", w.sampled(e))
	if i := e.shown(); i >= 0 {
		planWriter(w).differences(e.planned(), e.differences)
		w.sample(e.outcomes[i].plan)
	}
}

// sampled says which clusters are planned, and whose plan is shown.
func (w impactWriter) sampled(e *effect) string {
	const most = 10
	planned := make([]string, 0, min(len(e.outcomes), most))
	for _, o := range e.outcomes[:min(len(e.outcomes), most)] {
		name := markdown.Code(markdown.Shorten(o.cluster.Name, 63))
		if run := w.runCell(o.run); run != "" && o.cluster.Sample {
			name += " (" + run + ")"
		}
		planned = append(planned, name)
	}
	if more := len(e.outcomes) - len(planned); more > 0 {
		planned = append(planned, fmt.Sprintf("%d more", more))
	}
	said := "Planned: " + markdown.List(planned, len(planned))
	switch others := e.unplanned(); {
	case others == 1:
		said += "; the root module of the other changes in the same way"
	case others > 1:
		said += fmt.Sprintf("; the root modules of the %d others change in the same way", others)
	}
	switch shown := e.shown(); {
	case e.rank == rankUnchanged:
	case shown < 0 && e.outcomes[0].plan != nil:
		said += ". The plan is above"
	case shown >= 0 && len(e.outcomes) > 1:
		said += ". This is the plan of " + markdown.Code(markdown.Shorten(e.outcomes[shown].cluster.Name, 63))
	}
	return said + "."
}

func (w impactWriter) sample(plan *holdfast.Plan) {
	plans := planWriter(w)
	plans.resources(plan)
	plans.outputs(plan)
	plans.diff(plan)
	plans.drift(plan.Drift)
	plans.warnings(plan.Warnings)
}

// unfinished are samples that have no plan: why they failed, or how far they
// are.
func (w impactWriter) unfinished(e *effect) {
	for _, o := range firstOf(&w.page, e.outcomes, w.level.notes) {
		switch {
		case !o.cluster.Sample:
			continue // shown with the clusters that the merge moves
		case e.rank == rankFailed && o.failure != nil:
			w.failure(o)
		default:
			w.linef("- %s: %s", markdown.Code(markdown.Shorten(o.cluster.Name, 63)), o.result)
		}
	}
	if more := len(e.outcomes) - w.level.notes; more > 0 {
		w.linef("- … and %d more", more)
	}
	w.line("")
}
