package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report/markdown"
)

// costWriter writes what plans change of the monthly price.
type costWriter struct{ *writer }

// clusterCost is what the plan of a cluster costs.
type clusterCost struct {
	cluster string
	cost    holdfast.Cost
}

// clusterCosts are those of the plans that change something of the price.
func clusterCosts(outcomes []outcome) (all []clusterCost) {
	for _, o := range outcomes {
		plan := plannedBy(o)
		if plan == nil || plan.Cost == nil || len(plan.Cost.Totals) == 0 && plan.Cost.UnpricedResources() == 0 {
			continue
		}
		all = append(all, clusterCost{o.cluster.Name, *plan.Cost})
	}
	return all
}

// costs says what the plans add to the monthly price, in one line and, of several clusters,
// in a table. What has no price is named: it is not nothing.
func (w costWriter) costs() {
	all := clusterCosts(w.outcomes)
	if len(all) == 0 {
		return
	}
	totals, unpriced := all[0].cost.Totals, 0
	var each []holdfast.Cost
	for _, c := range all {
		each = append(each, c.cost)
		unpriced += c.cost.UnpricedResources()
	}
	if len(all) > 1 && w.r.AddCosts != nil {
		totals = w.r.AddCosts(each...)
	}
	if len(all) == 1 || w.r.AddCosts != nil {
		w.linef("**Cost:** %s.%s%s\n", costWords(totals, unpriced), w.unpricedWords(all), pricesAge(each))
	}
	if len(all) == 1 {
		return
	}
	w.line("| Cluster | Cost |\n|---|---|")
	shown := firstOf(&w.page, all, w.level.notes)
	for _, c := range shown {
		w.linef("| %s | %s |", markdown.Code(c.cluster), costWords(c.cost.Totals, c.cost.UnpricedResources()))
	}
	if more := len(all) - len(shown); more > 0 {
		w.linef("\n%s not shown.", markdown.Plural(more, "more cost"))
	}
	w.line("")
}

// costWords are "+155.17 USD a month, and 1 resource without a price".
func costWords(totals []holdfast.CostTotal, unpriced int) string {
	words := "not known"
	if len(totals) > 0 {
		words = holdfast.CostChange(plainTotals(totals)) + " a month"
	}
	if unpriced > 0 {
		words += ", and " + markdown.Plural(unpriced, "resource") + " without a price"
	}
	return words
}

// plainTotals are totals whose currencies and amounts are text: sources of prices say them.
func plainTotals(totals []holdfast.CostTotal) []holdfast.CostTotal {
	plainAmount := func(a holdfast.Amount) holdfast.Amount {
		if strings.Trim(string(a), "-.0123456789") == "" {
			return a
		}
		return holdfast.Amount(markdown.ShortText(string(a), 20))
	}
	totals = slices.Clone(totals)
	for i := range totals {
		t := &totals[i]
		t.Currency = markdown.ShortText(t.Currency, 10)
		t.Change = holdfast.AmountRange{Low: plainAmount(t.Change.Low), High: plainAmount(t.Change.High)}
	}
	return totals
}

// unpricedWords name some of what has no price, and why.
func (w costWriter) unpricedWords(all []clusterCost) string {
	const most = 3
	var named []string
	seen := make(map[string]bool)
	for _, c := range all {
		for _, u := range c.cost.Unpriced {
			if seen[c.cluster+" "+u.Address] || len(named) == most {
				continue
			}
			seen[c.cluster+" "+u.Address] = true
			why := u.Detail
			if u.Gap == holdfast.CostNoPrice {
				why = "no price of " + why
			}
			named = append(named, fmt.Sprintf("%s (%s)", markdown.Code(markdown.Shorten(markdown.OneLine(u.Address), 100)), markdown.ShortText(why, 120)))
		}
	}
	if len(named) == 0 {
		return ""
	}
	return " Without a price: " + strings.Join(named, ", ") + "."
}

// pricesAge says how old the prices are; empty if none has a date.
func pricesAge(costs []holdfast.Cost) string {
	oldest, newest := "", ""
	for _, c := range costs {
		if p := c.Prices; p.Oldest != "" {
			oldest, newest = min(cmp.Or(oldest, p.Oldest), p.Oldest), max(newest, p.Newest)
		}
	}
	oldest, newest = markdown.HTML(markdown.Shorten(oldest, 20)), markdown.HTML(markdown.Shorten(newest, 20))
	switch oldest {
	case "":
		return ""
	case newest:
		return fmt.Sprintf(" <sub>Prices of %s.</sub>", oldest)
	}
	return fmt.Sprintf(" <sub>Prices of %s to %s.</sub>", oldest, newest)
}
