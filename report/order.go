package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/plandiff"
)

// byDanger returns changes with those first that destroy the most, then in the
// order in which people count: item[2] is before item[10].
func byDanger(changes []holdfast.ResourceChange) []holdfast.ResourceChange {
	sorted := slices.Clone(changes)
	slices.SortStableFunc(sorted, func(a, b holdfast.ResourceChange) int {
		return cmp.Or(
			cmp.Compare(actionRank(a.Action), actionRank(b.Action)),
			cmp.Compare(plandiff.DangerOf(b), plandiff.DangerOf(a)),
			naturally(a.Address, b.Address),
		)
	})
	return sorted
}

// actionRank puts replace and delete together: both destroy.
func actionRank(action holdfast.ChangeAction) int {
	i := slices.Index(actionOrder, action)
	switch {
	case i < 0:
		return len(actionOrder)
	case action == holdfast.ActionDelete:
		return slices.Index(actionOrder, holdfast.ActionReplace)
	default:
		return i
	}
}

// loses reports whether something that exists is destroyed, or given up: what
// nobody must overlook.
func loses(c holdfast.ResourceChange) bool { return c.Destroys() || c.Action == holdfast.ActionForget }

// losses are the changes of a plan that lose something, most dangerous first.
func losses(plan *holdfast.Plan) []holdfast.ResourceChange {
	if plan == nil {
		return nil
	}
	return slices.DeleteFunc(byDanger(plan.Changes), func(c holdfast.ResourceChange) bool { return !loses(c) })
}

// naturally compares two texts with the numbers in them by their value.
func naturally(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		n, m := digits(x), digits(y)
		if n > 0 && m > 0 {
			p, q := strings.TrimLeft(x[:n], "0"), strings.TrimLeft(y[:m], "0")
			if c := cmp.Or(cmp.Compare(len(p), len(q)), strings.Compare(p, q)); c != 0 {
				return c
			}
			x, y = x[n:], y[m:]
			continue
		}
		if x[0] != y[0] {
			return cmp.Compare(x[0], y[0])
		}
		x, y = x[1:], y[1:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(a, b))
}

// digits is how many of the first bytes of s are digits.
func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
