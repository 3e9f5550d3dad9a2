package price_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/cost/money"
	"github.com/holdfast-dev/holdfast/cost/price"
)

// A month has 730 hours, or those of its cloud, and costs its limit at most.
func TestMonthly(t *testing.T) {
	t.Parallel()
	most := money.Of(5)
	for want, p := range map[string]price.Price{
		"7.3":   {Amount: money.MustParse("0.01"), Unit: price.Hour},
		"6.72":  {Amount: money.MustParse("0.01"), Unit: price.Hour, Hours: price.HoursOf28D},
		"5":     {Amount: money.MustParse("0.0075"), Unit: price.Hour, Cap: &most},
		"4.38":  {Amount: money.MustParse("0.006"), Unit: price.Hour, Cap: &most},
		"10":    {Amount: money.Of(10), Unit: price.Month},
		"0.08":  {Amount: money.MustParse("0.08"), Unit: price.GBMonth},
		"1.022": {Amount: money.MustParse("0.0014"), Unit: price.VMHour},
	} {
		if got := p.Monthly().String(); got != want {
			t.Errorf("%+v costs %s a month, want %s", p, got, want)
		}
	}
}

// The first source that has a price counts, also for all regions; within a source that of the
// region does.
func TestChain(t *testing.T) {
	t.Parallel()
	key := func(region, sku string) price.Key {
		return price.Key{Cloud: price.Linode, Region: region, Kind: price.Node, SKU: sku}
	}
	first, second := price.NewTable("first"), price.NewTable("second")
	add := func(table *price.Table, k price.Key, amount int64) {
		table.Add(k, price.Price{Amount: money.Of(amount), Unit: price.Month, Currency: "USD"})
	}
	add(first, key(price.AnyRegion, "a"), 1)
	add(second, key("r", "a"), 2)
	add(second, key("r", "b"), 3)
	add(second, key(price.AnyRegion, "b"), 4)
	chain := price.Chain{first, second}
	for k, want := range map[price.Key]string{key("r", "a"): "1", key("r", "b"): "3", key("s", "b"): "4", key("s", "c"): ""} {
		got := ""
		if found := chain.Lookup(k); len(found) > 0 {
			got = found[0].Amount.String()
		}
		if got != want {
			t.Errorf("%s costs %q, want %q", k, got, want)
		}
	}
	before := chain.Version()
	add(second, key("r", "c"), 5)
	if chain.Version() == before || len(chain.Parts()) != 2 || chain.Parts()[0] != first.Version() {
		t.Error("another price is not another version")
	}
}
