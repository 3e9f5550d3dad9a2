package sources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast-dev/holdfast/cost/money"
	"github.com/holdfast-dev/holdfast/cost/price"
)

// DigitalOceanURL is the API of DigitalOcean.
const DigitalOceanURL = "https://api.digitalocean.com/v2"

// digitalOcean is the sizes of DigitalOcean. Load balancers, volumes and highly available
// control planes are not among them.
type digitalOcean struct {
	fetcher
	base, token string
}

// NewDigitalOcean returns the sizes of DigitalOcean, for a token that may read them.
func NewDigitalOcean(base, token string, o Options) Source {
	return digitalOcean{newFetcher(o, "DigitalOcean sizes"), base, token}
}

// Has implements Source.
func (d digitalOcean) Has(k price.Key) bool {
	return k.Cloud == price.DigitalOcean && k.Kind == price.Node && d.token != ""
}

// sizesPage is one page of sizes.
type sizesPage struct {
	Sizes []struct {
		Slug    string      `json:"slug"`
		Monthly json.Number `json:"price_monthly"`
	} `json:"sizes"`
	Links struct {
		Pages struct {
			Next string `json:"next"`
		} `json:"pages"`
	} `json:"links"`
}

// Fetch implements Source: it reads all sizes, which cost the same in all regions. The
// month's price counts: an hour's is that divided by 672, and a floating-point number.
func (d digitalOcean) Fetch(ctx context.Context, _ []price.Key) (*price.Table, error) {
	table := price.NewTable(d.name)
	next := d.base + "/sizes?per_page=200"
	for range maxPages {
		page, err := page[sizesPage](ctx, d.fetcher, request{
			method: http.MethodGet, url: next, header: map[string]string{"Authorization": "Bearer " + d.token},
		})
		if err != nil {
			return nil, err
		}
		for _, size := range page.Sizes {
			monthly, err := money.Parse(size.Monthly.String())
			if err != nil || monthly.Sign() <= 0 {
				continue
			}
			table.Set(price.Key{Cloud: price.DigitalOcean, Kind: price.Node, SKU: size.Slug, Region: price.AnyRegion},
				price.Price{Amount: monthly.Round(2), Unit: price.Month, Currency: "USD", Origin: d.origin()})
		}
		next = page.Links.Pages.Next
		if next == "" {
			return table, nil
		}
		if !sameHost(next, d.base) {
			return nil, errors.New(d.name + ": the next page is on another host")
		}
	}
	return nil, fmt.Errorf("%s: more than %d pages", d.name, maxPages)
}
