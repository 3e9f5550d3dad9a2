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

// Merged are the documents of merges that are not applied yet, as far as they are conditions for
// an apply: as Required and Terms take those that were applied. Their windows are not among
// them: some never open, and could not be changed otherwise.
func Merged(merges []Merge) (out []holdfast.Applied) {
	for _, m := range merges {
		asks := holdfast.ApplySettings{Requires: m.Asks.Requires, Terms: m.Asks.Terms}
		out = append(out, holdfast.Applied{Run: m.Review.PullRequest.String(), Document: holdfast.Cluster{Apply: asks}})
	}
	return out
}

// Binding are the documents whose conditions hold for an apply besides those of its own: of the
// merges that are not applied yet, of what was applied last, and of what has begun since.
func (in Input) Binding() []holdfast.Applied {
	return append(Merged(in.Merges), in.Cluster.Applied, in.Last)
}

// barred is a condition of the apply that one of its merges does not meet, and what is
// missing; empty if each meets all. That another pull request is approved says nothing of
// this one.
func barred(in Input, of byPlan) (reason holdfast.Reason, detail string) {
	required, _ := Required(in.Cluster.Desired.Document, in.Binding()...)
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

// unmerged is which of the conditions a plan does not meet that a person wants applied without
// a merge: a direct push, whose only approval is that person's word, or what reverts drift. Of
// a condition that one person meets that word is enough. Actor is empty if nobody has asked yet.
func unmerged(in Input, plan holdfast.Run, actor string) (reason holdfast.Reason, detail string) {
	required, _ := Required(in.Cluster.Desired.Document, in.Cluster.Applied, in.Last)
	terms := Terms(in.Cluster.Desired.Document, in.Cluster.Applied, in.Last)
	reverts := AsGitSays(in)
	for _, name := range holdfast.GateNames() {
		if !slices.Contains(required, name) {
			continue
		}
		switch name {
		case holdfast.GateApproved:
			if terms.Approvals > 1 && !reverts {
				return holdfast.GateReason(name), tooFew(terms.Approvals)
			}
		case holdfast.GateDestroy:
			if terms.Destroys > 1 && plan.Destroys() {
				return holdfast.GateReason(name), tooFew(terms.Destroys)
			}
		case holdfast.GatePolicy: // of a plan without policies, the agent sees to it
			if plan.Policies != nil && plan.Policies.Denies() && plan.Policies.DeniesBut(plan.WaivedByDocuments(in.Now)) {
				return holdfast.GateReason(name), ""
			}
		case holdfast.GateCost:
			if breach, unknown := beyondCost(terms.Costs, plan, actor); unknown {
				return holdfast.GateUnknown(name), breach
			} else if breach != "" {
				return holdfast.GateReason(name), breach
			}
		}
	}
	return "", ""
}

// tooFew says why one person's word is not enough.
func tooFew(wanted int) string {
	return fmt.Sprintf("%d people have to approve it, and there is no pull request that they could approve: make the change in one", wanted)
}

// beyondCost says why what a plan costs is not within all limits; empty if it is, or if actor is
// one of those who may let it pass. Actor is empty if nobody has asked.
func beyondCost(limits []holdfast.CostTerms, plan holdfast.Run, actor string) (breach string, unknown bool) {
	if len(limits) == 0 { // it was asked for by its name alone
		return "the condition has no limit", true
	}
	for _, limit := range limits {
		breach, unknown = limit.Breach(plan.Cost)
		mayPass := func(name string) bool { return actor != "" && strings.EqualFold(name, actor) }
		if breach != "" && !slices.ContainsFunc(limit.ApprovedBy, mayPass) {
			return breach, unknown
		}
	}
	return "", false
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
	if len(in.Merges) == 0 {
		reason, detail = unmerged(in, last, "")
	}
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
