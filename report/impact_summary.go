package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/report/markdown"
	"github.com/holdfast-dev/holdfast/rollout"
)

// impactHeadline is that of a pull request that changes templates.
func (w impactWriter) impactHeadline(head string) string {
	pr, t := w.r.PullRequest, w.total
	samples, waiting := samplesOf(w.impacts)
	switch {
	case w.r.merged() && len(w.outcomes) > 0:
		return w.mergedHeadline(head)
	case w.r.merged():
		if commit := pr.MergeCommit; commit != "" {
			head = markdown.Code(commit.Short())
		}
		return fmt.Sprintf("✅ Merged as %s · template %s: nothing was applied", head, titles(w.impacts))
	case t.by[stageWorking]+waiting > 0:
		return fmt.Sprintf("⏳ Planning %s · %s · %s", head, progress(t.all+samples, t.by[stageWorking]+waiting), impactWords(w.impacts, boldName))
	case len(w.outcomes)+len(pr.Faults) > 0 && !moves(w.impacts):
		return w.clustersHeadline(head)
	case len(w.outcomes)+len(pr.Faults) > 0:
		icon, headline, _ := strings.Cut(w.clustersHeadline(head), " ")
		return worseIcon(icon, worstIcon(w.impacts)) + " " + headline + " · " + impactWords(w.impacts, boldName)
	default:
		return fmt.Sprintf("%s Plan for %s · %s", worstIcon(w.impacts), head, impactWords(w.impacts, boldName))
	}
}

// moves reports whether the impacts say more than the clusters of the pull
// request do.
func moves(impacts []*impactView) bool {
	return slices.ContainsFunc(impacts, func(v *impactView) bool {
		return v.Fault != "" || len(v.Refused) > 0 || len(v.Unseen) > 0 || v.members > v.merges
	})
}

func boldName(s string) string { return "**" + markdown.Text(s) + "**" }

func titles(impacts []*impactView) string {
	all := make([]string, len(impacts))
	for i, v := range impacts {
		all[i] = "**" + v.title() + "**"
	}
	return markdown.List(all, 3)
}

var iconOrder = []string{"❌", "🛑", "⚠️", "🔵", "❔", "✅"}

func worseIcon(a, b string) string {
	for _, icon := range iconOrder {
		if a == icon || b == icon {
			return icon
		}
	}
	return a
}

func worstIcon(impacts []*impactView) string {
	worst := "✅"
	for _, v := range impacts {
		worst = worseIcon(worst, v.icon())
	}
	return worst
}

// impactWords is what the changes of templates would do, in a few words, by those
// that are planned: "template kubernetes: 2 clusters would change, 1 control plane
// replaced, 40 not planned".
func impactWords(impacts []*impactView, name func(string) string) string {
	var all impactView
	refused, losing, failed := 0, 0, 0
	for _, v := range impacts {
		all.total += v.total
		all.planned += v.planned
		all.members += v.members
		all.changing += v.changing
		all.replaced += v.replaced
		all.destroyed += v.destroyed
		all.unplanned += v.unplanned
		all.Same += v.Same
		refused += len(v.Refused)
		failed += v.failed()
		for _, e := range v.effects {
			if e.rank == rankData || e.rank == rankDestroys {
				losing += len(e.outcomes)
			}
		}
	}
	subject := fmt.Sprintf("%d templates", len(impacts))
	if len(impacts) == 1 {
		subject = "template " + name(markdown.Shorten(impacts[0].Template, 63))
	}
	if slices.ContainsFunc(impacts, func(v *impactView) bool { return v.Fault != "" }) {
		subject += " cannot be released as it is"
	}
	var said []string
	say := func(n int, one, many string) {
		switch {
		case n == 1:
			said = append(said, "1 "+one)
		case n > 1:
			said = append(said, fmt.Sprintf("%d %s", n, many))
		}
	}
	unseen := unseenIn(impacts)
	if all.total == 0 {
		return subject + ": " + usedByNone(unseen)
	}
	unchanged := all.planned - all.changing
	say(all.changing, "cluster would change", "clusters would change")
	switch {
	case all.changing+all.unplanned > 0:
		say(unchanged, "unchanged", "unchanged")
	case all.planned == all.members:
		said = append(said, "no changes in "+markdown.Plural(unchanged+all.Same, "cluster"))
	default:
		say(unchanged, "unchanged", "unchanged")
	}
	say(all.destroyed, "control plane destroyed", "control planes destroyed")
	say(all.replaced, "control plane replaced", "control planes replaced")
	say(losing, "loses resources", "lose resources")
	say(failed, "plan failed", "plans failed")
	say(refused, "refused", "refused")
	if all.planned == 0 && all.unplanned > 0 && all.unplanned == all.members {
		said = append(said, fmt.Sprintf("the root modules of %s change, none is planned", markdown.Plural(all.members, "cluster")))
	} else {
		say(all.unplanned, "not planned", "not planned")
	}
	if len(said) == 0 {
		said = append(said, "nothing is known yet")
	}
	if len(unseen) > 0 {
		said = append(said, "not all repositories could be read")
	}
	return subject + ": " + strings.Join(said, ", ")
}

// samplesOf counts the samples, and those whose plans are still to come.
func samplesOf(impacts []*impactView) (all, waiting int) {
	for _, v := range impacts {
		all += v.samples
		waiting += v.waiting
	}
	return all, waiting
}

// unseenIn are the repositories that could not be read, sorted.
func unseenIn(impacts []*impactView) []string {
	var names []string
	for _, v := range impacts {
		names = append(names, v.Unseen...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// unseenDescription says what is not known of the clusters that are made from a template.
func unseenDescription(unseen []string) string {
	if len(unseen) == 1 {
		return "repository " + unseen[0] + " could not be read: its clusters are not counted"
	}
	return "repositories " + markdown.List(unseen, 3) + " could not be read: their clusters are not counted"
}

// usedByNone says that no cluster is made from a template, as far as that is known.
func usedByNone(unseen []string) string {
	if len(unseen) > 0 {
		return "no cluster uses it in the repositories that could be read"
	}
	return "no cluster uses it"
}

// unfit reports whether a template should not be merged as it is: it cannot be
// released, the new version would refuse documents, or a sample cannot be planned.
func unfit(impacts []*impactView) bool {
	return slices.ContainsFunc(impacts, func(v *impactView) bool {
		return v.Fault != "" || v.refusedBy(rollout.ReachMerge) > 0 || v.failed() > 0
	})
}

// unfitDescription says why, the most serious first.
func unfitDescription(impacts []*impactView) string {
	for _, v := range impacts {
		if v.Fault != "" {
			return strings.TrimSpace(v.Template+" "+v.Version) + ": " + v.Fault
		}
	}
	for _, v := range impacts {
		for _, r := range v.Refused {
			if r.Reach != rollout.ReachMerge {
				continue
			}
			description := markdown.Plural(v.refusedBy(rollout.ReachMerge), "cluster") + " would be refused"
			if len(r.Faults) > 0 {
				description += fmt.Sprintf(": %s: %s", r.Faults[0].Position(), r.Faults[0].Message)
			}
			return description
		}
	}
	var failed []outcome
	for _, v := range impacts {
		for _, o := range v.failures() {
			if o.cluster.Sample {
				failed = append(failed, o)
			}
		}
	}
	return failedDescription(failed, "plan failed for ")
}

// planMore reports whether more than the samples can be planned, and the command for
// that was not shown yet.
func planMore(impacts []*impactView) bool {
	more := false
	for _, v := range impacts {
		if groups, _ := v.unseen(); groups > 0 {
			return false
		}
		more = more || !v.All && v.planned < v.members
	}
	return more
}

// releaseWords says what the merge does not do, and what does.
func releaseWords(impacts []*impactView) []string {
	var parts, tags []string
	stays := 0
	for _, v := range impacts {
		stays += v.members - v.merges
		if v.Version != "" {
			tags = append(tags, markdown.Code(markdown.Shorten(v.Template, 63)+"/v"+markdown.Shorten(v.Version, 40)))
		}
	}
	if stays > 0 {
		parts = append(parts, "the merge applies nothing to clusters that name a version")
	}
	switch len(tags) {
	case 0:
	case 1:
		parts = append(parts, "after the merge, the tag "+tags[0]+" releases it")
	default:
		parts = append(parts, "after the merge, the tags "+markdown.List(tags, 3)+" release them")
	}
	return parts
}
