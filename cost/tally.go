package cost

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cost/money"
	"github.com/holdfast-dev/holdfast/cost/price"
)

var zero money.Amount //nolint:gochecknoglobals // a constant

// tallied is an item with its price in one currency.
type tallied struct {
	item
	currency string
	price    amounts // of a unit, for a month
	unit     price.Unit
	origins  []price.Origin
}

// at is what the item costs at a load.
func (t tallied) at(load int64) amounts {
	return t.units(load).times(t.price)
}

func (t tallied) units(load int64) amounts {
	return t.each.times(exactly(money.Of(t.nodes.at(load))))
}

// change returns what a resource costs before and after a change, and the difference, for
// each currency.
//
// What is scaled has the same load before and after, whatever that is: the difference is
// taken at each load at which one of the pools reaches a bound, as it is greatest or least
// at one of these.
func change(before, after []tallied) []holdfast.CostTotal {
	loads := make(map[int64]bool)
	currencies := make(map[string]bool)
	for _, t := range slices.Concat(before, after) {
		currencies[t.currency] = true
		loads[t.nodes.min], loads[t.nodes.max] = true, true
	}
	var totals []holdfast.CostTotal
	for _, currency := range slices.Sorted(maps.Keys(currencies)) {
		b, a := in(currency, before), in(currency, after)
		var was, is, diff *amounts
		for load := range loads {
			was = wider(was, sum(b, load))
			is = wider(is, sum(a, load))
			diff = wider(diff, difference(b, a, load))
		}
		totals = append(totals, holdfast.CostTotal{Currency: currency, Before: was.shown(), After: is.shown(), Change: diff.shown()})
	}
	return totals
}

func wider(a *amounts, b amounts) *amounts {
	if a != nil {
		b = a.hull(b)
	}
	return &b
}

// in are the items of a currency.
func in(currency string, items []tallied) (of []tallied) {
	for _, t := range items {
		if t.currency == currency {
			of = append(of, t)
		}
	}
	return of
}

func sum(items []tallied, load int64) amounts {
	total := exactly(zero)
	for _, t := range items {
		total = total.plus(t.at(load))
	}
	return total
}

// difference returns what is added at a load. Where the price is the same one, though it is
// not known exactly, the difference of the units has that price.
func difference(before, after []tallied, load int64) amounts {
	total := exactly(zero)
	rest := slices.Clone(before)
	for _, t := range after {
		at := slices.IndexFunc(rest, func(b tallied) bool { return b.sameKind(t.item) && b.price.equal(t.price) })
		if at < 0 {
			total = total.plus(t.at(load))
			continue
		}
		b := rest[at]
		rest = slices.Delete(rest, at, at+1)
		units := t.units(load).plus(b.units(load).neg())
		if t.each.equal(b.each) {
			units = t.each.times(exactly(money.Of(t.nodes.at(load) - b.nodes.at(load))))
		}
		total = total.plus(units.times(t.price))
	}
	for _, b := range rest {
		total = total.plus(b.at(load).neg())
	}
	return total
}

// add returns the sums of totals, by currency.
func add(lists ...[]holdfast.CostTotal) []holdfast.CostTotal {
	sums := make(map[string][3]amounts)
	for _, list := range lists {
		for _, t := range list {
			s, ok := sums[t.Currency]
			if !ok {
				s = [3]amounts{exactly(zero), exactly(zero), exactly(zero)}
			}
			for i, r := range []holdfast.AmountRange{t.Before, t.After, t.Change} {
				s[i] = s[i].plus(read(r))
			}
			sums[t.Currency] = s
		}
	}
	var totals []holdfast.CostTotal
	for _, currency := range slices.Sorted(maps.Keys(sums)) {
		s := sums[currency]
		totals = append(totals, holdfast.CostTotal{Currency: currency, Before: s[0].shown(), After: s[1].shown(), Change: s[2].shown()})
	}
	return totals
}

// read returns a range that was shown; what is not a number is 0.
func read(r holdfast.AmountRange) amounts {
	low, _ := money.Parse(string(r.Low))
	high, _ := money.Parse(string(r.High))
	return between(low, high)
}

// Sum returns the costs of several clusters together, such as those of a pull request: one
// total for each currency.
func Sum(costs ...holdfast.Cost) []holdfast.CostTotal {
	lists := make([][]holdfast.CostTotal, len(costs))
	for i, c := range costs {
		lists[i] = c.Totals
	}
	return add(lists...)
}

// shown is the item for people.
func (t tallied) shown(gone bool) holdfast.CostItem {
	var skus []string
	for _, k := range t.keys {
		if !slices.Contains(skus, k.SKU) {
			skus = append(skus, k.SKU)
		}
	}
	monthly := t.at(t.nodes.min).hull(t.at(t.nodes.max))
	i := holdfast.CostItem{
		Name: t.name, SKU: strings.Join(skus, " or "), Region: t.keys[0].Region, Quantity: t.quantity(),
		Price: t.price.shown(), Currency: t.currency, Monthly: monthly.shown(), Gone: gone,
	}
	for _, o := range t.origins {
		origin := holdfast.CostOrigin{Source: o.Source, AsOf: o.AsOf, Note: o.Note}
		if !slices.Contains(i.Origins, origin) {
			i.Origins = append(i.Origins, origin)
		}
	}
	return i
}

// quantity is how much there is of an item, in words: "3–12", or "150 GB".
func (t tallied) quantity() string {
	low, high := t.units(t.nodes.min).low, t.units(t.nodes.max).high
	text := low.String()
	if low.Cmp(high) != 0 {
		text += "–" + high.String()
	}
	if t.unit == price.Hour || t.unit == price.Month || t.unit == price.VMHour {
		return text
	}
	unit, _, _ := strings.Cut(string(t.unit), "-")
	if t.nodes == single() {
		return text + " " + unit
	}
	return strconv.FormatInt(t.nodes.min, 10) + ranged(t.nodes) + " × " + t.each.high.String() + " " + unit
}

func ranged(s span) string {
	if s.min == s.max {
		return ""
	}
	return "–" + strconv.FormatInt(s.max, 10)
}
