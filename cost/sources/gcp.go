package sources

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/cost/money"
	"github.com/holdfast-dev/holdfast/cost/price"
)

// GCPURL is the Cloud Billing catalogue, which wants an API key.
const GCPURL = "https://cloudbilling.googleapis.com/v1"

// computeEngine is its service.
const computeEngine = "6F81-5844-456A"

// gcp is the Cloud Billing catalogue. It has no prices of machines: a machine costs what its
// processors and its memory cost.
type gcp struct {
	fetcher
	base, key string
}

// NewGCP returns the Cloud Billing catalogue, for an API key.
func NewGCP(base, key string, o Options) Source {
	return gcp{newFetcher(o, "Google Cloud Billing catalogue"), base, key}
}

// Has implements Source.
func (g gcp) Has(k price.Key) bool {
	if k.Cloud != price.GCP || g.key == "" || k.Region == price.AnyRegion || k.Region == "" {
		return false
	}
	_, _, machine := gcpShape(k.SKU)
	return k.Kind == price.Node && machine || k.Kind == price.Disk && gcpDisks[k.SKU] != ""
}

// gcpDisks are what the catalogue calls disks.
var gcpDisks = map[string]string{ //nolint:gochecknoglobals // a constant table
	"pd-standard": "Storage PD Capacity", "pd-balanced": "Balanced PD Capacity", "pd-ssd": "SSD backed PD Capacity",
}

// gcpPerCore is the memory of a processor, in hundredths of a GiB, of families whose machines
// are made of both.
var gcpPerCore = map[string]map[string]int64{ //nolint:gochecknoglobals // a constant table
	"e2": {"standard": 400, "highmem": 800, "highcpu": 100},
	"n1": {"standard": 375, "highmem": 650, "highcpu": 90},
	"n2": {"standard": 400, "highmem": 800, "highcpu": 100},
}

// gcpShared are machines with a part of a processor, in hundredths, and their memory in GiB.
var gcpShared = map[string][2]int64{ //nolint:gochecknoglobals // a constant table
	"e2-micro": {25, 1}, "e2-small": {50, 2}, "e2-medium": {100, 4},
}

// gcpShape returns the processors and the GiB of a machine type.
func gcpShape(sku string) (cores, memory money.Amount, ok bool) {
	hundredth := money.MustParse("0.01")
	if shared, ok := gcpShared[sku]; ok {
		return money.Of(shared[0]).Mul(hundredth), money.Of(shared[1]), true
	}
	parts := strings.Split(sku, "-")
	if len(parts) != 3 {
		return cores, memory, false
	}
	perCore, known := gcpPerCore[parts[0]][parts[1]]
	n, err := strconv.ParseInt(parts[2], 10, 64)
	if !known || err != nil || n < 1 || n > 1000 {
		return cores, memory, false
	}
	return money.Of(n), money.Of(n * perCore).Mul(hundredth), true
}

// gcpSKU is an entry of the catalogue.
type gcpSKU struct {
	Description    string   `json:"description"`
	ServiceRegions []string `json:"serviceRegions"`
	Category       struct {
		UsageType string `json:"usageType"`
	} `json:"category"`
	PricingInfo []struct {
		PricingExpression struct {
			UsageUnit   string `json:"usageUnit"`
			TieredRates []struct {
				StartUsageAmount json.Number `json:"startUsageAmount"`
				UnitPrice        struct {
					CurrencyCode string      `json:"currencyCode"`
					Units        json.Number `json:"units"` // a text: "0"
					Nanos        int64       `json:"nanos"`
				} `json:"unitPrice"`
			} `json:"tieredRates"`
		} `json:"pricingExpression"`
	} `json:"pricingInfo"`
}

// gcpPage is one page of the catalogue.
type gcpPage struct {
	SKUs          []gcpSKU `json:"skus"`
	NextPageToken string   `json:"nextPageToken"`
}

// Fetch implements Source. The key goes into a header, so that no error has it in an
// address.
func (g gcp) Fetch(ctx context.Context, keys []price.Key) (*price.Table, error) {
	rates := gcpRates{prices: make(map[string]price.Price), twice: make(map[string]bool)}
	query := url.Values{"currencyCode": {"USD"}, "pageSize": {"5000"}}
	for range maxPages {
		at := fmt.Sprintf("%s/services/%s/skus?%s", g.base, computeEngine, query.Encode())
		page, err := page[gcpPage](ctx, g.fetcher, request{method: http.MethodGet, url: at, header: map[string]string{"X-Goog-Api-Key": g.key}})
		if err != nil {
			return nil, err
		}
		for _, sku := range page.SKUs {
			rates.take(sku, g.origin())
		}
		if page.NextPageToken == "" {
			return rates.table(g.name, keys), nil
		}
		query.Set("pageToken", page.NextPageToken)
	}
	return nil, fmt.Errorf("%s: more than %d pages", g.name, maxPages)
}

// gcpRates are unit prices by what they are for and the region.
type gcpRates struct {
	prices map[string]price.Price
	twice  map[string]bool // there are several different ones
}

// gcpParts finds what is billed by the hour in a description: "N2 Instance Core running in
// Belgium". Custom machines, those of sole tenants and the like have more words.
var gcpParts = regexp.MustCompile(`^(E2|N2|N1 Predefined) Instance (Core|Ram) running in `)

// take keeps a rate, if it is one of those that are wanted: on demand, and not zero.
func (r gcpRates) take(sku gcpSKU, from price.Origin) {
	if sku.Category.UsageType != "OnDemand" || len(sku.PricingInfo) == 0 {
		return
	}
	what := ""
	if m := gcpParts.FindStringSubmatch(sku.Description); m != nil {
		what = strings.ToLower(strings.Fields(m[1])[0] + " " + m[2])
	}
	for kind, description := range gcpDisks {
		if sku.Description == description || strings.HasPrefix(sku.Description, description+" in ") {
			what = kind
		}
	}
	if what == "" {
		return
	}
	// The last entry is in force.
	expression := sku.PricingInfo[len(sku.PricingInfo)-1].PricingExpression
	for _, rate := range expression.TieredRates {
		units, err := rate.UnitPrice.Units.Int64()
		amount := money.Nanos(units, rate.UnitPrice.Nanos)
		if err != nil || amount.Sign() <= 0 { // what is free of charge at first
			continue
		}
		p := price.Price{Amount: amount, Currency: rate.UnitPrice.CurrencyCode, Origin: from}
		for _, region := range sku.ServiceRegions {
			at := what + " " + region
			if old, ok := r.prices[at]; ok && old.Amount.Cmp(amount) != 0 {
				r.twice[at] = true
			}
			r.prices[at] = p
		}
		break
	}
}

// of returns a rate, if there is just one.
func (r gcpRates) of(what, region string) (price.Price, bool) {
	at := what + " " + region
	p, ok := r.prices[at]
	return p, ok && !r.twice[at]
}

// table returns the prices of keys.
func (r gcpRates) table(name string, keys []price.Key) *price.Table {
	table := price.NewTable(name)
	for _, k := range keys {
		if k.Kind == price.Disk {
			if p, ok := r.of(k.SKU, k.Region); ok {
				p.Unit = price.GBMonth
				table.Set(k, p)
			}
			continue
		}
		family, _, _ := strings.Cut(k.SKU, "-")
		core, haveCore := r.of(family+" core", k.Region)
		ram, haveRAM := r.of(family+" ram", k.Region)
		cores, memory, ok := gcpShape(k.SKU)
		if ok && haveCore && haveRAM && core.Currency == ram.Currency {
			core.Amount, core.Unit = core.Amount.Mul(cores).Add(ram.Amount.Mul(memory)), price.Hour
			table.Set(k, core)
		}
	}
	return table
}
