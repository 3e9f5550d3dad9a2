package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report/markdown"
	"github.com/holdfast-dev/holdfast/rollout"
)

// refusal is one thing that is wrong in the documents of some clusters.
type refusal struct {
	message, hint string
	where         []string // Markdown: "`prod-eu` at `clusters/prod-eu.yaml:12:5`"
}

// refused lists the clusters whose documents the new template would refuse,
// those together that it would refuse for the same thing.
func (w impactWriter) refused(v *impactView) {
	if len(v.Refused) == 0 {
		return
	}
	refusals := refusalsOf(v.Refused, w.r.PullRequest.Repo)
	open := ""
	if len(v.Refused) <= 20 {
		open = " open"
	}
	if w.level.rows == 0 && w.level.names < 5 {
		open = ""
	}
	w.linef("<details%s><summary>❌ <b>%s would be refused</b>: valid today, not with this template (%s)</summary>\n",
		open, markdown.Plural(len(v.Refused), "cluster"), refusedBy(v))
	w.line("| What is wrong | What to do | Where |\n|---|---|---|")
	for _, r := range firstOf(&w.page, refusals, w.level.notes) {
		where := firstOf(&w.page, r.where, w.level.names)
		cell := strings.Join(where, ", ")
		if more := len(r.where) - len(where); more > 0 {
			cell += fmt.Sprintf(" and %d more", more)
		}
		w.linef("| %s | %s | %s |", markdown.ShortText(r.message, 1000), markdown.ShortText(r.hint, 500), cell)
	}
	if more := len(refusals) - w.level.notes; more > 0 {
		w.linef("\n… and %d more.", more)
	}
	w.line("\n</details>\n")
}

// refusedBy says when the refusals would hurt.
func refusedBy(v *impactView) string {
	var parts []string
	version := orElse(markdown.HTML(markdown.Shorten(v.Version, 40)), "the version")
	for _, reach := range reaches {
		n := v.refusedBy(reach)
		if n == 0 {
			continue
		}
		parts = append(parts, fmt.Sprintf("%d %s", n, map[rollout.ImpactReach]string{
			rollout.ReachMerge:   "by this merge",
			rollout.ReachRelease: "when " + version + " is released",
			rollout.ReachUpgrade: "not upgraded until corrected",
			rollout.ReachManual:  "once moved by hand",
		}[reach]))
	}
	return strings.Join(parts, ", ")
}

// refusalsOf are the refusals by what is wrong, for a reader in the repository own.
func refusalsOf(refused []rollout.ImpactRefusal, own string) []refusal {
	type key struct{ message, hint string }
	at := map[key]int{}
	var all []refusal
	refused = slices.Clone(refused)
	slices.SortStableFunc(refused, func(a, b rollout.ImpactRefusal) int {
		return cmp.Or(cmp.Compare(reachOrder(a.Reach), reachOrder(b.Reach)), strings.Compare(a.Name, b.Name))
	})
	for _, r := range refused {
		faults := r.Faults
		if len(faults) == 0 {
			faults = holdfast.Faults{{Message: "its document would be refused"}}
		}
		for _, f := range faults {
			k := key{f.Message, f.Hint}
			i, ok := at[k]
			if !ok {
				i = len(all)
				at[k] = i
				all = append(all, refusal{message: f.Message, hint: f.Hint})
			}
			where := markdown.Code(markdown.Shorten(r.Name, 63))
			if f.File != "" {
				where += " at " + markdown.Code(markdown.Shorten(f.Position(), 200))
				if r.Repo != "" && r.Repo != own {
					where += " in " + markdown.Shorten(markdown.Text(r.Repo), 80)
				}
			}
			all[i].where = append(all[i].where, where)
		}
	}
	slices.SortStableFunc(all, func(a, b refusal) int { return cmp.Compare(len(b.where), len(a.where)) })
	return all
}
