package cost

import (
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cost/money"
	"github.com/holdfast-dev/holdfast/cost/price"
)

// item is one thing that a resource is billed by, on one side of a change.
type item struct {
	name string
	// keys are what its price is found by: several if it is not known which of them it is.
	keys []price.Key
	// nodes is how many there are: of a pool that is scaled, it depends on the load.
	nodes span
	// each is how many units a node has: 1 machine, or a number of GB of disk.
	each amounts
	// low says that it may also cost nothing, as its price is the most that it can be.
	low bool
	// usage says that it is billed by how much is used.
	usage bool
	// gap is why it cannot be priced; empty: it can be.
	gap    holdfast.CostGap
	detail string
	// ref distinguishes what is not known: with equal ones two items are the same thing,
	// whatever that is.
	ref string
}

// span is how many nodes there are at the least and at the greatest load.
type span struct{ min, max int64 }

// at is how many nodes there are at a load, given in nodes.
func (s span) at(load int64) int64 { return min(max(load, s.min), s.max) }

// amounts are the bounds of a number. Most have equal bounds: one says so, which saves most
// of the work.
type amounts struct {
	low, high money.Amount
	one       bool
}

func exactly(a money.Amount) amounts { return amounts{a, a, true} }

// between returns the amounts between two bounds, in either order.
func between(a, b money.Amount) amounts {
	switch a.Cmp(b) {
	case 0:
		return exactly(a)
	case 1:
		a, b = b, a
	}
	return amounts{low: a, high: b}
}

func (a amounts) equal(b amounts) bool {
	return a.low.Cmp(b.low) == 0 && (a.one && b.one || a.high.Cmp(b.high) == 0)
}

func (a amounts) plus(b amounts) amounts {
	if a.one && b.one {
		return exactly(a.low.Add(b.low))
	}
	return between(a.low.Add(b.low), a.high.Add(b.high))
}

func (a amounts) neg() amounts { return amounts{a.high.Neg(), a.low.Neg(), a.one} }

// times returns the bounds of the product.
func (a amounts) times(b amounts) amounts {
	if a.one && b.one {
		return exactly(a.low.Mul(b.low))
	}
	return between(a.low.Mul(b.low), a.high.Mul(b.high)).hull(between(a.low.Mul(b.high), a.high.Mul(b.low)))
}

// hull returns the bounds of both.
func (a amounts) hull(b amounts) amounts {
	if a.equal(b) {
		return a
	}
	return between(money.Min(a.low, b.low), money.Max(a.high, b.high))
}

func (a amounts) shown() holdfast.AmountRange {
	return holdfast.AmountRange{Low: holdfast.Amount(a.low.String()), High: holdfast.Amount(a.high.String())}
}

// one is one machine for each node.
func one() amounts { return exactly(money.Of(1)) }

// single is how many there are of what is not a pool.
func single() span { return span{1, 1} }

// priced returns an item that is there once.
func priced(name string, k price.Key) item {
	return item{name: name, keys: []price.Key{k}, nodes: single(), each: one()}
}

// sized returns an item with that many units.
func sized(name string, k price.Key, units money.Amount) item {
	i := priced(name, k)
	i.each = exactly(units)
	return i
}

// byUsage returns an item that is billed by how much is used.
func byUsage(name string, k price.Key) item {
	i := priced(name, k)
	i.usage = true
	return i
}

// noted returns what is not in the plan, and may be billed.
func noted(name string) item { return item{name: name, usage: true} }

// missing returns an item that cannot be priced.
func missing(name string, gap holdfast.CostGap, detail, ref string) item {
	return item{name: name, gap: gap, detail: detail, ref: ref, nodes: single(), each: one()}
}

// same reports whether both are the same thing, in the same number: whatever its price is,
// nothing changes.
func (i item) same(o item) bool {
	return i.name == o.name && slices.Equal(i.keys, o.keys) && i.nodes == o.nodes && i.each.equal(o.each) &&
		i.low == o.low && i.usage == o.usage && i.gap == o.gap && i.detail == o.detail && i.ref == o.ref
}

// sameKind reports whether both have the same price, if perhaps in another number.
func (i item) sameKind(o item) bool {
	return i.name == o.name && slices.Equal(i.keys, o.keys) && i.low == o.low && i.usage == o.usage && i.gap == "" && o.gap == ""
}

// cancel takes away what is the same before and after.
func cancel(before, after []item) (b, a []item) {
	b = slices.Clone(before)
	for _, i := range after {
		if at := slices.IndexFunc(b, i.same); at >= 0 {
			b = slices.Delete(b, at, at+1)
			continue
		}
		a = append(a, i)
	}
	return b, a
}
