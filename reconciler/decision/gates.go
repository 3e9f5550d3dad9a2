package decision

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// byPlan is which conditions of apply.requires a merge meets for a plan, what it lacks for
// the others, and of which of these it is not known whether it meets them.
type byPlan func(Merge) (met []string, missing map[string]string, unknown []string)

// ofReviewed judges by the plans that were reviewed: one of them is applied.
func ofReviewed(m Merge) ([]string, map[string]string, []string) { return m.Met, m.Missing, m.Unknown }

// ofNewest judges by what the newest run has planned: exactly that is applied.
func ofNewest(m Merge) ([]string, map[string]string, []string) {
	return m.NewestMet, m.NewestMissing, m.NewestUnknown
}

// judgedBy are the merges that have to meet a condition. Policies judge what is applied, and
// not who brought it: the newest merge's plan has what the others before it brought, too. The
// agent makes sure that nothing is applied whose own plan they deny.
func judgedBy(merges []Merge, name string) []Merge {
	if name == holdfast.GatePolicy && len(merges) > 1 {
		return merges[:1]
	}
	return merges
}

// barred is a condition of the apply that one of its merges does not meet, and what is
// missing; empty if each meets all. That another pull request is approved says nothing of
// this one.
func barred(in Input, of byPlan) (reason holdfast.Reason, detail string) {
	required, _ := Required(in.Cluster.Desired.Document, in.Cluster.Applied, in.Last)
	for _, name := range holdfast.GateNames() {
		if !slices.Contains(required, name) {
			continue
		}
		var lacks []string
		for _, merge := range judgedBy(in.Merges, name) {
			met, missing, unknown := of(merge)
			if slices.Contains(met, name) {
				continue
			}
			if reason = holdfast.GateReason(name); slices.Contains(unknown, name) {
				reason = holdfast.GateUnknown(name)
			}
			if text := missing[name]; text != "" && len(in.Merges) > 1 {
				lacks = append(lacks, fmt.Sprintf("#%d: %s", merge.Review.PullRequest.Number, text))
			} else if text != "" {
				lacks = append(lacks, text)
			}
		}
		if reason != "" {
			return reason, strings.Join(lacks, "; ")
		}
	}
	return "", ""
}

// Barred is the condition that a queued apply no longer meets; empty if it meets each.
// Shown: it is of the newest plan, and not of what was reviewed.
func Barred(in Input, shown bool) holdfast.Reason {
	of := ofReviewed
	if shown {
		of = ofNewest
	}
	reason, _ := barred(in, of)
	return reason
}

// withConditions adds to a plan that waits for a person what else it has to wait for:
// whoever may approve it approves what is shown now.
func withConditions(in Input, d Decision) Decision {
	last := Newest(in.Runs)
	waits := d.Action == ActionWait && d.Reason.Info().Does == holdfast.AppliesShown
	if !waits || !current(in, last) || last.Status != holdfast.RunPlanned {
		return d
	}
	reason, detail := barred(in, ofNewest)
	if reason == "" {
		return d
	}
	text := "an apply of this plan waits for more: " + reason.Refusal(detail)
	if d.Detail != "" {
		text = d.Detail + "; " + text
	}
	d.Detail = text
	return d
}
