package sources_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/cost/price"
	"github.com/holdfast-dev/holdfast/cost/sources"
)

// serve answers requests, and returns the options to ask it with.
func serve(t *testing.T, answer http.HandlerFunc) (string, sources.Options) {
	t.Helper()
	srv := httptest.NewServer(answer)
	t.Cleanup(srv.Close)
	return srv.URL, sources.Options{
		Client: srv.Client(), FirstWait: time.Millisecond,
		Now: func() time.Time { return time.Date(2026, 11, 30, 23, 59, 0, 0, time.FixedZone("", -3600)) },
	}
}

// fetched is what a source has of keys: "sku in region: amount currency unit (cap)".
func fetched(t *testing.T, s sources.Source, keys ...price.Key) map[string]string {
	t.Helper()
	table, err := s.Fetch(t.Context(), keys)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, k := range table.Keys() {
		p := table.Lookup(k)[0]
		text := p.Amount.String() + " " + p.Currency + " " + string(p.Unit)
		if p.Cap != nil {
			text += " at most " + p.Cap.String()
		}
		if p.Origin.AsOf != "2026-12-01" || p.Origin.Source != s.Name() {
			t.Errorf("the origin of %s is %+v", k, p.Origin)
		}
		all[k.String()] = text
	}
	return all
}

func want(t *testing.T, got, want map[string]string) {
	t.Helper()
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s: %q, want %q", k, got[k], v)
		}
	}
	for k, v := range got {
		if _, ok := want[k]; !ok {
			t.Errorf("%s: %q, want nothing", k, v)
		}
	}
}

// azureItem is an item of Azure's answers, with some fields replaced.
func azureItem(more string) string {
	item := `{"currencyCode":"USD","tierMinimumUnits":0.0,"retailPrice":0.115,"unitPrice":0.115,"armRegionName":"westeurope","location":"EU West",` +
		`"effectiveStartDate":"2021-11-01T00:00:00Z","meterId":"m","meterName":"D2s v5","productId":"p","skuId":"s","productName":"Virtual Machines Dsv5 Series",` +
		`"skuName":"D2s v5","serviceName":"Virtual Machines","serviceId":"x","serviceFamily":"Compute","unitOfMeasure":"1 Hour","type":"Consumption",` +
		`"isPrimaryMeterRegion":true,"armSkuName":"Standard_D2s_v5"}`
	for change := range strings.SplitSeq(more, ";") {
		if key, value, ok := strings.Cut(change, "="); ok {
			from := strings.Index(item, `"`+key+`":`)
			if from < 0 {
				item = strings.TrimSuffix(item, "}") + `,"` + key + `":` + value + "}"
				continue
			}
			rest := item[from+len(key)+3:]
			end := strings.Index(rest, `,"`)
			if end < 0 {
				end = len(rest) - 1
			}
			item = item[:from+len(key)+3] + value + rest[end:]
		}
	}
	return item
}

func azurePage(next string, count int, items ...string) string {
	return fmt.Sprintf(`{"BillingCurrency":"USD","CustomerEntityId":"Default","CustomerEntityType":"Retail","Items":[%s],"NextPageLink":%s,"Count":%d}`,
		strings.Join(items, ","), next, count)
}

var vm = price.Key{Cloud: price.Azure, Region: "westeurope", Kind: price.Node, SKU: "Standard_D2s_v5"} //nolint:gochecknoglobals // a constant

// The same machine is there under many prices, of which one is meant.
func TestAzureChooses(t *testing.T) {
	t.Parallel()
	others := []string{
		azureItem(`productName="Virtual Machines Dsv5 Series Windows";retailPrice=0.207`),
		azureItem(`skuName="D2s v5 Spot";meterName="D2s v5 Spot";retailPrice=0.02`),
		azureItem(`skuName="D2s v5 Low Priority";meterName="D2s v5 Low Priority";retailPrice=0.023`),
		azureItem(`type="Reservation";reservationTerm="1 Year";retailPrice=600.0`),
		azureItem(`type="DevTestConsumption";retailPrice=0.1`),
		azureItem(`armRegionName="northeurope";retailPrice=0.111`),
		azureItem(`armSkuName="standard_d2s_v5";retailPrice=0.112`), // another case: another SKU
		azureItem(`effectiveEndDate="2022-01-01T00:00:00Z";retailPrice=0.3`),
		azureItem(`tierMinimumUnits=1000.0;retailPrice=0.05`),
		azureItem(`unitOfMeasure="100 Hours";retailPrice=11.5`),
		azureItem(`retailPrice=0.0`),
	}
	for name, test := range map[string]struct {
		items []string
		want  map[string]string
	}{
		"the one among others":         {append(others, azureItem("")), map[string]string{vm.String(): "0.115 USD hour"}},
		"only others":                  {others, nil},
		"none":                         {nil, nil},
		"two, and nobody says which":   {[]string{azureItem(""), azureItem("retailPrice=0.116")}, nil},
		"the same one in two meters":   {[]string{azureItem(""), azureItem("isPrimaryMeterRegion=false")}, map[string]string{vm.String(): "0.115 USD hour"}},
		"as small numbers are written": {[]string{azureItem("retailPrice=1.5e-05")}, map[string]string{vm.String(): "0.000015 USD hour"}},
		"in another currency":          {[]string{azureItem(`currencyCode="EUR"`)}, map[string]string{vm.String(): "0.115 EUR hour"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, o := serve(t, func(w http.ResponseWriter, r *http.Request) {
				filter := r.URL.Query().Get("$filter")
				if !strings.Contains(filter, "armSkuName eq 'Standard_D2s_v5'") || !strings.Contains(filter, "armRegionName eq 'westeurope'") || !strings.Contains(filter, "priceType eq 'Consumption'") {
					t.Errorf("the filter is %s", filter)
				}
				fmt.Fprint(w, azurePage("null", len(test.items), test.items...))
			})
			want(t, fetched(t, sources.NewAzure(base, o), vm), test.want)
		})
	}
}

// Pages: by their links, and without them where a page is full.
func TestAzurePages(t *testing.T) {
	t.Parallel()
	filler := make([]string, 100)
	for i := range filler {
		filler[i] = azureItem(`armRegionName="eastus"`)
	}
	var base string
	base, o := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("$skip") {
		case "":
			fmt.Fprint(w, azurePage(`""`, 100, filler...)) // the link is missing
		case "100":
			fmt.Fprint(w, azurePage(`"`+base+`?$skip=200"`, 100, filler...))
		case "200":
			fmt.Fprint(w, azurePage("null", 1, azureItem("")))
		default:
			t.Errorf("asked for %s", r.URL)
		}
	})
	want(t, fetched(t, sources.NewAzure(base, o), vm), map[string]string{vm.String(): "0.115 USD hour"})

	base, o = serve(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, azurePage(`"https://elsewhere.example.com/"`, 1, azureItem("")))
	})
	if _, err := sources.NewAzure(base, o).Fetch(t.Context(), []price.Key{vm}); err == nil || !strings.Contains(err.Error(), "another host") {
		t.Errorf("a link to another host: %v", err)
	}
}

func TestAzureHas(t *testing.T) {
	t.Parallel()
	s := sources.NewAzure("http://localhost", sources.Options{})
	for k, has := range map[price.Key]bool{
		vm: true,
		{Cloud: price.Azure, Region: "chinaeast2", Kind: price.Node, SKU: "Standard_D2s_v5"}:            false, // not published here
		{Cloud: price.Azure, Region: "usgovvirginia", Kind: price.Node, SKU: "Standard_D2s_v5"}:         false,
		{Cloud: price.Azure, Region: "westeurope", Kind: price.Node, SKU: "Standard_D2s_v5' or 1 eq 1"}: false,
		{Cloud: price.Azure, Region: "westeurope' or '", Kind: price.Node, SKU: "Standard_D2s_v5"}:      false,
		{Cloud: price.Azure, Region: "westeurope", Kind: price.Disk, SKU: "P10-LRS"}:                    true,
		{Cloud: price.Azure, Region: "westeurope", Kind: price.Disk, SKU: ""}:                           false,
		{Cloud: price.Azure, Region: "westeurope", Kind: price.Node, SKU: "Standard_D2s_v5 (Windows)"}:  false,
		{Cloud: price.AWS, Region: "westeurope", Kind: price.Node, SKU: "Standard_D2s_v5"}:              false,
		{Cloud: price.Azure, Region: price.AnyRegion, Kind: price.Node, SKU: "Standard_D2s_v5"}:         false,
		{Cloud: price.Azure, Region: "westeurope", Kind: price.LoadBalancer, SKU: "standard-rule"}:      false,
	} {
		if s.Has(k) != has {
			t.Errorf("Has(%+v) is %t", k, !has)
		}
	}
}

// Regions with their own prices, months with a limit, pages.
func TestLinode(t *testing.T) {
	t.Parallel()
	base, o := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the types are for everybody")
		}
		switch r.URL.Path + "?" + r.URL.Query().Get("page") {
		case "/linode/types?1":
			fmt.Fprint(w, `{"data":[{"id":"g6-nanode-1","label":"Nanode 1GB","price":{"hourly":0.0075,"monthly":5.0},"region_prices":[{"id":"id-cgk","hourly":0.009,"monthly":6.0}],`+
				`"addons":{"backups":{"price":{"hourly":0.003,"monthly":2.0}}},"memory":1024,"successor":null}],"page":1,"pages":2,"results":2}`)
		case "/linode/types?2":
			fmt.Fprint(w, `{"data":[{"id":"g6-standard-1","price":{"hourly":0.018,"monthly":12.0},"region_prices":[]},{"id":"odd","price":{"hourly":0,"monthly":0},"region_prices":[]}],"page":2,"pages":2,"results":2}`)
		case "/lke/types?1":
			fmt.Fprint(w, `{"data":[{"id":"lke-sa","price":{"hourly":0.0,"monthly":0.0},"region_prices":[]},{"id":"lke-ha","price":{"hourly":0.09,"monthly":60.0},"region_prices":[{"id":"id-cgk","hourly":0.108,"monthly":72.0}]}],"page":1,"pages":1,"results":2}`)
		case "/volumes/types?1":
			fmt.Fprint(w, `{"data":[{"id":"volume","price":{"hourly":0.00015,"monthly":0.1},"region_prices":[]}],"page":1,"pages":1,"results":1}`)
		default:
			t.Errorf("asked for %s", r.URL)
		}
	})
	node := price.Key{Cloud: price.Linode, Kind: price.Node, SKU: "g6-nanode-1", Region: "eu-central"}
	got := fetched(t, sources.NewLinode(base, o), node, price.Key{Cloud: price.Linode, Kind: price.Node, SKU: "another"},
		price.Key{Cloud: price.Linode, Kind: price.ControlPlane, SKU: "lke-ha"}, price.Key{Cloud: price.Linode, Kind: price.Disk, SKU: "volume"})
	want(t, got, map[string]string{
		"g6-nanode-1": "0.0075 USD hour at most 5", "g6-nanode-1 in id-cgk": "0.009 USD hour at most 6", "g6-standard-1": "0.018 USD hour at most 12",
		"lke-sa": "0 USD hour at most 0", "lke-ha": "0.09 USD hour at most 60", "lke-ha in id-cgk": "0.108 USD hour at most 72", "volume": "0.1 USD GB-month",
	})
}

// A month's price counts, and the noise of floating-point numbers does not.
func TestDigitalOcean(t *testing.T) {
	t.Parallel()
	var base string
	base, o := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret-token" {
			t.Error("the token is missing")
		}
		if r.URL.Query().Get("page") == "" {
			fmt.Fprintf(w, `{"sizes":[{"slug":"s-1vcpu-1gb","memory":1024,"price_monthly":5.0,"price_hourly":0.00743999984115362,"regions":["nyc1"],"available":true}],"links":{"pages":{"next":"%s/sizes?page=2"}},"meta":{"total":2}}`, base)
			return
		}
		fmt.Fprint(w, `{"sizes":[{"slug":"g-2vcpu-8gb","price_monthly":63.0000000001,"price_hourly":0.09375}],"links":{},"meta":{"total":2}}`)
	})
	s := sources.NewDigitalOcean(base, "secret-token", o)
	want(t, fetched(t, s, price.Key{Cloud: price.DigitalOcean, Kind: price.Node, SKU: "s-1vcpu-1gb"}),
		map[string]string{"s-1vcpu-1gb": "5 USD month", "g-2vcpu-8gb": "63 USD month"})
	if sources.NewDigitalOcean(base, "", o).Has(price.Key{Cloud: price.DigitalOcean, Kind: price.Node, SKU: "s-1vcpu-1gb"}) {
		t.Error("it is asked without a token")
	}
}

// awsProduct is an entry of the price list.
func awsProduct(sku, family, attributes string) string {
	return fmt.Sprintf(`"%s":{"sku":"%s","productFamily":"%s","attributes":{"servicecode":"AmazonEC2","locationType":"AWS Region","regionCode":"eu-west-1",%s}}`, sku, sku, family, attributes)
}

func awsPrice(sku, usd string) string {
	return fmt.Sprintf(`"%[1]s":{"%[1]s.JRTCKXETXF":{"offerTermCode":"JRTCKXETXF","sku":"%[1]s","effectiveDate":"2026-11-01T00:00:00Z","priceDimensions":{"%[1]s.JRTCKXETXF.6YS6EN2CT7":{"unit":"Hrs","beginRange":"0","endRange":"Inf","description":"d","appliesTo":[],"pricePerUnit":{"USD":"%[2]s"}}},"termAttributes":{}}}`, sku, usd)
}

const linux = `"instanceType":"m7i.large","tenancy":"Shared","operatingSystem":"Linux","preInstalledSw":"NA","capacitystatus":"Used","marketoption":"OnDemand"`

// The list of a region has the same machine hundreds of times.
func TestAWS(t *testing.T) {
	t.Parallel()
	products := strings.Join([]string{
		awsProduct("OK", "Compute Instance", linux),
		awsProduct("WIN", "Compute Instance", strings.Replace(linux, "Linux", "Windows", 1)),
		awsProduct("SQL", "Compute Instance", strings.Replace(linux, `"NA"`, `"SQL Std"`, 1)),
		awsProduct("DED", "Compute Instance", strings.Replace(linux, "Shared", "Dedicated", 1)),
		awsProduct("RES", "Compute Instance", strings.Replace(linux, "Used", "AllocatedCapacityReservation", 1)),
		awsProduct("BLK", "Compute Instance", strings.Replace(linux, "OnDemand", "CapacityBlock", 1)),
		awsProduct("OTHER", "Compute Instance", strings.Replace(linux, "m7i.large", "m7i.xlarge", 1)),
		`"ZONE":{"sku":"ZONE","productFamily":"Compute Instance","attributes":{"locationType":"AWS Local Zone","regionCode":"eu-west-1",` + linux + `}}`,
		awsProduct("GP3", "Storage", `"volumeApiName":"gp3","usagetype":"EU-EBS:VolumeUsage.gp3"`),
		awsProduct("SNAP", "Storage Snapshot", `"volumeApiName":"gp3","usagetype":"EU-EBS:SnapshotUsage"`),
		awsProduct("NAT", "NAT Gateway", `"usagetype":"EU-NatGateway-Hours"`),
		awsProduct("NATB", "NAT Gateway", `"usagetype":"EU-NatGateway-Bytes"`),
		awsProduct("NATP", "NAT Gateway", `"usagetype":"EU-NatGateway-Prvd-Hours"`),
	}, ",")
	terms := strings.Join([]string{
		awsPrice("OK", "0.1070000000"), awsPrice("WIN", "0.2"), awsPrice("SQL", "0.6"), awsPrice("DED", "0.12"), awsPrice("RES", "0.1071"), awsPrice("BLK", "0.05"),
		awsPrice("OTHER", "0.214"), awsPrice("ZONE", "0.15"), awsPrice("GP3", "0.0880000000"), awsPrice("SNAP", "0.05"), awsPrice("NAT", "0.048"), awsPrice("NATB", "0.048"), awsPrice("NATP", "0.05"),
	}, ",")
	// Huge lists are read as a stream: this part of it is never kept.
	reserved := `"Reserved":{"OK":{"x":{"priceDimensions":{"y":{"pricePerUnit":{"USD":"0.01"}}}}},"F":"` + strings.Repeat("x", 1<<20) + `"}`
	list := `{"formatVersion":"v1.0","disclaimer":"…","offerCode":"AmazonEC2","products":{` + products + `},"terms":{` + reserved + `,"OnDemand":{` + terms + `}},"attributesList":{}}`
	key := func(kind price.Kind, sku string) price.Key {
		return price.Key{Cloud: price.AWS, Region: "eu-west-1", Kind: kind, SKU: sku}
	}
	keys := []price.Key{key(price.Node, "m7i.large"), key(price.Disk, "gp3"), key(price.NATGateway, "nat-gateway"), key(price.NATGateway, "data-processed"), key(price.Node, "none.large")}
	base, o := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/offers/v1.0/aws/AmazonEC2/current/eu-west-1/index.json" {
			t.Errorf("asked for %s", r.URL)
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, list)
		_ = z.Close()
	})
	want(t, fetched(t, sources.NewAWS(base, o), keys...), map[string]string{
		"m7i.large in eu-west-1": "0.107 USD hour", "gp3 in eu-west-1": "0.088 USD GB-month",
		"nat-gateway in eu-west-1": "0.048 USD hour", "data-processed in eu-west-1": "0.048 USD GB",
	})

	// China has its own list, in its currency.
	china := strings.NewReplacer("eu-west-1", "cn-north-1", `"USD"`, `"CNY"`).Replace(list)
	base, o = serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/offers/v1.0/cn/") {
			t.Errorf("asked for %s", r.URL)
		}
		_, _ = io.WriteString(w, china)
	})
	want(t, fetched(t, sources.NewAWS(base, o), price.Key{Cloud: price.AWS, Region: "cn-north-1", Kind: price.Node, SKU: "m7i.large"}),
		map[string]string{"m7i.large in cn-north-1": "0.107 CNY hour"})

	for name, broken := range map[string]string{
		"cut off":                 list[:len(list)-len(terms)/2],
		"its prices are in front": `{"terms":{"OnDemand":{` + terms + `}},"products":{` + products + `}}`,
		"unexpected JSON":         `[]`,
	} {
		base, o := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, broken) })
		if table, err := sources.NewAWS(base, o).Fetch(t.Context(), keys); err == nil || table != nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func gcpSKU(description, region, usage, units string, nanos int) string {
	return fmt.Sprintf(`{"skuId":"x","description":"%s","serviceRegions":["%s"],"category":{"serviceDisplayName":"Compute Engine","resourceFamily":"Compute","resourceGroup":"N2Standard","usageType":"%s"},`+
		`"pricingInfo":[{"effectiveTime":"2026-11-01T00:00:00Z","pricingExpression":{"usageUnit":"h","displayQuantity":1,"tieredRates":[{"startUsageAmount":0,"unitPrice":{"currencyCode":"USD","units":"%s","nanos":%d}}]}}]}`,
		description, region, usage, units, nanos)
}

// A machine is its processors and its memory.
func TestGCP(t *testing.T) {
	t.Parallel()
	base, o := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Goog-Api-Key") != "secret-key" || strings.Contains(r.URL.String(), "secret-key") {
			t.Errorf("the key is not in its header alone: %s", r.URL)
		}
		if r.URL.Query().Get("pageToken") == "" {
			fmt.Fprintf(w, `{"skus":[%s],"nextPageToken":"next"}`, strings.Join([]string{
				gcpSKU("N2 Instance Core running in Belgium", "europe-west1", "OnDemand", "0", 34773000),
				gcpSKU("Spot Preemptible N2 Instance Core running in Belgium", "europe-west1", "Preemptible", "0", 8000000),
				gcpSKU("N2 Custom Instance Core running in Belgium", "europe-west1", "OnDemand", "0", 36512000),
				gcpSKU("N2 Sole Tenancy Instance Core running in Belgium", "europe-west1", "OnDemand", "0", 34773001),
				gcpSKU("Commitment v1: N2 Cpu in Belgium for 1 Year", "europe-west1", "Commit1Yr", "0", 21906000),
				gcpSKU("E2 Instance Core running in Belgium", "europe-west1", "OnDemand", "0", 23993000),
			}, ","))
			return
		}
		fmt.Fprintf(w, `{"skus":[%s],"nextPageToken":""}`, strings.Join([]string{
			gcpSKU("N2 Instance Ram running in Belgium", "europe-west1", "OnDemand", "0", 4661000),
			gcpSKU("E2 Instance Ram running in Belgium", "europe-west1", "OnDemand", "0", 3216000),
			gcpSKU("Balanced PD Capacity", "europe-west1", "OnDemand", "0", 100000000),
			gcpSKU("Storage PD Capacity in Belgium", "europe-west1", "OnDemand", "1", 0),
			gcpSKU("SSD backed PD Capacity", "europe-west1", "OnDemand", "0", 0), // zero
		}, ","))
	})
	key := func(kind price.Kind, sku string) price.Key {
		return price.Key{Cloud: price.GCP, Region: "europe-west1", Kind: kind, SKU: sku}
	}
	s := sources.NewGCP(base, "secret-key", o)
	keys := []price.Key{
		key(price.Node, "n2-standard-4"), key(price.Node, "e2-small"), key(price.Node, "e2-highcpu-8"),
		key(price.Disk, "pd-balanced"), key(price.Disk, "pd-standard"), key(price.Disk, "pd-ssd"),
		{Cloud: price.GCP, Region: "us-central1", Kind: price.Node, SKU: "n2-standard-4"},
	}
	want(t, fetched(t, s, keys...), map[string]string{
		"n2-standard-4 in europe-west1": "0.213668 USD hour",  // 4 × 0.034773 + 16 × 0.004661
		"e2-small in europe-west1":      "0.0184285 USD hour", // 0.5 × 0.023993 + 2 × 0.003216
		"e2-highcpu-8 in europe-west1":  "0.217672 USD hour",
		"pd-balanced in europe-west1":   "0.1 USD GB-month", "pd-standard in europe-west1": "1 USD GB-month",
	})
	for k, has := range map[price.Key]bool{
		key(price.Node, "n4-standard-4"): false, key(price.Node, "e2-custom-4-8192"): false, key(price.Node, "e2-standard-0"): false, key(price.Disk, "hyperdisk-balanced"): false,
	} {
		if s.Has(k) != has {
			t.Errorf("Has(%+v) is %t", k, !has)
		}
	}
}

// Batches, whose answers have the order of the questions, with prices as texts.
func TestInfracost(t *testing.T) {
	t.Parallel()
	node := price.Key{Cloud: price.AWS, Region: "us-east-1", Kind: price.Node, SKU: "t3.micro"}
	none := price.Key{Cloud: price.AWS, Region: "us-east-1", Kind: price.Node, SKU: "t9.micro"}
	aks := price.Key{Cloud: price.Azure, Region: "westeurope", Kind: price.ControlPlane, SKU: "standard"}
	base, o := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		for _, part := range []string{`"vendorName":"aws"`, `"productFamily":"Compute Instance"`, `"key":"capacitystatus","value":"Used"`, `"purchaseOption":"on_demand"`, `"value":"t3.micro"`, `"value":"Standard Uptime SLA"`} {
			if !strings.Contains(string(body), part) {
				t.Errorf("the questions lack %s: %s", part, body)
			}
		}
		if r.Method != http.MethodPost || r.URL.Path != "/graphql" || r.Header.Get("X-Api-Key") != "ico-secret" {
			t.Errorf("%s %s with %v", r.Method, r.URL, r.Header)
		}
		fmt.Fprint(w, `[{"data":{"products":[{"prices":[{"priceHash":"b","USD":"0"},{"priceHash":"a","USD":"0.0104000000"}]},{"prices":[{"priceHash":"c","USD":"0.0110000000"}]}]}},`+
			`{"data":{"products":[]}},{"data":{"products":[{"prices":[{"priceHash":"d","USD":"0.1"}]}]}}]`)
	})
	want(t, fetched(t, sources.NewInfracost(base+"/", "ico-secret", o), node, none, aks),
		map[string]string{node.String(): "0.0104 USD hour", aks.String(): "0.1 USD hour"})

	base, o = serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `[]`) })
	if _, err := sources.NewInfracost(base, "k", o).Fetch(t.Context(), []price.Key{node}); err == nil || !strings.Contains(err.Error(), "0 answers to 1 questions") {
		t.Errorf("too few answers: %v", err)
	}
	base, o = serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer ics_x" {
			t.Error("a service account shows a bearer token")
		}
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"error":"You have reached your quota","error_code":"above_quota"}`)
	})
	if _, err := sources.NewInfracost(base, "ics_x", o).Fetch(t.Context(), []price.Key{node}); err == nil ||
		!strings.Contains(err.Error(), "it answers 403: above_quota: You have reached your quota") || strings.Contains(err.Error(), "ics_x") {
		t.Errorf("above quota: %v", err)
	}
}

// What passes is tried again, what does not is said, and nothing of a part of an answer
// counts.
func TestFailures(t *testing.T) {
	t.Parallel()
	good := azurePage("null", 1, azureItem(""))
	for name, test := range map[string]struct {
		answer func(w http.ResponseWriter, try int32)
		err    string
		tries  int32
	}{
		"busy, and says for how long": {answer: func(w http.ResponseWriter, try int32) {
			if try == 1 {
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			fmt.Fprint(w, good)
		}, tries: 2},
		"busy for too long": {answer: func(w http.ResponseWriter, _ int32) {
			w.Header().Set("Retry-After", "86400")
			w.WriteHeader(http.StatusTooManyRequests)
		}, err: "it has too many requests", tries: 4},
		"away for a while": {answer: func(w http.ResponseWriter, try int32) {
			if try < 3 {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			fmt.Fprint(w, good)
		}, tries: 3},
		"away": {answer: func(w http.ResponseWriter, _ int32) { w.WriteHeader(http.StatusServiceUnavailable) }, err: "it answers 503", tries: 4},
		"refused": {answer: func(w http.ResponseWriter, _ int32) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":{"code":"400","message":"Invalid OData parameters supplied"}}`)
		}, err: "it answers 400: Invalid OData parameters supplied", tries: 1},
		"cut off once": {answer: func(w http.ResponseWriter, try int32) {
			if try == 1 {
				fmt.Fprint(w, good[:len(good)/2])
				return
			}
			fmt.Fprint(w, good)
		}, tries: 2},
		"cut off":    {answer: func(w http.ResponseWriter, _ int32) { fmt.Fprint(w, good[:len(good)/2]) }, err: "it is cut off", tries: 4},
		"not JSON":   {answer: func(w http.ResponseWriter, _ int32) { fmt.Fprint(w, "<html>secret page") }, err: "not JSON at byte 1", tries: 4},
		"other JSON": {answer: func(w http.ResponseWriter, _ int32) { fmt.Fprint(w, `{"Items":{}}`) }, err: "unexpected object", tries: 4},
		"nothing":    {answer: func(http.ResponseWriter, int32) {}, err: "it is cut off", tries: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tries atomic.Int32
			base, o := serve(t, func(w http.ResponseWriter, _ *http.Request) { test.answer(w, tries.Add(1)) })
			table, err := sources.NewAzure(base, o).Fetch(t.Context(), []price.Key{vm})
			switch {
			case test.err == "" && (err != nil || table.Len() != 1):
				t.Errorf("%v", err)
			case test.err != "" && (err == nil || table != nil || !strings.Contains(err.Error(), test.err) || strings.Contains(err.Error(), "secret")):
				t.Errorf("%v, want %q", err, test.err)
			}
			if got := tries.Load(); got != test.tries {
				t.Errorf("asked %d times, want %d", got, test.tries)
			}
		})
	}
	// Nobody is there, and the address is not in the error: it may have a key in it.
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	_, err := sources.NewAzure(srv.URL+"/with-a-key", sources.Options{FirstWait: time.Millisecond, Now: time.Now}).Fetch(t.Context(), []price.Key{vm})
	if err == nil || !strings.Contains(err.Error(), "it cannot be reached") || strings.Contains(err.Error(), "with-a-key") {
		t.Errorf("%v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := sources.NewAzure(srv.URL, sources.Options{FirstWait: time.Hour, Now: time.Now}).Fetch(ctx, []price.Key{vm}); err == nil {
		t.Error("a fetch that was canceled has an answer")
	}
}
