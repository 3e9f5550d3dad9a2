package report_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/report"
)

// What plans cost is in the comment: in one line, of several clusters one by one, too. What has
// no price is named, and nobody's text is Markdown.
func TestCosts(t *testing.T) {
	t.Parallel()
	total := func(low, high, currency string) holdfast.CostTotal {
		return holdfast.CostTotal{Currency: currency, Change: holdfast.AmountRange{Low: holdfast.Amount(low), High: holdfast.Amount(high)}}
	}
	planned := func(name string, c *holdfast.Cost) report.Cluster {
		return report.Cluster{
			Name: name, Summary: &holdfast.Plan{
				Counts:  holdfast.Counts{Create: 1},
				Changes: []holdfast.ResourceChange{{Address: "a." + name, Type: "a", Action: holdfast.ActionCreate}},
			},
			Plan: &holdfast.Run{
				ID: "run-" + name, Cluster: name, Kind: holdfast.RunPlan, Status: holdfast.RunPlanned,
				RunSpec: holdfast.RunSpec{Revision: "h1"}, RunOutcome: holdfast.RunOutcome{Counts: holdfast.Counts{Create: 1}, Cost: c},
			},
		}
	}
	priced := &holdfast.Cost{Totals: []holdfast.CostTotal{total("12", "40.5", "USD")}, Prices: holdfast.CostPrices{Oldest: "2024-07-01", Newest: "2026-07-20"}}
	unpriced := &holdfast.Cost{
		Totals:   []holdfast.CostTotal{total("-3", "-3", "EUR")},
		Unpriced: []holdfast.UnpricedCost{{Address: "aws_db_instance.main", Gap: holdfast.CostNoPrice, Detail: "a|b <i> @all"}}, Omitted: 2,
	}
	comment := func(add func(...holdfast.Cost) []holdfast.CostTotal, clusters ...report.Cluster) string {
		return report.Comment(report.PullRequest{
			PullRequest: holdfast.PullRequestRecord{PullRequest: holdfast.PullRequest{
				PullRequestRef: holdfast.PullRequestRef{Repo: "fleet", Number: 7}, State: holdfast.PullRequestOpen, Head: "h1", Author: "dev",
			}},
			Clusters: clusters, AddCosts: add,
		})
	}
	together := func(costs ...holdfast.Cost) []holdfast.CostTotal {
		if len(costs) != 2 {
			t.Errorf("%d costs are added up", len(costs))
		}
		return []holdfast.CostTotal{total("9", "37.5", "USD")}
	}
	for name, test := range map[string]struct {
		comment string
		want    []string
	}{
		"one": {comment(together, planned("a", priced), planned("b", nil), planned("c", &holdfast.Cost{})), []string{
			"**Cost:** +12.00 to +40.50 USD a month. <sub>Prices of 2024-07-01 to 2026-07-20.</sub>\n",
		}},
		"several": {comment(together, planned("a", priced), planned("b", unpriced)), []string{
			"**Cost:** +9.00 to +37.50 USD a month, and 3 resources without a price. Without a price: `aws_db_instance.main` (no price of a\\|b &lt;i&gt; @",
			"| `a` | +12.00 to +40.50 USD a month |\n| `b` | -3.00 EUR a month, and 3 resources without a price |",
		}},
		"several that nobody adds up": {comment(nil, planned("a", priced), planned("b", unpriced)), []string{"| Cluster | Cost |"}},
	} {
		for _, want := range test.want {
			if !strings.Contains(test.comment, want) {
				t.Errorf("%s: there is no %q in\n%s", name, want, test.comment)
			}
		}
		if strings.Contains(test.comment, "@all") {
			t.Errorf("%s: a text mentions somebody:\n%s", name, test.comment)
		}
	}
	if free := comment(together, planned("a", &holdfast.Cost{}), planned("b", nil)); strings.Contains(free, "Cost") {
		t.Errorf("plans that change no price have a cost:\n%s", free)
	}
}
