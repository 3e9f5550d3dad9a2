package holdfast_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// A brief keeps the sums and counts all that has no price; its size is bounded.
func TestCostBrief(t *testing.T) {
	t.Parallel()
	c := holdfast.Cost{
		Totals:    []holdfast.CostTotal{{Currency: "USD"}},
		Resources: []holdfast.ResourceCost{{Address: "a"}},
		Usage:     []holdfast.UsageCost{{Address: "a"}},
	}
	for i := range 50 {
		for range 2 {
			c.Unpriced = append(c.Unpriced, holdfast.UnpricedCost{Address: fmt.Sprintf("r.%02d", i), Detail: strings.Repeat("é", 1000)})
		}
	}
	brief := c.Brief()
	switch last := brief.Unpriced[len(brief.Unpriced)-1]; {
	case len(brief.Totals) != 1 || brief.Resources != nil || brief.Usage != nil:
		t.Errorf("got %+v", brief)
	case len(brief.Unpriced) != 40 || last.Address != "r.19" || brief.Omitted != 30 || brief.UnpricedResources() != 50:
		t.Errorf("%d without a price, the last one %s, %d are left out, %d in all", len(brief.Unpriced), last.Address, brief.Omitted, brief.UnpricedResources())
	case len(last.Detail) > 310 || strings.ContainsRune(last.Detail, '�'):
		t.Errorf("a detail of %d bytes", len(last.Detail))
	}
	if again := brief.Brief(); again.UnpricedResources() != 50 {
		t.Errorf("the brief of a brief has %d without a price", again.UnpricedResources())
	}
	if len(c.Unpriced[0].Detail) != 2000 {
		t.Error("the cost itself was changed")
	}
}

// However much without a price is destroyed, a limit lets it pass; what would be billed is named
// before it, and closes the gate wherever it stands.
func TestBriefOfWhatIsDestroyed(t *testing.T) {
	t.Parallel()
	limit := holdfast.CostTerms{MaxIncrease: "0", Currency: "USD"}
	var c holdfast.Cost
	for i := range 50 {
		c.Unpriced = append(c.Unpriced, holdfast.UnpricedCost{Address: fmt.Sprintf("r.%02d", i), Gone: true})
	}
	brief := c.Brief()
	if breach, _ := limit.Breach(&brief); breach != "" || brief.UnpricedResources() != 50 {
		t.Errorf("%d without a price: %s", brief.UnpricedResources(), breach)
	}
	c.Unpriced = append(c.Unpriced, holdfast.UnpricedCost{Address: "r.49"}) // it is replaced by another one
	brief = c.Brief()
	if breach, unknown := limit.Breach(&brief); !unknown || breach != "not everything has a price: r.49" || brief.UnpricedResources() != 50 {
		t.Errorf("%d without a price: %q", brief.UnpricedResources(), breach)
	}
	for i := range 30 {
		c.Unpriced = append(c.Unpriced, holdfast.UnpricedCost{Address: fmt.Sprintf("s.%02d", i)})
	}
	brief = c.Brief().Brief()
	if breach, unknown := limit.Breach(&brief); !unknown || breach == "" || brief.UnpricedResources() != 80 || brief.OmittedGone != 49 {
		t.Errorf("%d without a price, %d of the others are gone: %q", brief.UnpricedResources(), brief.OmittedGone, breach)
	}
}

func TestCostChange(t *testing.T) {
	t.Parallel()
	got := holdfast.CostChange([]holdfast.CostTotal{
		{Currency: "EUR", Change: holdfast.AmountRange{Low: "-3.999", High: "-3.999"}},
		{Currency: "USD", Change: holdfast.AmountRange{Low: "0", High: "12.5"}},
	})
	if want := "-4.00 EUR and 0.00 to +12.50 USD"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
