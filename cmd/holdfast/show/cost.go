package show

import (
	"strings"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/costs"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

// costText is what a run's plan changes of the monthly price: with its resources if the plan is
// there. Nothing is said of a plan that changes nothing of it.
func (a *app) costText(d runDescription) string {
	cost := d.Run.Cost.Cost()
	if d.Plan != nil && d.Plan.Cost != nil {
		cost = d.Plan.Cost.Cost()
	}
	if cost == nil || len(cost.Totals) == 0 && len(cost.Unpriced) == 0 && len(cost.Usage) == 0 {
		return ""
	}
	return table.Section("Cost", strings.TrimRight(costs.Text(a.App, *cost), "\n"))
}
