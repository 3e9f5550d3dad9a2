package sources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/cenkalti/backoff/v5"

	"github.com/holdfast-dev/holdfast/cost/money"
	"github.com/holdfast-dev/holdfast/cost/price"
)

// AWSURL is where AWS publishes its bulk price list, for everybody.
const AWSURL = "https://pricing.us-east-1.amazonaws.com"

// aws is the bulk price list of AWS. The file of a service in a region has up to a gigabyte:
// it is read as a stream, and what nobody asked for is dropped at once.
type aws struct {
	fetcher
	base string
}

// NewAWS returns the bulk price list of AWS.
func NewAWS(base string, o Options) Source {
	return aws{newFetcher(o, "AWS price list"), base}
}

// maxList bounds a file of the price list.
const maxList = 4 << 30

// awsProduct is what is for sale.
type awsProduct struct {
	SKU           string            `json:"sku"`
	ProductFamily string            `json:"productFamily"`
	Attributes    map[string]string `json:"attributes"`
}

// awsOffer is the service of a key, and how its product is known.
type awsOffer struct {
	service, family string
	is              map[string]string // attributes
	usage           string            // what the attribute usagetype ends with
	contains        bool              // it is somewhere in it
	unit            price.Unit
}

// awsLinux are the attributes of a machine as nodes have it: the same one is there with other
// systems, for a host of its own, and as reserved capacity.
var awsLinux = map[string]string{ //nolint:gochecknoglobals // a constant table
	"tenancy": "Shared", "operatingSystem": "Linux", "preInstalledSw": "NA", "capacitystatus": "Used",
}

// awsOfferOf returns how a key is looked for; false if it is not in the list.
func awsOfferOf(k price.Key) (awsOffer, bool) {
	const ec2 = "AmazonEC2"
	switch k.Kind {
	case price.Node:
		if strings.Contains(k.SKU, " ") {
			return awsOffer{}, false
		}
		is := maps.Clone(awsLinux)
		is["instanceType"] = k.SKU
		return awsOffer{service: ec2, is: is, unit: price.Hour}, true
	case price.Disk:
		if strings.Contains(k.SKU, "-") {
			return awsOffer{}, false
		}
		return awsOffer{service: ec2, family: "Storage", is: map[string]string{"volumeApiName": k.SKU}, unit: price.GBMonth}, true
	default:
	}
	offer, ok := awsOffers[k.Kind][k.SKU]
	return offer, ok
}

var awsOffers = map[price.Kind]map[string]awsOffer{ //nolint:gochecknoglobals // a constant table
	price.ControlPlane: {
		"eks":                  {service: "AmazonEKS", family: "Compute", usage: "AmazonEKS-Hours:perCluster", contains: true, unit: price.Hour},
		"eks-extended-support": {service: "AmazonEKS", family: "Compute", usage: "AmazonEKS-Hours:extendedSupport", contains: true, unit: price.Hour},
	},
	price.NATGateway: {
		"nat-gateway":    {service: "AmazonEC2", family: "NAT Gateway", usage: "NatGateway-Hours", unit: price.Hour},
		"data-processed": {service: "AmazonEC2", family: "NAT Gateway", usage: "NatGateway-Bytes", unit: price.GB},
	},
	price.LoadBalancer: {
		"alb":     {service: "AWSELB", family: "Load Balancer-Application", usage: "LoadBalancerUsage", unit: price.Hour},
		"nlb":     {service: "AWSELB", family: "Load Balancer-Network", usage: "LoadBalancerUsage", unit: price.Hour},
		"classic": {service: "AWSELB", family: "Load Balancer", usage: "LoadBalancerUsage", unit: price.Hour},
	},
	price.Address: {
		"public-ipv4": {service: "AmazonVPC", usage: "PublicIPv4:InUseAddress", unit: price.Hour},
	},
}

// Has implements Source.
func (a aws) Has(k price.Key) bool {
	_, ok := awsOfferOf(k)
	return k.Cloud == price.AWS && ok && k.Region != price.AnyRegion && k.Region != ""
}

// Fetch implements Source.
func (a aws) Fetch(ctx context.Context, keys []price.Key) (*price.Table, error) {
	table := price.NewTable(a.name)
	for region, inRegion := range regionsOf(keys) {
		services := make(map[string][]price.Key)
		for _, k := range inRegion {
			offer, _ := awsOfferOf(k)
			services[offer.service] = append(services[offer.service], k)
		}
		for service, wanted := range services {
			list := awsList{origin: a.origin(), wanted: wanted, products: make(map[string][]price.Key), found: make(map[price.Key]map[string]price.Price)}
			partition := "aws"
			if strings.HasPrefix(region, "cn-") {
				partition = "cn"
			}
			at := fmt.Sprintf("%s/offers/v1.0/%s/%s/current/%s/index.json", a.base, partition, service, region)
			if err := a.again(ctx, request{method: http.MethodGet, url: at}, list.read); err != nil {
				return nil, err
			}
			list.into(table)
		}
	}
	return table, nil
}

// awsList is the file of a service in a region, as it is read.
type awsList struct {
	origin   price.Origin
	wanted   []price.Key
	products map[string][]price.Key // keys by the SKU of a product
	found    map[price.Key]map[string]price.Price
}

// read reads a file. The prices are behind the products: without these nobody knows which
// are wanted.
func (l *awsList) read(body io.Reader) error {
	clear(l.products)
	clear(l.found)
	dec := json.NewDecoder(io.LimitReader(body, maxList))
	seen := false
	err := eachMember(dec, func(name string) error {
		switch {
		case name == "products":
			seen = true
			return eachMember(dec, func(string) error { return l.product(dec) })
		case name == "terms" && !seen:
			return backoff.Permanent(errors.New("its prices are in front of its products"))
		case name == "terms":
			return eachMember(dec, func(kind string) error {
				if kind != "OnDemand" {
					return skipValue(dec)
				}
				return eachMember(dec, func(sku string) error { return l.terms(dec, sku) })
			})
		}
		return skipValue(dec)
	})
	if err != nil {
		return fmt.Errorf("read price list: %w", brief(err))
	}
	return nil
}

func (l *awsList) product(dec *json.Decoder) error {
	var p awsProduct
	if err := dec.Decode(&p); err != nil {
		return err
	}
	for _, k := range l.wanted {
		if offer, _ := awsOfferOf(k); offer.matches(p, k) {
			l.products[p.SKU] = append(l.products[p.SKU], k)
		}
	}
	return nil
}

// matches reports whether a product is the one of a key.
func (o awsOffer) matches(p awsProduct, k price.Key) bool {
	for name, want := range o.is {
		if p.Attributes[name] != want {
			return false
		}
	}
	if region := p.Attributes["regionCode"]; region != "" && region != k.Region {
		return false
	}
	if kind := p.Attributes["locationType"]; kind != "" && kind != "AWS Region" {
		return false // an outpost, or a local zone
	}
	if market := p.Attributes["marketoption"]; market != "" && market != "OnDemand" {
		return false
	}
	if o.family != "" && p.ProductFamily != o.family {
		return false
	}
	usage := p.Attributes["usagetype"]
	switch {
	case o.usage == "":
		return true
	case o.contains:
		return strings.Contains(usage, o.usage)
	}
	// In front there may be the short name of a region: EUW1-LoadBalancerUsage.
	prefix, ok := strings.CutSuffix(usage, o.usage)
	return ok && (prefix == "" || strings.HasSuffix(prefix, "-") && strings.Count(prefix, "-") == 1)
}

// awsTerm is a price list entry.
type awsTerm struct {
	PriceDimensions map[string]struct {
		BeginRange   string            `json:"beginRange"`
		PricePerUnit map[string]string `json:"pricePerUnit"`
	} `json:"priceDimensions"`
}

func (l *awsList) terms(dec *json.Decoder, sku string) error {
	keys := l.products[sku]
	if len(keys) == 0 {
		return skipValue(dec)
	}
	var terms map[string]awsTerm
	if err := dec.Decode(&terms); err != nil {
		return err
	}
	for _, term := range terms {
		for _, dimension := range term.PriceDimensions {
			if dimension.BeginRange != "" && dimension.BeginRange != "0" {
				continue
			}
			for currency, text := range dimension.PricePerUnit {
				amount, err := money.Parse(text)
				if err != nil || amount.Sign() <= 0 { // a zero is not a price
					continue
				}
				l.add(keys, price.Price{Amount: amount, Currency: currency, Origin: l.origin})
			}
		}
	}
	return nil
}

func (l *awsList) add(keys []price.Key, p price.Price) {
	for _, k := range keys {
		offer, _ := awsOfferOf(k)
		p.Unit = offer.unit
		if l.found[k] == nil {
			l.found[k] = make(map[string]price.Price)
		}
		l.found[k][p.Currency+p.Amount.String()] = p
	}
}

// into adds what was found. With several prices nobody knows which one was meant.
func (l *awsList) into(table *price.Table) {
	for k, found := range l.found {
		if len(found) == 1 {
			table.Set(k, found[slices.Collect(maps.Keys(found))[0]])
		}
	}
}

// eachMember goes through an object, whose values do has to read.
func eachMember(dec *json.Decoder, do func(name string) error) error {
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return cmpError(err, "unexpected JSON")
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		text, _ := name.(string)
		if err := do(text); err != nil {
			return err
		}
	}
	_, err := dec.Token()
	return err
}

func cmpError(err error, text string) error {
	if err == nil {
		err = errors.New(text)
	}
	return err
}

// skipValue reads a value, and keeps nothing of it.
func skipValue(dec *json.Decoder) error {
	for depth := 0; ; {
		t, err := dec.Token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}
