package sources

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/cost/money"
	"github.com/holdfast-dev/holdfast/cost/price"
)

// infracost is an endpoint that speaks the protocol of Infracost's pricing API: theirs, or your
// mirror of it.
type infracost struct {
	fetcher
	base, key string
}

// NewInfracost returns an endpoint that speaks Infracost's protocol.
func NewInfracost(base, key string, o Options) Source {
	return infracost{newFetcher(o, "Infracost endpoint"), strings.TrimSuffix(base, "/"), key}
}

// infracostQuery asks for the prices of a product.
const infracostQuery = `query($productFilter: ProductFilter!, $priceFilter: PriceFilter) {
  products(filter: $productFilter) { prices(filter: $priceFilter) { priceHash USD } } }`

// infracostAsk is one question of a batch.
type infracostAsk struct {
	Query     string             `json:"query"`
	Variables infracostVariables `json:"variables"`
}

type infracostVariables struct {
	ProductFilter infracostProduct  `json:"productFilter"`
	PriceFilter   map[string]string `json:"priceFilter"`
}

type infracostProduct struct {
	VendorName       string               `json:"vendorName"`
	Service          string               `json:"service"`
	ProductFamily    string               `json:"productFamily"`
	Region           string               `json:"region"`
	AttributeFilters []infracostAttribute `json:"attributeFilters,omitempty"`
}

type infracostAttribute struct {
	Key   string `json:"key"`
	Value string `json:"value,omitempty"`
	Regex string `json:"value_regex,omitempty"`
}

// infracostAnswer is the answer to one question.
type infracostAnswer struct {
	Data struct {
		Products []struct {
			Prices []struct {
				PriceHash string      `json:"priceHash"`
				USD       json.Number `json:"USD"` // a text
			} `json:"prices"`
		} `json:"products"`
	} `json:"data"`
	Errors []struct {
		Message string `json:"message"`
	} `json:"errors"`
}

// Has implements Source.
func (i infracost) Has(k price.Key) bool {
	_, _, ok := infracostAskOf(k)
	return ok && k.Region != price.AnyRegion && k.Region != ""
}

// Fetch implements Source. It asks in batches, whose answers have the order of the questions.
func (i infracost) Fetch(ctx context.Context, keys []price.Key) (*price.Table, error) {
	const batch = 1000
	table := price.NewTable(i.name)
	for some := range slices.Chunk(keys, batch) {
		asks := make([]infracostAsk, len(some))
		units := make([]price.Unit, len(some))
		for n, k := range some {
			asks[n].Variables, units[n], _ = infracostAskOf(k)
			asks[n].Query = infracostQuery
		}
		body, err := json.Marshal(asks)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", i.name, err)
		}
		header := map[string]string{"Content-Type": "application/json", "X-Api-Key": i.key}
		if strings.HasPrefix(i.key, "ics_") { // a service account's
			header = map[string]string{"Content-Type": "application/json", "Authorization": "Bearer " + i.key}
		}
		answers, err := page[[]infracostAnswer](ctx, i.fetcher, request{method: http.MethodPost, url: i.base + "/graphql", header: header, body: string(body)})
		if err != nil {
			return nil, err
		}
		if len(answers) != len(some) {
			return nil, fmt.Errorf("%s: %d answers to %d questions", i.name, len(answers), len(some))
		}
		for n, k := range some {
			if len(answers[n].Errors) > 0 {
				return nil, errors.New(i.name + ": it refuses a question")
			}
			if amount, ok := answers[n].least(); ok {
				table.Set(k, price.Price{Amount: amount, Unit: units[n], Currency: "USD", Origin: i.origin()})
			}
		}
	}
	return table, nil
}

// least returns the lowest price that is not zero, as Infracost takes it: with equal ones,
// that of the first hash.
func (a infracostAnswer) least() (money.Amount, bool) {
	type found struct {
		amount money.Amount
		hash   string
	}
	var all []found
	for _, product := range a.Data.Products {
		for _, p := range product.Prices {
			if amount, err := money.Parse(p.USD.String()); err == nil && amount.Sign() > 0 {
				all = append(all, found{amount, p.PriceHash})
			}
		}
	}
	if len(all) == 0 {
		return money.Amount{}, false
	}
	best := slices.MinFunc(all, func(a, b found) int { return cmp.Or(a.amount.Cmp(b.amount), strings.Compare(a.hash, b.hash)) })
	return best.amount, true
}

// infracostAskOf returns the question of a key, and what its answer is for.
func infracostAskOf(k price.Key) (infracostVariables, price.Unit, bool) {
	switch k.Cloud {
	case price.AWS:
		return infracostAWS(k)
	case price.Azure:
		return infracostAzure(k)
	case price.GCP, price.DigitalOcean, price.Linode:
	}
	return infracostVariables{}, "", false
}

func infracostAWS(k price.Key) (v infracostVariables, unit price.Unit, ok bool) {
	offer, ok := awsOfferOf(k)
	if !ok || offer.service == "AmazonVPC" {
		return v, "", false
	}
	family := offer.family
	if k.Kind == price.Node {
		family = "Compute Instance"
	}
	v = infracostVariables{
		ProductFilter: infracostProduct{VendorName: "aws", Service: offer.service, ProductFamily: family, Region: k.Region},
		PriceFilter:   map[string]string{"purchaseOption": "on_demand"},
	}
	for _, name := range slices.Sorted(maps.Keys(offer.is)) {
		v.ProductFilter.AttributeFilters = append(v.ProductFilter.AttributeFilters, infracostAttribute{Key: name, Value: offer.is[name]})
	}
	if offer.usage != "" {
		v.ProductFilter.AttributeFilters = append(v.ProductFilter.AttributeFilters, infracostAttribute{Key: "usagetype", Regex: "/" + offer.usage + "/"})
	}
	return v, offer.unit, true
}

func infracostAzure(k price.Key) (v infracostVariables, unit price.Unit, ok bool) {
	v = infracostVariables{
		ProductFilter: infracostProduct{VendorName: "azure", Region: k.Region},
		PriceFilter:   map[string]string{"purchaseOption": "Consumption"},
	}
	p := &v.ProductFilter
	switch {
	case k.Kind == price.Node && !strings.Contains(k.SKU, " "):
		p.Service, p.ProductFamily = "Virtual Machines", "Compute"
		p.AttributeFilters = []infracostAttribute{
			{Key: "armSkuName", Value: k.SKU},
			{Key: "meterName", Regex: "/^(?!.*(Expired|Free)$).*$/i"},
			{Key: "skuName", Regex: "/^(?!.*(Low Priority|Spot)$).*$/i"},
			{Key: "productName", Regex: "/Series( Linux)?$/i"},
		}
		v.PriceFilter["unit"] = "1 Hour"
		return v, price.Hour, true
	case k.Kind == price.ControlPlane && k.SKU == "standard":
		p.Service, p.ProductFamily = "Azure Kubernetes Service", "Compute"
		p.AttributeFilters = []infracostAttribute{{Key: "meterName", Value: "Standard Uptime SLA"}}
		return v, price.Hour, true
	case k.Kind == price.NATGateway && k.SKU == "nat-gateway":
		p.Service, p.ProductFamily = "NAT Gateway", "Networking"
		p.AttributeFilters = []infracostAttribute{{Key: "meterName", Value: "Standard Gateway"}}
		return v, price.Hour, true
	}
	return v, "", false
}
