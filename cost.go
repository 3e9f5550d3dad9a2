package holdfast

import (
	"slices"
	"strings"
)

// Amount is a decimal number as text, such as "113.15" or "-0.5": amounts of money are
// never floating-point numbers. Empty is 0.
type Amount string

// Rounded returns the amount with two digits after the point, for people: what is just
// between two goes away from zero. An Amount that is not a number is returned as it is.
func (a Amount) Rounded() string {
	r, ok := a.number()
	if !ok {
		return string(a)
	}
	if text := r.FloatString(2); text != "-0.00" {
		return text
	}
	return "0.00"
}

// AmountRange is an amount of which only the bounds are known; they are equal if it is
// known.
type AmountRange struct {
	Low  Amount `json:"low"`
	High Amount `json:"high"`
}

// Cost is what a plan changes of the monthly price of a cluster, by list prices or those
// of a price book. Currencies are never added up, and what has no price is listed: its
// price is not zero.
type Cost struct {
	// Totals are the sums, one for each currency, by currency. None: nothing changes that
	// has a price.
	Totals []CostTotal `json:"totals,omitempty"`
	// Resources are those whose price changes, by address.
	Resources []ResourceCost `json:"resources,omitempty"`
	// Unpriced is what is billed, changes, and is not in Totals.
	Unpriced []UnpricedCost `json:"unpriced,omitempty"`
	// Usage is what comes on top, by how much is used: nobody knows that beforehand. It is
	// not in Totals.
	Usage []UsageCost `json:"usage,omitempty"`
	// Prices say what it was calculated with.
	Prices CostPrices `json:"prices"`
	// Omitted is how many resources of Unpriced are left out of a Brief.
	Omitted int `json:"omitted,omitempty"`
	// OmittedGone is how many of those are only billed before the change.
	OmittedGone int `json:"omittedGone,omitempty"`
}

// mostUnpriced is how many resources without a price a Brief names.
const mostUnpriced = 20

// Brief is the cost without its resources, as runs keep it: all of it is kept with the plan.
// What will be billed is named before what is only billed until then.
func (c Cost) Brief() Cost {
	c.Resources, c.Usage = nil, nil
	c.Unpriced = slices.Clone(c.Unpriced)
	stays := make(map[string]bool, len(c.Unpriced))
	for _, u := range c.Unpriced {
		stays[u.Address] = stays[u.Address] || !u.Gone
	}
	slices.SortStableFunc(c.Unpriced, func(a, b UnpricedCost) int {
		switch {
		case stays[a.Address] == stays[b.Address]:
			return 0
		case stays[a.Address]:
			return -1
		default:
			return 1
		}
	})
	named, left := make(map[string]bool), len(c.Unpriced)
	for i, u := range c.Unpriced {
		first := !named[u.Address]
		if named[u.Address] = true; len(named) <= mostUnpriced {
			continue
		}
		if left = min(left, i); first {
			c.Omitted++
		}
		if first && !stays[u.Address] {
			c.OmittedGone++
		}
	}
	c.Unpriced = c.Unpriced[:left:left]
	for i := range c.Unpriced { // what a plan calls its machines may be of any length
		u := &c.Unpriced[i]
		u.Address, u.Detail, u.SKU = short(u.Address), short(u.Detail), short(u.SKU)
	}
	return c
}

// short is a text of at most 300 bytes.
func short(text string) string {
	const most = 300
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// UnpricedResources is how many resources something of which is unpriced.
func (c Cost) UnpricedResources() int {
	seen := make(map[string]bool, len(c.Unpriced))
	for _, u := range c.Unpriced {
		seen[u.Address] = true
	}
	return len(seen) + c.Omitted
}

// CostTotal is a sum for a month.
type CostTotal struct {
	Currency string      `json:"currency"` // ISO 4217
	Before   AmountRange `json:"before"`   // of what the plan changes
	After    AmountRange `json:"after"`
	// Change is what the plan adds, negative if it saves. It is not the difference of the
	// two above where those are ranges: an autoscaled pool that stays as it is costs
	// nothing more, however many nodes it has.
	Change AmountRange `json:"change"`
}

// CostChange is what is added for a month, in each currency: "+12.00 to +40.00 USD and -3.00 EUR".
func CostChange(totals []CostTotal) string {
	parts := make([]string, len(totals))
	for i, t := range totals {
		low, high := t.Change.Low.signed(), t.Change.High.signed()
		parts[i] = low + " " + t.Currency
		if low != high {
			parts[i] = low + " to " + high + " " + t.Currency
		}
	}
	return strings.Join(parts, " and ")
}

// signed is the amount, rounded, with its sign.
func (a Amount) signed() string {
	text := a.Rounded()
	if text == "0.00" || strings.HasPrefix(text, "-") {
		return text
	}
	return "+" + text
}

// ResourceCost is a resource whose price changes.
type ResourceCost struct {
	Address string       `json:"address"`
	Type    string       `json:"type"`
	Action  ChangeAction `json:"action"`
	Totals  []CostTotal  `json:"totals"` // one for each currency, by currency
	Items   []CostItem   `json:"items"`
}

// CostItem is one thing that a resource is billed by.
type CostItem struct {
	Name     string       `json:"name"` // such as "nodes" or "disks of nodes"
	SKU      string       `json:"sku"`  // as the cloud names it; several that are possible: with " or "
	Region   string       `json:"region,omitempty"`
	Quantity string       `json:"quantity"` // such as "3", "3–12" or "150 GB"
	Price    AmountRange  `json:"price"`    // of a unit, for a month
	Currency string       `json:"currency"`
	Monthly  AmountRange  `json:"monthly"`
	Gone     bool         `json:"gone,omitempty"` // it is billed before the change, and not after it
	Origins  []CostOrigin `json:"origins"`        // of the price
}

// CostOrigin is where a price was found.
type CostOrigin struct {
	Source string `json:"source"`
	AsOf   string `json:"asOf,omitempty"` // YYYY-MM-DD, YYYY-MM or YYYY; empty: it has no date
	Note   string `json:"note,omitempty"`
}

// CostGap is why something has no price.
type CostGap string

// The reasons.
const (
	CostNoPrice      CostGap = "NoPrice"      // no source has a price for it
	CostUnknownValue CostGap = "UnknownValue" // what it depends on is known after the apply only, or secret
	CostUnsupported  CostGap = "Unsupported"  // nobody has said how the type is billed
)

// UnpricedCost is something that is billed and has no price.
type UnpricedCost struct {
	Address string  `json:"address"`
	Type    string  `json:"type"`
	Name    string  `json:"name,omitempty"` // what of it, such as "nodes"; empty: all of it
	Gap     CostGap `json:"gap"`
	Detail  string  `json:"detail"` // such as "m7i.large in eu-west-1"
	// Gone: it is billed before the change, and not after it. Whatever it costs, that is
	// saved.
	Gone bool `json:"gone,omitempty"`
	// What a price book gives a price to; empty if the gap is another one.
	Cloud  string `json:"cloud,omitempty"`
	Region string `json:"region,omitempty"`
	Kind   string `json:"kind,omitempty"`
	SKU    string `json:"sku,omitempty"`
}

// UsageCost is what is billed by how much is used.
type UsageCost struct {
	Address  string `json:"address"`
	Name     string `json:"name"`
	Price    Amount `json:"price,omitempty"` // of a unit; empty: it has none
	Unit     string `json:"unit,omitempty"`
	Currency string `json:"currency,omitempty"`
}

// CostPrices identify the prices that a cost was calculated with.
type CostPrices struct {
	ID string `json:"id"` // equal ids: equal prices
	// Parts are the sources of prices, in the order in which they are asked.
	Parts []CostPricePart `json:"parts,omitempty"`
	// Oldest and Newest are dates of the prices that are in the cost; empty: none has one.
	Oldest string `json:"oldest,omitempty"`
	Newest string `json:"newest,omitempty"`
}

// CostPricePart is one source of prices.
type CostPricePart struct {
	Name string `json:"name"` // "book", "cache" or "embedded"
	ID   string `json:"id"`
	AsOf string `json:"asOf,omitempty"` // of its newest price
}
