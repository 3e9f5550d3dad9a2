package sources

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/holdfast-dev/holdfast/cost/money"
	"github.com/holdfast-dev/holdfast/cost/price"
)

// LinodeURL is the API of Linode, which tells everybody its types and their prices.
const LinodeURL = "https://api.linode.com/v4"

// linode is the types of Linode.
type linode struct {
	fetcher
	base string
}

// NewLinode returns the types of Linode.
func NewLinode(base string, o Options) Source {
	return linode{newFetcher(o, "Linode types"), base}
}

// linodePaths are where the types of each kind are listed.
var linodePaths = map[price.Kind]string{ //nolint:gochecknoglobals // a constant table
	price.Node: "/linode/types", price.ControlPlane: "/lke/types", price.LoadBalancer: "/nodebalancers/types", price.Disk: "/volumes/types",
}

// Has implements Source.
func (l linode) Has(k price.Key) bool { return k.Cloud == price.Linode && linodePaths[k.Kind] != "" }

// linodePage is one page of types.
type linodePage struct {
	Data []struct {
		ID           string       `json:"id"`
		Price        linodePrice  `json:"price"`
		RegionPrices []linodeArea `json:"region_prices"`
	} `json:"data"`
	Pages int `json:"pages"`
}

type linodePrice struct {
	Hourly  json.Number  `json:"hourly"`
	Monthly *json.Number `json:"monthly"`
}

type linodeArea struct {
	ID string `json:"id"`
	linodePrice
}

// Fetch implements Source: it reads all types of the kinds that are asked for. A region that
// has a price of its own does not have the general one.
func (l linode) Fetch(ctx context.Context, keys []price.Key) (*price.Table, error) {
	table := price.NewTable(l.name)
	done := make(map[price.Kind]bool)
	for _, k := range keys {
		if done[k.Kind] {
			continue
		}
		done[k.Kind] = true
		for number, pages := 1, 1; number <= pages; number++ {
			at := fmt.Sprintf("%s%s?page=%d&page_size=500", l.base, linodePaths[k.Kind], number)
			page, err := page[linodePage](ctx, l.fetcher, request{method: http.MethodGet, url: at})
			if err != nil {
				return nil, err
			}
			if pages = page.Pages; pages > maxPages {
				return nil, fmt.Errorf("%s: more than %d pages", l.name, maxPages)
			}
			for _, t := range page.Data {
				k := price.Key{Cloud: price.Linode, Kind: k.Kind, SKU: t.ID, Region: price.AnyRegion}
				l.add(table, k, t.Price)
				for _, area := range t.RegionPrices {
					k.Region = area.ID
					l.add(table, k, area.linodePrice)
				}
			}
		}
	}
	return table, nil
}

// add adds a price. The monthly one is the most that a month costs; of volumes it is that of
// a GB.
func (l linode) add(table *price.Table, k price.Key, p linodePrice) {
	hourly, err := money.Parse(p.Hourly.String())
	if err != nil {
		return
	}
	out := price.Price{Amount: hourly, Unit: price.Hour, Currency: "USD", Origin: l.origin()}
	if p.Monthly != nil {
		monthly, err := money.Parse(p.Monthly.String())
		if err != nil {
			return
		}
		out.Cap = &monthly
		if k.Kind == price.Disk {
			out = price.Price{Amount: monthly, Unit: price.GBMonth, Currency: "USD", Origin: l.origin()}
		}
	}
	if out.Amount.IsZero() && k.Kind != price.ControlPlane { // only a control plane is given away
		return
	}
	table.Set(k, out)
}
