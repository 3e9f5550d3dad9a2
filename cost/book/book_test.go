package book_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/cost/book"
	"github.com/holdfast-dev/holdfast/cost/money"
	"github.com/holdfast-dev/holdfast/cost/price"
)

const head = "apiVersion: holdfast.dev/v1\nkind: PriceBook\nmetadata: {name: acme}\n"

const valid = head + `spec:
  currency: EUR
  asOf: 2026-11
  prices:
    - {cloud: aws, region: eu-west-1, kind: node, sku: m7i.large, unit: hour, price: 0.10}
    - {cloud: aws, kind: control-plane, sku: eks, unit: hour, price: "0.1000000001", currency: USD, asOf: 2026-11-30, note: our contract}
    - {cloud: linode, kind: node, sku: g6-standard-2, unit: hour, price: 0.036, monthlyCap: 24}
    - {cloud: digitalocean, kind: control-plane, sku: doks, unit: month, price: 0}
  discounts:
    - {cloud: aws, kind: node, sku: m7i.*, region: us-*, percent: 20}
    - {cloud: aws, percent: 12.5}
    - {cloud: linode, region: eu-central, percent: 10}
`

func list() price.Source {
	t := price.NewTable("list")
	most := money.Of(24)
	for k, p := range map[price.Key]price.Price{
		{Cloud: price.AWS, Region: "us-east-1", Kind: price.Node, SKU: "m7i.large"}:                 {Amount: money.MustParse("0.1"), Unit: price.Hour, Currency: "USD"},
		{Cloud: price.AWS, Region: "eu-west-1", Kind: price.Node, SKU: "m7i.large"}:                 {Amount: money.MustParse("0.2"), Unit: price.Hour, Currency: "USD"},
		{Cloud: price.AWS, Region: "us-east-1", Kind: price.Disk, SKU: "gp3"}:                       {Amount: money.MustParse("0.08"), Unit: price.GBMonth, Currency: "USD"},
		{Cloud: price.Linode, Region: price.AnyRegion, Kind: price.Node, SKU: "g6-standard-4"}:      {Amount: money.MustParse("0.036"), Unit: price.Hour, Currency: "USD", Cap: &most},
		{Cloud: price.Azure, Region: "westeurope", Kind: price.Node, SKU: "Standard_D2s_v5"}:        {Amount: money.MustParse("0.1"), Unit: price.Hour, Currency: "USD"},
		{Cloud: price.DigitalOcean, Region: price.AnyRegion, Kind: price.ControlPlane, SKU: "doks"}: {Amount: money.Of(5), Unit: price.Month, Currency: "USD"},
	} {
		t.Add(k, p)
	}
	return t
}

func TestBook(t *testing.T) {
	t.Parallel()
	b, faults := book.Parse("prices.yaml", []byte(valid))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	chain := b.Chain(list())
	for _, test := range []struct {
		key  price.Key
		want string // amount, currency, source
	}{
		{price.Key{Cloud: price.AWS, Region: "eu-west-1", Kind: price.Node, SKU: "m7i.large"}, "73 EUR price book acme 2026-11"},
		{price.Key{Cloud: price.AWS, Region: "us-east-1", Kind: price.Node, SKU: "m7i.large"}, "58.4 USD  "},                                    // less 20 %
		{price.Key{Cloud: price.AWS, Region: "us-east-1", Kind: price.Disk, SKU: "gp3"}, "0.07 USD  "},                                          // less 12.5 %
		{price.Key{Cloud: price.AWS, Region: "ap-east-1", Kind: price.ControlPlane, SKU: "eks"}, "73.000000073 USD price book acme 2026-11-30"}, // in all regions
		{price.Key{Cloud: price.Linode, Region: "eu-central", Kind: price.Node, SKU: "g6-standard-4"}, "21.6 USD  "},                            // of the cap, too
		{price.Key{Cloud: price.Linode, Region: "us-east", Kind: price.Node, SKU: "g6-standard-4"}, "24 USD  "},
		{price.Key{Cloud: price.Linode, Region: "us-east", Kind: price.Node, SKU: "g6-standard-2"}, "24 EUR price book acme 2026-11"},
		{price.Key{Cloud: price.Azure, Region: "westeurope", Kind: price.Node, SKU: "Standard_D2s_v5"}, "73 USD  "},
		{price.Key{Cloud: price.DigitalOcean, Region: "fra1", Kind: price.ControlPlane, SKU: "doks"}, "0 EUR price book acme 2026-11"}, // said to be free
		{price.Key{Cloud: price.AWS, Region: "us-east-1", Kind: price.Node, SKU: "none"}, ""},
	} {
		got := ""
		if found := chain.Lookup(test.key); len(found) > 0 {
			p := found[0]
			got = strings.Join([]string{p.Monthly().String(), p.Currency, p.Origin.Source, p.Origin.AsOf}, " ")
		}
		if got != test.want {
			t.Errorf("%s costs %q, want %q", test.key, got, test.want)
		}
	}
	if found := chain.Lookup(price.Key{Cloud: price.AWS, Region: "us-east-1", Kind: price.Disk, SKU: "gp3"}); found[0].Origin.Note != "less 12.5 % by price book acme" {
		t.Errorf("the discount is noted as %q", found[0].Origin.Note)
	}
}

// A discount that changes is another book, and so is a price.
func TestVersion(t *testing.T) {
	t.Parallel()
	ids := map[string]bool{}
	for _, text := range []string{
		valid, strings.Replace(valid, "percent: 20", "percent: 21", 1), strings.Replace(valid, "price: 0.10", "price: 0.11", 1),
		strings.Replace(valid, "region: us-*", "region: eu-*", 1), strings.Replace(valid, "monthlyCap: 24", "monthlyCap: 25", 1),
	} {
		b, faults := book.Parse("prices.yaml", []byte(text))
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		ids[b.Chain(list()).Version().ID] = true
	}
	if len(ids) != 5 {
		t.Errorf("%d versions of 5 books", len(ids))
	}
	same, _ := book.Parse("prices.yaml", []byte(strings.Replace(valid, "price: 0.10", "price: 0.1", 1)))
	if !ids[same.Chain(list()).Version().ID] {
		t.Error("the same price, written in another way, is another version")
	}
}

// All that is wrong is reported at once, at its place.
func TestFaults(t *testing.T) {
	t.Parallel()
	for want, text := range map[string]string{
		"p.yaml: the file is empty":                                          "",
		"p.yaml:1:1: this document is not a price book":                      "kind: Cluster\n",
		"p.yaml:6:1: the file has a second price book":                       head + "spec: {currency: USD}\n---\n" + head + "spec: {currency: USD}\n",
		"p.yaml:1:1: spec is missing":                                        head,
		"p.yaml:4:7: spec.currency is missing":                               head + "spec: {prices: []}\n",
		`p.yaml:4:18: spec.currency is "usd"`:                                head + "spec: {currency: usd}\n",
		`p.yaml:4:23: unknown key "price" in spec (did you mean "prices"?)`:  head + "spec: {currency: USD, price: []}\n",
		`p.yaml:4:40: spec.prices[0].cloud is "awss" (did you mean "aws"?)`:  priceLine("cloud: awss, kind: node, sku: a, unit: hour, price: 1"),
		`p.yaml:4:51: spec.prices[0].kind is "nod" (did you mean "node"?)`:   priceLine("cloud: aws, kind: nod, sku: a, unit: hour, price: 1"),
		`spec.prices[0].unit is "h"`:                                         priceLine("cloud: aws, kind: node, sku: a, unit: h, price: 1"),
		"spec.prices[0].unit is missing":                                     priceLine("cloud: aws, kind: node, sku: a, price: 1"),
		"spec.prices[0].price is missing":                                    priceLine("cloud: aws, kind: node, sku: a, unit: hour"),
		"spec.prices[0].price must be a decimal number, not the text":        priceLine(`cloud: aws, kind: node, sku: a, unit: hour, price: "1,5"`),
		"spec.prices[0].price must be a decimal number, not a list":          priceLine("cloud: aws, kind: node, sku: a, unit: hour, price: [1]"),
		"spec.prices[0].price must be a decimal number, not the number .inf": priceLine("cloud: aws, kind: node, sku: a, unit: hour, price: .inf"),
		"spec.prices[0].price is negative":                                   priceLine("cloud: aws, kind: node, sku: a, unit: hour, price: -1"),
		"monthlyCap is for prices by the hour":                               priceLine("cloud: aws, kind: node, sku: a, unit: month, price: 1, monthlyCap: 2"),
		"spec.prices[0].asOf must be a date, not the text \"today\"":         priceLine("cloud: aws, kind: node, sku: a, unit: month, price: 1, asOf: today"),
		"a in eu-west-1 has a price already, in line 6": head + "spec:\n  prices:\n" +
			"    - {cloud: aws, region: eu-west-1, kind: node, sku: a, unit: hour, price: 1}\n    - {cloud: aws, region: eu-west-1, kind: node, sku: a, unit: month, price: 1}\n  currency: USD\n",
		"spec.discounts[0].percent is missing":  head + "spec: {currency: USD, discounts: [{cloud: aws}]}\n",
		"percent is more than 100":              head + "spec: {currency: USD, discounts: [{cloud: aws, percent: 101}]}\n",
		"spec.discounts[0].percent is negative": head + "spec: {currency: USD, discounts: [{cloud: aws, percent: -1}]}\n",
		"is not valid YAML":                     head + "spec: {currency: USD\n",
	} {
		b, faults := book.Parse("p.yaml", []byte(text))
		if b != nil || !strings.Contains(faults.Error(), want) {
			t.Errorf("%q: faults\n%v\nwant %s", text, faults, want)
		}
	}
	_, faults := book.Parse("p.yaml", []byte(priceLine("cloud: x, kind: y, unit: z, price: -1")))
	if len(faults) != 5 {
		t.Errorf("%d faults, want 5:\n%v", len(faults), faults)
	}
}

func priceLine(fields string) string {
	return head + "spec: {currency: USD, prices: [{" + fields + "}]}\n"
}

func FuzzParse(f *testing.F) {
	f.Add(valid)
	f.Add(priceLine("cloud: aws, kind: node, sku: a, unit: hour, price: 1e99"))
	f.Fuzz(func(t *testing.T, text string) {
		b, faults := book.Parse("p.yaml", []byte(text))
		if (b == nil) != (len(faults) > 0) {
			t.Fatalf("a book %v with faults %v", b, faults)
		}
		if b != nil {
			b.Chain(list()).Version()
		}
	})
}
