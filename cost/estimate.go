package cost

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cost/price"
	"github.com/holdfast-dev/holdfast/plandoc"
)

// Input is what a cost is estimated of.
type Input struct {
	// Document is the plan: a valid one.
	Document plandoc.Document
	// Unchanged are resources of the cluster that the plan does not change, with their
	// values in Before: what is changed may refer to them. Those of ContextTypes are
	// enough.
	Unchanged []plandoc.Resource
	// Region is where the cluster is, for resources that do not say where they are
	// themselves. Empty: where the other resources of the same cloud are, if that is one.
	Region string
}

// ContextTypes are the types of resources of which Input.Unchanged is read.
func ContextTypes() []string {
	return []string{"aws_autoscaling_group", "aws_eks_node_group", "aws_launch_template", "google_container_node_pool"}
}

// Prices is what a cost is estimated by: a price.Chain.
type Prices interface {
	Lookup(price.Key) []price.Price
	Parts() []price.Version
	Version() price.Version
}

// plan is the resources that billing looks at.
type plan struct {
	byType    map[string][]*plandoc.Resource
	regions   map[price.Cloud]string
	templates map[string][]*plandoc.Resource // launch templates, by id and by name

	before, after struct{ names, values []value } // of the sides that are looked at
}

// ofType are the resources of a type: those that the plan changes, and of context.
func (p *plan) ofType(name string) []*plandoc.Resource { return p.byType[name] }

// Estimate returns what a plan changes of the monthly price.
func Estimate(in Input, prices Prices) holdfast.Cost {
	p := &plan{byType: make(map[string][]*plandoc.Resource), regions: make(map[price.Cloud]string)}
	context := slices.Clone(in.Unchanged)
	for i := range context {
		context[i].After = context[i].Before
		context[i].Actions = []string{"update"} // as if: what it refers to may have changed
	}
	for _, list := range [][]plandoc.Resource{in.Document.Resources, context} {
		for i := range list {
			p.byType[list[i].Type] = append(p.byType[list[i].Type], &list[i])
		}
	}
	p.findTemplates()
	p.findRegions(in.Region, in.Document.Resources, context)
	e := estimate{plan: p, prices: prices, looked: make(map[price.Key][]price.Price)}
	for i := range in.Document.Resources {
		e.resource(&in.Document.Resources[i])
	}
	for i := range context {
		if context[i].Type != "aws_launch_template" && cloudOf(context[i].Type) == price.AWS {
			e.resource(&context[i])
		}
	}
	e.unseenTemplates(in.Document.Resources)
	return e.cost()
}

// findRegions says where the resources of each cloud are that do not say so themselves.
func (p *plan) findRegions(region string, lists ...[]plandoc.Resource) {
	if region != "" {
		for _, cloud := range price.Clouds() {
			p.regions[cloud] = region
		}
		return
	}
	several := make(map[price.Cloud]bool)
	for _, list := range lists {
		for i := range list {
			cloud := cloudOf(list[i].Type)
			if cloud == "" {
				continue
			}
			for _, v := range []value{of(list[i].After), of(list[i].Before)} {
				own := ownRegion(cloud, v)
				several[cloud] = several[cloud] || own != "" && p.regions[cloud] != "" && p.regions[cloud] != own
				if own != "" {
					p.regions[cloud] = own
					break
				}
			}
		}
	}
	for cloud := range several {
		if several[cloud] {
			delete(p.regions, cloud)
		}
	}
}

// estimate is a cost in the making.
type estimate struct {
	plan   *plan
	prices Prices
	looked map[price.Key][]price.Price // what was looked up already
	out    holdfast.Cost
}

// lookup returns the prices of a key. A plan asks for the same ones again and again. What
// Linode asks everywhere is not what it asks in each region: of one that is not known it is
// nothing.
func (e *estimate) lookup(k price.Key) []price.Price {
	if k.Region == "" && k.Cloud == price.Linode {
		return nil
	}
	found, ok := e.looked[k]
	if !ok {
		found = e.prices.Lookup(k)
		e.looked[k] = found
	}
	return found
}

// resource adds what the change of a resource costs.
func (e *estimate) resource(r *plandoc.Resource) {
	if !isBilled(r) {
		return
	}
	action, _ := r.Action()
	var before, after []item
	switch {
	case action == holdfast.ActionForget, action == holdfast.ActionImport, action == holdfast.ActionMove:
		return // the object itself stays as it is
	case action == holdfast.ActionReplace && slices.Contains(r.Actions, "forget"):
		after = newSide(of(r.After), true, r, e.plan).items() // next to the one that stays
	default:
		before = newSide(of(r.Before), false, r, e.plan).items()
		after = newSide(of(r.After), true, r, e.plan).items()
	}
	before, after = cancel(before, after)
	if len(before) == 0 && len(after) == 0 {
		return
	}
	a := e.tally(r, after, false)
	b := e.tally(r, before, true)
	b = slices.DeleteFunc(b, func(t tallied) bool { return e.isGap(r, t.name) }) // otherwise it would look saved
	totals := change(b, a)
	if len(totals) == 0 {
		return
	}
	cost := holdfast.ResourceCost{Address: r.FullAddress(), Type: r.Type, Action: action, Totals: totals}
	for _, t := range a {
		cost.Items = append(cost.Items, t.shown(false))
	}
	for _, t := range b {
		cost.Items = append(cost.Items, t.shown(true))
	}
	e.out.Resources = append(e.out.Resources, cost)
}

// tally finds the prices of items. What has none is listed, and what is billed by usage,
// unless it goes.
func (e *estimate) tally(r *plandoc.Resource, items []item, gone bool) (all []tallied) {
	for _, i := range items {
		if i.usage {
			if !gone {
				e.usage(r, i)
			}
			continue
		}
		if i.gap != "" {
			e.unpriced(r, i, price.Key{}, gone)
			continue
		}
		t, without := e.find(i)
		if without != nil {
			i.gap, i.detail = holdfast.CostNoPrice, keysText(i.keys)
			e.unpriced(r, i, *without, gone)
			continue
		}
		all = append(all, t...)
	}
	return all
}

// find returns an item with its prices, one for each currency, or a key that has none.
func (e *estimate) find(i item) (all []tallied, without *price.Key) {
	for _, k := range i.keys {
		found := e.lookup(k)
		if len(found) == 0 {
			return nil, &k
		}
		for _, p := range found {
			at := slices.IndexFunc(all, func(t tallied) bool { return t.currency == p.Currency })
			if at < 0 {
				at = len(all)
				all = append(all, tallied{item: i, currency: p.Currency, price: exactly(p.Monthly()), unit: p.Unit})
			}
			t := &all[at]
			t.price = t.price.hull(exactly(p.Monthly()))
			t.origins = append(t.origins, p.Origin)
		}
	}
	for n := range all {
		if i.low {
			all[n].price = between(zero, all[n].price.high)
		}
	}
	return all, nil
}

func keysText(keys []price.Key) string {
	var skus []string
	for _, k := range keys {
		if !slices.Contains(skus, k.SKU) {
			skus = append(skus, k.SKU)
		}
	}
	k := keys[0]
	k.SKU = strings.Join(skus, " or ")
	if k.Region == "" {
		return k.SKU + " in a region that is not known"
	}
	return k.String()
}

// unpriced lists an item. One that was there before, in another form, is named once.
func (e *estimate) unpriced(r *plandoc.Resource, i item, k price.Key, gone bool) {
	u := holdfast.UnpricedCost{
		Address: r.FullAddress(), Type: r.Type, Name: i.name, Gap: i.gap, Detail: i.detail, Gone: gone,
		Cloud: string(k.Cloud), Region: k.Region, Kind: string(k.Kind), SKU: k.SKU,
	}
	named := func(o holdfast.UnpricedCost) bool { return o.Address == u.Address && o.Name == u.Name }
	if !slices.Contains(e.out.Unpriced, u) && (!gone || !slices.ContainsFunc(e.out.Unpriced, named)) {
		e.out.Unpriced = append(e.out.Unpriced, u)
	}
}

// isGap reports whether what a resource has of a name after its change is unpriced.
func (e *estimate) isGap(r *plandoc.Resource, name string) bool {
	return slices.ContainsFunc(e.out.Unpriced, func(u holdfast.UnpricedCost) bool {
		return u.Address == r.FullAddress() && u.Name == name && !u.Gone
	})
}

// usage adds what is billed by how much is used. What would be the only price of a resource,
// and is not known, is unpriced.
func (e *estimate) usage(r *plandoc.Resource, i item) {
	u := holdfast.UsageCost{Address: r.FullAddress(), Name: i.name}
	if len(i.keys) > 0 {
		found := e.lookup(i.keys[0])
		if len(found) == 0 {
			i.gap, i.detail = holdfast.CostNoPrice, keysText(i.keys)
			e.unpriced(r, i, i.keys[0], false)
			return
		}
		u.Price, u.Unit, u.Currency = holdfast.Amount(found[0].Amount.String()), string(found[0].Unit), found[0].Currency
	}
	e.out.Usage = append(e.out.Usage, u)
}

// unseenTemplates lists launch templates that change while nothing in the plan uses them:
// what is billed by them is not known.
func (e *estimate) unseenTemplates(resources []plandoc.Resource) {
	for i := range resources {
		r := &resources[i]
		if r.Type != "aws_launch_template" || r.Before == nil || r.After == nil {
			continue
		}
		before, after := of(r.Before), of(r.After)
		same := true
		for _, attribute := range []string{"instance_type", "block_device_mappings", "instance_market_options", "placement"} {
			same = same && string(before.at(attribute)) == string(after.at(attribute))
		}
		if !same && !e.plan.uses(before) {
			e.unpriced(r, missing("", holdfast.CostUnknownValue, "which nodes have the launch template is not in the plan", ""), price.Key{}, false)
		}
	}
}

// uses reports whether a pool in the plan has a launch template.
func (p *plan) uses(template value) bool {
	id, _ := template.text("id")
	name, _ := template.text("name")
	for _, pool := range slices.Concat(p.ofType("aws_eks_node_group"), p.ofType("aws_autoscaling_group")) {
		for _, v := range []value{of(pool.Before), of(pool.After)} {
			byID, _ := v.text("launch_template", 0, "id")
			byName, _ := v.text("launch_template", 0, "name")
			if byID != "" && byID == id || byName != "" && byName == name {
				return true
			}
		}
	}
	return false
}

// cost returns the estimate, with its sums.
func (e *estimate) cost() holdfast.Cost {
	slices.SortStableFunc(e.out.Resources, func(a, b holdfast.ResourceCost) int { return strings.Compare(a.Address, b.Address) })
	slices.SortStableFunc(e.out.Unpriced, func(a, b holdfast.UnpricedCost) int { return strings.Compare(a.Address, b.Address) })
	var lists [][]holdfast.CostTotal
	for _, r := range e.out.Resources {
		lists = append(lists, r.Totals)
		for _, i := range r.Items {
			for _, o := range i.Origins {
				e.date(o.AsOf)
			}
		}
	}
	e.out.Totals = add(lists...)
	e.out.Prices.ID = e.prices.Version().ID
	for _, part := range e.prices.Parts() {
		e.out.Prices.Parts = append(e.out.Prices.Parts, holdfast.CostPricePart{Name: part.Name, ID: part.ID, AsOf: part.AsOf})
	}
	return e.out
}

// date notes that of a price.
func (e *estimate) date(asOf string) {
	if asOf == "" {
		return
	}
	p := &e.out.Prices
	if p.Oldest == "" || asOf < p.Oldest {
		p.Oldest = asOf
	}
	p.Newest = max(p.Newest, asOf)
}
