package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// cost: what plan adds to the monthly price is within all limits, or those who may have approved
// it. An older plan, whose cost is not known, is within none.
func cost(pr holdfast.PullRequestRecord, terms Terms, plan holdfast.Run, runs []holdfast.Run) holdfast.Gate {
	g := holdfast.Gate{Name: holdfast.GateCost}
	switch {
	case plan.ID == "":
		g.Missing, g.From, g.Unknown = "there is no plan yet", "a plan", true
		return g
	case len(terms.Details.Costs) == 0: // it was asked for by its name alone
		g.Missing, g.From, g.Unknown = "the condition has no limit", "a limit in the document", true
		return g
	}
	given, _ := approvals(pr, terms.Cluster, plan, runs)
	if len(Objectors(pr)) > 0 {
		given = nil
	}
	var lacks, from []string
	known := true
	for _, limit := range terms.Details.Costs {
		breach, unknown := limit.Breach(plan.Cost)
		if breach == "" {
			continue
		}
		if how := approvedBy(given, limit.ApprovedBy); how != "" {
			g.Given = append(g.Given, how)
			continue
		}
		lacks, known = append(lacks, breach), known && !unknown
		from = append(from, costOpeners(limit, plan))
	}
	g.Given = unique(g.Given)
	if g.Met = len(lacks) == 0; !g.Met {
		g.Unknown = !known
		g.Missing, g.From = strings.Join(unique(lacks), "; "), strings.Join(unique(from), "; ")
		return g
	}
	if plan.Cost != nil && len(plan.Cost.Totals) > 0 {
		g.Given = append([]string{fmt.Sprintf("%s a month", holdfast.CostChange(plan.Cost.Totals))}, g.Given...)
	}
	return g
}

// approvedBy is the approval that one of some people has given; empty if none has. How an identity
// provider calls people is not asked: they may choose it.
func approvedBy(given []approval, people []string) string {
	for _, a := range given {
		if !a.person && slices.ContainsFunc(people, func(name string) bool { return strings.EqualFold(name, a.by) }) {
			return a.how
		}
	}
	return ""
}

// costOpeners says what lets a plan that is not within a limit pass.
func costOpeners(limit holdfast.CostTerms, plan holdfast.Run) string {
	other := "a plan that adds " + limit.String()
	if plan.Cost == nil {
		other = "a new plan, with `cost.enabled` in holdfast.yaml"
	}
	if len(limit.ApprovedBy) == 0 {
		return other
	}
	return "an approval of " + strings.Join(limit.ApprovedBy, " or ") + ", or " + other
}
