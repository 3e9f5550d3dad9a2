package holdfast

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// GateTerms are what conditions of apply.requires ask for besides their names. The zero value
// asks for nothing: one approval, any cost.
type GateTerms struct {
	// Approvals is how many people have to have approved; 0: one.
	Approvals int `json:"approvals,omitempty"`
	// Destroys is how many have to have approved the plan of a destroy; 0: one.
	Destroys int `json:"destroys,omitempty"`
	// Costs bound what a plan may add to the monthly price. Each has to be met.
	Costs []CostTerms `json:"costs,omitempty"`
}

// CostTerms bound what a plan may add to the monthly price of a cluster.
type CostTerms struct {
	MaxIncrease Amount `json:"maxIncrease"` // of the upper end of the range
	Currency    string `json:"currency"`    // ISO 4217
	// ApprovedBy are those, by name, of whom one may let a plan pass that adds more, or of
	// which the cost is not known. None: nobody may.
	ApprovedBy []string `json:"approvedBy,omitempty"`
	// Unpriced: what has no price does not matter.
	Unpriced bool `json:"unpriced,omitempty"`
}

// IsZero reports whether nothing is asked for.
func (t GateTerms) IsZero() bool { return t.Approvals == 0 && t.Destroys == 0 && len(t.Costs) == 0 }

// With returns the terms that ask for all that the two ask for.
func (t GateTerms) With(o GateTerms) GateTerms {
	t.Approvals, t.Destroys, t.Costs = max(t.Approvals, o.Approvals), max(t.Destroys, o.Destroys), slices.Clip(t.Costs)
	for _, c := range o.Costs {
		if !slices.ContainsFunc(t.Costs, c.equal) {
			t.Costs = append(t.Costs, c)
		}
	}
	return t
}

func (t CostTerms) equal(o CostTerms) bool {
	return t.MaxIncrease == o.MaxIncrease && t.Currency == o.Currency && t.Unpriced == o.Unpriced && slices.Equal(t.ApprovedBy, o.ApprovedBy)
}

// String returns the terms in words: "at most 100.00 USD more a month".
func (t CostTerms) String() string {
	return fmt.Sprintf("at most %s %s more a month", t.MaxIncrease.Rounded(), t.Currency)
}

// Breach says in words why a cost is not within the terms; empty if it is. Unknown: it may be,
// but nobody knows. The upper end of a range counts, amounts in another currency are not
// converted, and what has no price is not nothing.
func (t CostTerms) Breach(c *Cost) (breach string, unknown bool) {
	if c == nil {
		return "the cost of this plan was not estimated", true
	}
	for _, total := range c.Totals {
		switch {
		case total.Currency == t.Currency && total.Change.High.exceeds(t.MaxIncrease):
			return fmt.Sprintf("it adds %s a month, and %s", CostChange([]CostTotal{total}), t), false
		case total.Currency != t.Currency && total.Change.High.exceeds("0"):
			unknown, breach = true, fmt.Sprintf("it adds %s a month, and the limit is in %s", CostChange([]CostTotal{total}), t.Currency)
		}
	}
	if breach != "" || t.Unpriced {
		return breach, unknown
	}
	missing, n := "", c.Omitted-c.OmittedGone
	for _, u := range c.Unpriced {
		if !u.Gone {
			missing, n = cmp.Or(missing, u.Address), n+1
		}
	}
	if n > 0 {
		return strings.TrimSpace("not everything has a price: " + missing), true
	}
	return "", false
}

// exceeds reports whether an amount is more than another one. What is not a number exceeds all.
func (a Amount) exceeds(most Amount) bool {
	x, ok := a.number()
	y, also := most.number()
	return !ok || !also || x.Cmp(y) > 0
}

func (a Amount) number() (*big.Rat, bool) {
	if a == "" {
		return new(big.Rat), true
	}
	return new(big.Rat).SetString(string(a))
}
