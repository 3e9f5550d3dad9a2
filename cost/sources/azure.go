package sources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/cost/money"
	"github.com/holdfast-dev/holdfast/cost/price"
)

// AzureURL is where Azure publishes its retail prices, for everybody.
const AzureURL = "https://prices.azure.com/api/retail/prices"

// azure is Azure's retail prices.
type azure struct {
	fetcher
	base string
}

// NewAzure returns Azure's retail prices.
func NewAzure(base string, o Options) Source {
	return azure{newFetcher(o, "Azure retail prices"), base}
}

// Has implements Source. Regions of sovereign clouds are not among the prices.
func (a azure) Has(k price.Key) bool {
	sovereign := strings.HasPrefix(k.Region, "china") || strings.HasPrefix(k.Region, "usgov") || strings.HasPrefix(k.Region, "usdod")
	return k.Cloud == price.Azure && k.Region != price.AnyRegion && k.Region != "" && !sovereign && azureFilter(k) != ""
}

// azureDisks are the products of managed disks, by the letter that their sizes begin with.
var azureDisks = map[byte]string{ //nolint:gochecknoglobals // a constant table
	'P': "Premium SSD Managed Disks", 'E': "Standard SSD Managed Disks", 'S': "Standard HDD Managed Disks",
}

// azureFilter selects the items of a key, in OData. Its values are case-sensitive.
func azureFilter(k price.Key) string {
	if k.SKU == "" || strings.ContainsAny(k.SKU+k.Region, "'\"\\") {
		return ""
	}
	what := ""
	switch k.Kind {
	case price.Node:
		if !strings.HasPrefix(k.SKU, "Standard_") || strings.Contains(k.SKU, " ") {
			return ""
		}
		what = fmt.Sprintf("serviceName eq 'Virtual Machines' and armSkuName eq '%s'", k.SKU)
	case price.ControlPlane:
		if k.SKU == "standard" {
			what = "serviceName eq 'Azure Kubernetes Service' and meterName eq 'Standard Uptime SLA'"
		}
	case price.NATGateway:
		if meter := map[string]string{"nat-gateway": "Standard Gateway", "data-processed": "Standard Data Processed"}[k.SKU]; meter != "" {
			what = fmt.Sprintf("serviceName eq 'NAT Gateway' and meterName eq '%s'", meter)
		}
	case price.Disk:
		tier, redundancy, ok := strings.Cut(k.SKU, "-")
		if product := azureDisks[tier[0]]; ok && product != "" {
			what = fmt.Sprintf("serviceName eq 'Storage' and productName eq '%s' and skuName eq '%s %s'", product, tier, redundancy)
		}
	case price.Address:
		if k.SKU == "standard-static-regional" {
			what = "serviceName eq 'Virtual Network' and productName eq 'IP Addresses' and meterName eq 'Standard IPv4 Static Public IP'"
		}
	default:
	}
	if what == "" {
		return ""
	}
	return what + fmt.Sprintf(" and armRegionName eq '%s' and priceType eq 'Consumption'", k.Region)
}

// azurePage is one page of an answer.
type azurePage struct {
	BillingCurrency string
	Items           []azureItem
	NextPageLink    string
	Count           int
}

type azureItem struct {
	CurrencyCode     string      `json:"currencyCode"`
	TierMinimumUnits json.Number `json:"tierMinimumUnits"`
	RetailPrice      json.Number `json:"retailPrice"`
	ArmRegionName    string      `json:"armRegionName"`
	ArmSkuName       string      `json:"armSkuName"`
	MeterName        string      `json:"meterName"`
	SkuName          string      `json:"skuName"`
	ProductName      string      `json:"productName"`
	UnitOfMeasure    string      `json:"unitOfMeasure"`
	Type             string      `json:"type"`
	EffectiveEnd     string      `json:"effectiveEndDate"`
	Primary          *bool       `json:"isPrimaryMeterRegion"`
}

// Fetch implements Source.
func (a azure) Fetch(ctx context.Context, keys []price.Key) (*price.Table, error) {
	table := price.NewTable(a.name)
	for _, k := range keys {
		items, err := a.items(ctx, azureFilter(k))
		if err != nil {
			return nil, err
		}
		if p, ok := a.choose(k, items); ok {
			table.Set(k, p)
		}
	}
	return table, nil
}

// items reads all pages. The link to the next one has been missing although there was one:
// a full page is followed by what comes behind it, until that is empty.
func (a azure) items(ctx context.Context, filter string) (all []azureItem, err error) {
	query := url.Values{"api-version": {"2023-01-01-preview"}, "$filter": {filter}}
	next := a.base + "?" + query.Encode()
	for range maxPages {
		page, err := page[azurePage](ctx, a.fetcher, request{method: http.MethodGet, url: next})
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		full := page.Count == 100 || page.Count == 1000
		switch {
		case page.NextPageLink != "" && !sameHost(page.NextPageLink, a.base):
			return nil, errors.New(a.name + ": the next page is on another host")
		case page.NextPageLink != "":
			next = page.NextPageLink
		case full && len(page.Items) > 0:
			query.Set("$skip", strconv.Itoa(len(all)))
			next = a.base + "?" + query.Encode()
		default:
			return all, nil
		}
	}
	return nil, fmt.Errorf("%s: more than %d pages", a.name, maxPages)
}

// azureUnits are the units of Azure, in ours.
var azureUnits = map[string]price.Unit{ //nolint:gochecknoglobals // a constant table
	"1 Hour": price.Hour, "1/Month": price.Month, "1 GB": price.GB,
}

// choose returns the price among the items of a key. The same machine is there with Windows,
// at lower priority and on the spot market: these are other prices.
func (a azure) choose(k price.Key, items []azureItem) (price.Price, bool) {
	found := make(map[string]price.Price)
	for _, i := range items {
		other := strings.HasSuffix(i.ProductName, " Windows") || strings.HasSuffix(i.MeterName, " Low Priority") || strings.HasSuffix(i.SkuName, " Spot") ||
			strings.HasSuffix(i.MeterName, " Expired") || strings.HasSuffix(i.MeterName, " Free")
		if other || i.Type != "Consumption" || i.EffectiveEnd != "" || i.ArmRegionName != k.Region || k.Kind == price.Node && i.ArmSkuName != k.SKU {
			continue
		}
		if k.Kind == price.Disk && !strings.HasSuffix(i.MeterName, "Disk") && !strings.HasSuffix(i.MeterName, "Disks") {
			continue // its operations, or a mount
		}
		amount, err := money.Parse(i.RetailPrice.String())
		tier, tierErr := money.Parse(i.TierMinimumUnits.String())
		unit, known := azureUnits[i.UnitOfMeasure]
		if err != nil || amount.Sign() <= 0 || !known || tierErr == nil && !tier.IsZero() || i.CurrencyCode == "" {
			continue
		}
		if _, twice := found[amount.String()]; !twice || i.Primary == nil || *i.Primary {
			found[amount.String()] = price.Price{Amount: amount, Unit: unit, Currency: i.CurrencyCode, Origin: a.origin()}
		}
	}
	if len(found) != 1 { // several different ones: nothing says which of them it is
		return price.Price{}, false
	}
	return found[slices.Collect(maps.Keys(found))[0]], true
}
