package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/report/markdown"
	"github.com/holdfast-dev/holdfast/rollout"
)

// impactFaults says at the top why a template cannot be released as it is.
func (w impactWriter) impactFaults() {
	for _, v := range firstOf(&w.page, w.impacts, w.level.clusters) {
		if v.Fault != "" {
			w.linef("> [!CAUTION]\n> ❌ **%s cannot be released as it is:** %s\n", v.title(), sentence(markdown.ShortWords(v.Fault, 1000)))
		}
	}
}

// impact is what the change of one template would do.
func (w impactWriter) impact(v *impactView) {
	if w.full() {
		return
	}
	w.linef("%s **%s**%s: %s\n", v.icon(), markdown.Text(markdown.Shorten(v.Template, 63)), v.versions(), v.radius())
	w.unseenRepositories(v)
	if v.total == 0 {
		w.templateChanges(v)
		return
	}
	w.impactDanger(v)
	w.honesty(v)
	w.refused(v)
	shown := firstOf(&w.page, v.effects, w.level.lines)
	detailed := 0
	for i, e := range shown {
		if w.full() {
			return
		}
		if w.level.effects <= detailed || w.level.rows == 0 {
			w.dropped = w.dropped || len(e.outcomes) > 0
			w.line("- " + w.effectLine(e))
			if i == len(shown)-1 {
				w.line("")
			}
			continue
		}
		detailed++
		w.effect(v, e)
	}
	if more := len(v.effects) - len(shown); more > 0 {
		w.linef("… and %s that are less dangerous.\n", markdown.Plural(more, "other effect"))
	}
	if v.Same > 0 && v.members+len(v.Refused) > 0 {
		stay := oneOrMany(v.Same, "is unaffected: its root module does not change", "are unaffected: their root modules do not change")
		w.linef("%s %s.\n", markdown.Plural(v.Same, "cluster"), stay)
	}
	w.templateChanges(v)
}

// unseenRepositories says what all numbers leave out.
func (w impactWriter) unseenRepositories(v *impactView) {
	if len(v.Unseen) == 0 {
		return
	}
	names := make([]string, 0, len(v.Unseen))
	for _, name := range v.Unseen {
		names = append(names, markdown.Code(markdown.Shorten(name, 100)))
	}
	w.linef("⚠️ Clusters of %s are not counted: the repository could not be read yet.\n", markdown.List(names, 10))
}

// title is the template with the version that it is prepared as.
func (v *impactView) title() string {
	title := markdown.Text(markdown.Shorten(v.Template, 63))
	if v.Version != "" {
		title += " " + markdown.Text(markdown.Shorten(v.Version, 40))
	}
	return title
}

// versions says from which version to which a template is brought.
func (v *impactView) versions() string {
	released, version := markdown.Text(markdown.Shorten(v.Released, 40)), markdown.Text(markdown.Shorten(v.Version, 40))
	switch {
	case released != "" && version != "":
		return " " + released + " → " + version + " (being prepared)"
	case version != "":
		return " " + version + " (being prepared; nothing is released yet)"
	case released != "":
		return " after " + released + " (`template.yaml` names no new version)"
	case v.Dir != "":
		return " (" + markdown.Code(markdown.Shorten(v.Dir, 100)) + ")"
	default:
		return ""
	}
}

// radius is which clusters are affected, and how, the least dangerous first and the
// most dangerous, in bold, at the end.
func (v *impactView) radius() string {
	const most = 5
	if v.total == 0 {
		return usedByNone(v.Unseen)
	}
	parts := []string{"used by " + markdown.Plural(v.total, "cluster")}
	if v.Same > 0 {
		parts = append(parts, fmt.Sprintf("%d unaffected", v.Same))
	}
	kinds := v.kinds()
	if len(kinds) > most {
		rest := 0
		for _, k := range kinds[most:] {
			rest += k.clusters
		}
		parts = append(parts, fmt.Sprintf("%d in %s", rest, markdown.Plural(len(kinds)-most, "other way")))
		kinds = kinds[:most]
	}
	for _, k := range slices.Backward(kinds) {
		if k.rank >= rankDestroys {
			parts = append(parts, fmt.Sprintf("**%d: %s**", k.clusters, k.words))
		} else {
			parts = append(parts, fmt.Sprintf("%d %s", k.clusters, k.words))
		}
	}
	if v.unplanned > 0 {
		parts = append(parts, fmt.Sprintf("❔ %d not planned", v.unplanned))
	}
	if n := len(v.Refused); n > 0 {
		parts = append(parts, fmt.Sprintf("**%d refused**", n))
	}
	return strings.Join(parts, " · ")
}

// effectKind is a set of effects that the same words describe.
type effectKind struct {
	rank     rank
	words    string
	clusters int
}

// kinds are the effects in a few words, most dangerous first.
func (v *impactView) kinds() []effectKind {
	var kinds []effectKind
	for _, e := range v.effects {
		k := effectKind{e.rank, "", len(e.outcomes)}
		switch {
		case k.clusters == 0 || e.rank == rankUnplanned:
			continue // counted apart
		case e.rank == rankUnchanged:
			k.words = "without changes"
		case e.rank == rankCluster:
			k.words = e.planeWords()
		case e.rank >= rankDestroys:
			k.words = e.words(asPlain, 2, true)
		default:
			k.words = e.words(asMarkdown, 2, true)
		}
		i := slices.IndexFunc(kinds, func(o effectKind) bool { return o.rank == k.rank && o.words == k.words })
		if i < 0 {
			kinds = append(kinds, k)
		} else {
			kinds[i].clusters += k.clusters
		}
	}
	return kinds
}

// honesty says how many of those that change are planned, and what the others
// are judged by.
func (w impactWriter) honesty(v *impactView) {
	var said []string
	if n := v.members - v.merges; n > 0 && w.r.merged() {
		whom := ""
		if v.merges > 0 {
			whom = " to the other " + markdown.Plural(n, "cluster")
		}
		said = append(said, "Nothing was applied"+whom+": clusters move when they name the new version.")
	}
	switch {
	case v.planned == v.members && v.members == 2:
		said = append(said, "Both clusters whose root module changes are planned.")
	case v.planned == v.members && v.members > 1:
		said = append(said, fmt.Sprintf("All %d clusters whose root module changes are planned.", v.members))
	case v.planned < v.members && v.planned > 0:
		line := fmt.Sprintf("Planned: %d of the %d clusters whose root module changes", v.planned, v.members)
		switch judged := v.judged(); {
		case judged == 1:
			line += "; 1 other cluster changes in the same way as a planned one"
		case judged > 1:
			line += fmt.Sprintf("; %d others change in the same way as a planned one", judged)
		}
		said = append(said, line+".")
	}
	if missing := w.missing(v); missing != "" {
		said = append(said, missing)
	}
	if len(said) > 0 {
		w.line(strings.Join(said, " ") + "\n")
	}
}

// missing says which groups of clusters are not planned, and what can be done
// about it.
func (w impactWriter) missing(v *impactView) string {
	groups, clusters := v.unseen()
	if groups == 0 || w.r.PullRequest.Reason != "" || w.r.merged() {
		return ""
	}
	if v.samples+v.merges == 0 && v.Over == v.members {
		return "None of them is planned: `repositories[].samples` in holdfast.yaml is 0."
	}
	missing := fmt.Sprintf("%s (%s) %s not planned", markdown.Plural(clusters, "cluster"), markdown.Plural(groups, "group"), oneOrMany(clusters, "was", "were"))
	switch {
	case v.All && v.Over > 0:
		return missing + ": that is more than one pull request plans."
	case v.All:
		return missing + "."
	case v.Over > 0:
		return missing + ": the limit is `repositories[].samples`. " + planAll + " plans all of them."
	default:
		return missing + ": " + planAll + " plans all of them."
	}
}

// judged counts the clusters without their own plan whose effect counts as known.
func (v *impactView) judged() int {
	n := 0
	for _, e := range v.effects {
		if e.known() {
			n += len(e.clusters) - len(e.outcomes)
		}
	}
	return n
}

const planAll = "`/holdfast plan --all`"

// impactDanger is the banner for clusters and data that would be lost.
func (w impactWriter) impactDanger(v *impactView) {
	const most = 8
	var lines []string
	for _, e := range v.effects {
		if e.rank < rankData {
			continue
		}
		i := e.shown()
		if i < 0 {
			continue // shown with the clusters that the merge moves
		}
		o := e.outcomes[i]
		others := ""
		if n := len(e.outcomes) - 1; n > 0 {
			others = fmt.Sprintf(" and %s like it", markdown.Plural(n, "cluster"))
		}
		switch n := e.unplanned(); {
		case n == 1:
			others += ", and perhaps 1 cluster that is not planned"
		case n > 1:
			others += fmt.Sprintf(", and perhaps %d clusters that are not planned", n)
		}
		for _, c := range o.plan.Changes {
			if rankOf(c) >= rankData {
				lines = append(lines, fmt.Sprintf("**%s**%s: the %s%s", markdown.ShortText(o.cluster.Name, 80), others, dangerWords(c, "would"), dangerCause(c)))
			}
		}
	}
	w.caution(lines, most)
}

func (w impactWriter) reachWords(v *impactView, reach rollout.ImpactReach) string {
	switch reach {
	case rollout.ReachMerge:
		return "Applied by this merge"
	case rollout.ReachRelease:
		return "When " + orElse(markdown.Text(markdown.Shorten(v.Version, 40)), "the version") + " is released"
	case rollout.ReachUpgrade:
		return "By upgrade pull requests"
	default:
		return "Only by hand"
	}
}

// reposOf names the repositories of clusters that are defined elsewhere.
func (w impactWriter) reposOf(clusters []rollout.ImpactCluster) string {
	var repos []string
	for _, c := range clusters {
		if c.Repo != "" && !slices.Contains(repos, c.Repo) {
			repos = append(repos, c.Repo)
		}
	}
	if len(repos) == 0 || len(repos) == 1 && repos[0] == w.r.PullRequest.Repo {
		return ""
	}
	slices.Sort(repos)
	for i, repo := range repos {
		repos[i] = markdown.ShortText(repo, 80)
	}
	return ", in " + markdown.List(repos, 3)
}

// templateChanges is how the template itself differs from what is released.
func (w impactWriter) templateChanges(v *impactView) {
	if len(v.Changes) == 0 {
		return
	}
	since := "the base"
	if v.Released != "" {
		since = markdown.HTML(markdown.Shorten(v.Released, 40))
	}
	title := fmt.Sprintf("%s since %s", markdown.Plural(len(v.Changes), "template change"), since)
	if n := breaking(v.Changes); n > 0 {
		title += fmt.Sprintf(", <b>%d breaking</b>", n)
	}
	if w.level.rows == 0 {
		w.dropped = true
		w.line(strings.NewReplacer("<b>", "**", "</b>", "**").Replace(title) + ".\n")
		return
	}
	open := ""
	if v.Fault != "" {
		open = " open"
	}
	w.dropped = w.dropped || len(v.Changes) > w.level.notes
	w.linef("<details%s><summary>%s</summary>\n\n%s\n</details>\n", open, title, ChangesText(v.Changes, w.level.notes))
}
