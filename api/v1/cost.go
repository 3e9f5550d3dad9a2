package v1

import "github.com/holdfast-dev/holdfast"

// Cost is what a plan changes of the monthly price of a cluster. Amounts are decimal numbers as
// texts. Currencies are never added up, and what has no price is listed: its price is not zero.
type Cost struct {
	Totals    []CostTotal    `json:"totals,omitempty"`    // One for each currency; absent: nothing changes that has a price.
	Resources []ResourceCost `json:"resources,omitempty"` // Whose price changes, by address. Of plans only.
	Unpriced  []UnpricedCost `json:"unpriced,omitempty"`  // What is billed, changes, and is not in the totals.
	Omitted   int            `json:"omitted,omitempty"`   // How many more resources have no price.
	Usage     []UsageCost    `json:"usage,omitempty"`     // What comes on top, by how much is used. Of plans only.
	Prices    CostPrices     `json:"prices"`              // What it was calculated with.
}

// AmountRange is an amount of which only the bounds are known; they are equal if it is known.
type AmountRange struct {
	Low  holdfast.Amount `json:"low"`
	High holdfast.Amount `json:"high"`
}

// CostTotal is a sum for a month.
type CostTotal struct {
	Currency string      `json:"currency"` // ISO 4217.
	Before   AmountRange `json:"before"`   // Of what the plan changes.
	After    AmountRange `json:"after"`    // Of the same after the apply.
	Change   AmountRange `json:"change"`   // What the plan adds, negative if it saves.
}

// ResourceCost is a resource whose price changes.
type ResourceCost struct {
	Address string                `json:"address"`
	Type    string                `json:"type"`
	Action  holdfast.ChangeAction `json:"action"`
	Totals  []CostTotal           `json:"totals"` // One for each currency.
	Items   []CostItem            `json:"items"`  // What it is billed by.
}

// CostItem is one thing that a resource is billed by.
type CostItem struct {
	Name     string       `json:"name"`             // Such as "nodes".
	SKU      string       `json:"sku"`              // As the cloud names it; several that are possible: with " or ".
	Region   string       `json:"region,omitempty"` // Where it is.
	Quantity string       `json:"quantity"`         // Such as "3", "3–12" or "150 GB".
	Price    AmountRange  `json:"price"`            // Of a unit, for a month.
	Currency string       `json:"currency"`         // ISO 4217.
	Monthly  AmountRange  `json:"monthly"`          // Of all of it.
	Gone     bool         `json:"gone,omitempty"`   // It is billed before the change, and not after it.
	Origins  []CostOrigin `json:"origins"`          // Of the price.
}

// CostOrigin is where a price was found.
type CostOrigin struct {
	Source string `json:"source"`
	AsOf   string `json:"asOf,omitempty"` // YYYY-MM-DD, YYYY-MM or YYYY; absent: it has no date.
	Note   string `json:"note,omitempty"`
}

// UnpricedCost is something that is billed and has no price.
type UnpricedCost struct {
	Address string           `json:"address"`
	Type    string           `json:"type"`
	Name    string           `json:"name,omitempty"`   // What of it, such as "nodes"; absent: all of it.
	Gap     holdfast.CostGap `json:"gap"`              // "NoPrice", "UnknownValue" or "Unsupported".
	Detail  string           `json:"detail"`           // Such as "m7i.large in eu-west-1".
	Gone    bool             `json:"gone,omitempty"`   // It is billed before the change, and not after it.
	Cloud   string           `json:"cloud,omitempty"`  // What a price book gives a price to, as kind, sku and region.
	Region  string           `json:"region,omitempty"` // Of the price.
	Kind    string           `json:"kind,omitempty"`   // Of the price.
	SKU     string           `json:"sku,omitempty"`    // Of the price.
}

// UsageCost is what is billed by how much is used.
type UsageCost struct {
	Address  string          `json:"address"`
	Name     string          `json:"name"`
	Price    holdfast.Amount `json:"price,omitempty"` // Of a unit; absent: it has none.
	Unit     string          `json:"unit,omitempty"`
	Currency string          `json:"currency,omitempty"`
}

// CostPrices identify the prices that a cost was calculated with.
type CostPrices struct {
	ID     string          `json:"id"`               // Equal ids: equal prices.
	Parts  []CostPricePart `json:"parts,omitempty"`  // The sources of prices, in the order in which they are asked.
	Oldest string          `json:"oldest,omitempty"` // Date of the oldest price that is in the cost; absent: none has one.
	Newest string          `json:"newest,omitempty"` // Date of the newest one.
}

// CostPricePart is one source of prices.
type CostPricePart struct {
	Name string `json:"name"` // "book", "cache" or "embedded".
	ID   string `json:"id"`
	AsOf string `json:"asOf,omitempty"` // Of its newest price.
}

func costOf(c *holdfast.Cost) *Cost {
	if c == nil {
		return nil
	}
	return &Cost{
		Totals: all(c.Totals, costTotalOf), Resources: all(c.Resources, resourceCostOf), Unpriced: all(c.Unpriced, unpricedCostOf),
		Omitted: c.Omitted, Usage: all(c.Usage, usageCostOf),
		Prices: CostPrices{ID: c.Prices.ID, Parts: all(c.Prices.Parts, costPricePartOf), Oldest: c.Prices.Oldest, Newest: c.Prices.Newest},
	}
}

// Cost returns the cost in the vocabulary of Holdfast.
func (c *Cost) Cost() *holdfast.Cost {
	if c == nil {
		return nil
	}
	return &holdfast.Cost{
		Totals: all(c.Totals, CostTotal.total), Resources: all(c.Resources, ResourceCost.cost), Unpriced: all(c.Unpriced, UnpricedCost.unpriced),
		Omitted: c.Omitted, Usage: all(c.Usage, UsageCost.usage),
		Prices: holdfast.CostPrices{ID: c.Prices.ID, Parts: all(c.Prices.Parts, CostPricePart.part), Oldest: c.Prices.Oldest, Newest: c.Prices.Newest},
	}
}

func costTotalOf(t holdfast.CostTotal) CostTotal {
	return CostTotal{Currency: t.Currency, Before: AmountRange(t.Before), After: AmountRange(t.After), Change: AmountRange(t.Change)}
}

func (t CostTotal) total() holdfast.CostTotal {
	return holdfast.CostTotal{
		Currency: t.Currency, Before: holdfast.AmountRange(t.Before), After: holdfast.AmountRange(t.After), Change: holdfast.AmountRange(t.Change),
	}
}

func resourceCostOf(r holdfast.ResourceCost) ResourceCost {
	return ResourceCost{Address: r.Address, Type: r.Type, Action: r.Action, Totals: all(r.Totals, costTotalOf), Items: all(r.Items, costItemOf)}
}

func (r ResourceCost) cost() holdfast.ResourceCost {
	return holdfast.ResourceCost{Address: r.Address, Type: r.Type, Action: r.Action, Totals: all(r.Totals, CostTotal.total), Items: all(r.Items, CostItem.item)}
}

func costItemOf(i holdfast.CostItem) CostItem {
	return CostItem{
		Name: i.Name, SKU: i.SKU, Region: i.Region, Quantity: i.Quantity, Price: AmountRange(i.Price), Currency: i.Currency,
		Monthly: AmountRange(i.Monthly), Gone: i.Gone, Origins: all(i.Origins, costOriginOf),
	}
}

func (i CostItem) item() holdfast.CostItem {
	return holdfast.CostItem{
		Name: i.Name, SKU: i.SKU, Region: i.Region, Quantity: i.Quantity, Price: holdfast.AmountRange(i.Price), Currency: i.Currency,
		Monthly: holdfast.AmountRange(i.Monthly), Gone: i.Gone, Origins: all(i.Origins, CostOrigin.origin),
	}
}

func costOriginOf(o holdfast.CostOrigin) CostOrigin { return CostOrigin(o) }

func (o CostOrigin) origin() holdfast.CostOrigin { return holdfast.CostOrigin(o) }

func unpricedCostOf(u holdfast.UnpricedCost) UnpricedCost { return UnpricedCost(u) }

func (u UnpricedCost) unpriced() holdfast.UnpricedCost { return holdfast.UnpricedCost(u) }

func usageCostOf(u holdfast.UsageCost) UsageCost { return UsageCost(u) }

func (u UsageCost) usage() holdfast.UsageCost { return holdfast.UsageCost(u) }

func costPricePartOf(p holdfast.CostPricePart) CostPricePart { return CostPricePart(p) }

func (p CostPricePart) part() holdfast.CostPricePart { return holdfast.CostPricePart(p) }
