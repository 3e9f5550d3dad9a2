package holdfast_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// A limit is met only by a cost that is known to be within it.
func TestCostTermsBreach(t *testing.T) {
	t.Parallel()
	adds := func(low, high, currency string) holdfast.CostTotal {
		return holdfast.CostTotal{Currency: currency, Change: holdfast.AmountRange{Low: holdfast.Amount(low), High: holdfast.Amount(high)}}
	}
	cost := func(totals ...holdfast.CostTotal) *holdfast.Cost { return &holdfast.Cost{Totals: totals} }
	unpriced := func(gone bool) *holdfast.Cost {
		return &holdfast.Cost{Unpriced: []holdfast.UnpricedCost{{Address: "aws_x.y", Gone: gone}}}
	}
	limit := holdfast.CostTerms{MaxIncrease: "100", Currency: "USD"}
	lenient := limit
	lenient.Unpriced = true
	for name, test := range map[string]struct {
		terms   holdfast.CostTerms
		cost    *holdfast.Cost
		breach  string // empty: none
		unknown bool
	}{
		"nothing changes":                {limit, cost(), "", false},
		"less":                           {limit, cost(adds("99.99", "99.99", "USD")), "", false},
		"just as much":                   {limit, cost(adds("0", "100.00", "USD")), "", false},
		"a cent more":                    {limit, cost(adds("0", "100.01", "USD")), "it adds 0.00 to +100.01 USD a month, and at most 100.00 USD more a month", false},
		"it saves":                       {limit, cost(adds("-500", "-500", "USD")), "", false},
		"another currency":               {limit, cost(adds("1", "1", "EUR")), "the limit is in USD", true},
		"another currency, which saves":  {limit, cost(adds("-1", "0", "EUR")), "", false},
		"another currency, and too much": {limit, cost(adds("1", "1", "EUR"), adds("200", "200", "USD")), "it adds +200.00 USD", false},
		"not a number":                   {limit, cost(adds("x", "x", "USD")), "it adds", false},
		"not estimated":                  {lenient, nil, "was not estimated", true},
		"no price":                       {limit, unpriced(false), "aws_x.y", true},
		"no price, and it goes":          {limit, unpriced(true), "", false},
		"no price, which is allowed":     {lenient, unpriced(false), "", false},
		"no price, and it is left out":   {limit, &holdfast.Cost{Omitted: 3}, "not everything has a price", true},
	} {
		breach, unknown := test.terms.Breach(test.cost)
		if (breach == "") != (test.breach == "") || !strings.Contains(breach, test.breach) || unknown != test.unknown {
			t.Errorf("%s: got %q, unknown %v; want %q, %v", name, breach, unknown, test.breach, test.unknown)
		}
	}
}

// What two ask for together is never less than what one of them asks for.
func TestGateTermsWith(t *testing.T) {
	t.Parallel()
	a := holdfast.GateTerms{Approvals: 2, Costs: []holdfast.CostTerms{{MaxIncrease: "100", Currency: "USD"}}}
	b := holdfast.GateTerms{Approvals: 1, Costs: []holdfast.CostTerms{{MaxIncrease: "100", Currency: "USD"}, {MaxIncrease: "50", Currency: "EUR"}}}
	for _, both := range []holdfast.GateTerms{a.With(b), b.With(a)} {
		if both.Approvals != 2 || len(both.Costs) != 2 {
			t.Errorf("got %+v", both)
		}
	}
	if len(a.Costs) != 1 || !(holdfast.GateTerms{}).IsZero() || a.IsZero() {
		t.Errorf("got %+v", a)
	}
}
