package book

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cost/money"
	"github.com/holdfast-dev/holdfast/cost/price"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// Kind is that of the document.
const Kind = "PriceBook"

// Book is a price book. The zero value has neither prices nor discounts.
type Book struct {
	// Name and AsOf are what the document says of itself.
	Name, AsOf string

	table     *price.Table
	discounts []discount
}

// discount is on list prices.
type discount struct {
	cloud       price.Cloud
	kind        price.Kind // empty: all
	sku, region string     // patterns, with * for anything; empty: all
	percent     money.Amount
}

// Parse reads a price book. With any fault the book is of no use.
func Parse(file string, data []byte) (*Book, holdfast.Faults) {
	roots, syntax := decode.Parse(file, data)
	if syntax != nil {
		return nil, holdfast.Faults{*syntax}
	}
	r := reader{Reader: &decode.Reader{File: file}}
	var found *Book
	for _, root := range roots {
		kind, _ := decode.ScalarOf(root, "kind")
		version, _ := decode.ScalarOf(root, "apiVersion")
		switch {
		case version != decode.APIVersion || kind != Kind:
			r.Add(root, "this document is not a price book", fmt.Sprintf("begin it with apiVersion: %s and kind: %s", decode.APIVersion, Kind))
		case found != nil:
			r.Add(root, "the file has a second price book", "merge the two")
		default:
			found = r.book(root)
		}
	}
	if len(roots) == 0 {
		r.Put(holdfast.Fault{File: file, Message: "the file is empty", Hint: fmt.Sprintf("a price book begins with apiVersion: %s and kind: %s", decode.APIVersion, Kind)})
	}
	if len(r.Faults) > 0 {
		decode.SortFaults(r.Faults)
		return nil, r.Faults
	}
	return found, nil
}

// reader reads one file.
type reader struct{ *decode.Reader }

func (r reader) book(root *yaml.Node) *Book {
	b := &Book{table: price.NewTable("book")}
	expanded := r.Expand(root)
	if len(r.Faults) > 0 {
		return b
	}
	top := r.Object(expanded, "")
	top.Get("apiVersion")
	top.Get("kind")
	metadata := top.Child("metadata")
	b.Name = metadata.Name("name")
	metadata.Done()
	if !top.Has("spec") {
		top.Get("spec")
		top.Missing("spec")
		top.Done()
		return b
	}
	spec := top.Child("spec")
	b.AsOf = r.date(spec, "asOf")
	currency := r.currency(spec, "currency", true)
	lines := make(map[price.Key]int)
	for i, n := range spec.Items("prices") {
		r.price(b, n, fmt.Sprintf("spec.prices[%d]", i), currency, lines)
	}
	for i, n := range spec.Items("discounts") {
		r.discount(b, n, fmt.Sprintf("spec.discounts[%d]", i))
	}
	spec.Done()
	top.Done()
	return b
}

// price reads one price.
func (r reader) price(b *Book, n *yaml.Node, path, currency string, lines map[price.Key]int) {
	o := r.Object(n, path)
	k := price.Key{
		Cloud: price.Cloud(r.required(o, "cloud", words(price.Clouds())...)), Kind: price.Kind(r.required(o, "kind", words(price.Kinds())...)),
		SKU: o.Required("sku"), Region: o.Text("region"),
	}
	if k.Region == "" {
		k.Region = price.AnyRegion
	}
	p := price.Price{Unit: price.Unit(r.required(o, "unit", words(price.Units())...)), Currency: currency}
	if own := r.currency(o, "currency", false); own != "" {
		p.Currency = own
	}
	p.Amount = r.amount(o, "price", true)
	if o.Has("monthlyCap") {
		most := r.amount(o, "monthlyCap", true)
		p.Cap = &most
		if p.Unit != price.Hour {
			r.Add(o.Get("monthlyCap"), "monthlyCap is for prices by the hour", "remove it, or write unit: hour")
		}
	}
	p.Origin = price.Origin{Source: "price book " + b.Name, AsOf: r.date(o, "asOf"), Note: o.Text("note")}
	if p.Origin.AsOf == "" {
		p.Origin.AsOf = b.AsOf
	}
	o.Done()
	if line, twice := lines[k]; twice {
		r.Add(n, fmt.Sprintf("%s has a price already, in line %d", wording.Clip(k.String()), line), "keep one")
		return
	}
	lines[k] = n.Line
	b.table.Set(k, p)
}

func (r reader) discount(b *Book, n *yaml.Node, path string) {
	o := r.Object(n, path)
	d := discount{
		cloud: price.Cloud(r.required(o, "cloud", words(price.Clouds())...)), kind: price.Kind(o.Choice("kind", words(price.Kinds())...)),
		sku: o.Text("sku"), region: o.Text("region"), percent: r.amount(o, "percent", true),
	}
	if d.percent.Cmp(money.Of(100)) > 0 {
		r.Add(o.Get("percent"), "percent is more than 100", "write how much is taken off: 12 makes 100 into 88")
	}
	o.Done()
	b.discounts = append(b.discounts, d)
}

// required returns a word that must be there, and be one of some.
func (r reader) required(o *decode.Object, key string, allowed ...string) string {
	if o.Get(key) == nil {
		o.Missing(key)
		return ""
	}
	return o.Choice(key, allowed...)
}

func words[T ~string](all []T) []string {
	out := make([]string, len(all))
	for i, w := range all {
		out[i] = string(w)
	}
	return out
}

// amount returns a number as it is written: it is never read as a floating-point one.
func (r reader) amount(o *decode.Object, key string, required bool) money.Amount {
	n := o.Get(key)
	if n == nil {
		if required {
			o.Missing(key)
		}
		return money.Amount{}
	}
	const longest = 24
	a, err := money.Parse(n.Value)
	switch {
	case n.Kind != yaml.ScalarNode || err != nil || len(n.Value) > longest:
		r.Add(n, fmt.Sprintf("%s must be a decimal number, not %s", o.Label(key), decode.Describe(n)), "write one such as 0.096")
	case a.Sign() < 0:
		r.Add(n, o.Label(key)+" is negative", "")
	}
	return a
}

var currencyPattern = regexp.MustCompile(`^[A-Z]{3}$`)

func (r reader) currency(o *decode.Object, key string, required bool) string {
	text := ""
	if required {
		text = o.Required(key)
	} else {
		text = o.Text(key)
	}
	if text != "" && !currencyPattern.MatchString(text) {
		r.Add(o.Get(key), fmt.Sprintf("%s is %q", o.Label(key), wording.Clip(text)), "write the three letters of ISO 4217, such as USD or EUR")
	}
	return text
}

var datePattern = regexp.MustCompile(`^[0-9]{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?)?$`)

// date returns a date as it is written: YYYY-MM-DD, YYYY-MM or YYYY.
func (r reader) date(o *decode.Object, key string) string {
	n := o.Get(key)
	if n == nil {
		return ""
	}
	if n.Kind != yaml.ScalarNode || !datePattern.MatchString(n.Value) {
		r.Add(n, fmt.Sprintf("%s must be a date, not %s", o.Label(key), decode.Describe(n)), "write one such as 2026-11-30")
		return ""
	}
	return n.Value
}

// Chain returns the sources behind the book, in their order, with the book in front and its
// discounts taken off them. A nil book adds nothing.
func (b *Book) Chain(list ...price.Source) price.Chain {
	if b == nil {
		return list
	}
	chain := price.Chain{b}
	for _, s := range list {
		chain = append(chain, discounted{book: b, list: s})
	}
	return chain
}

// Lookup implements price.Source.
func (b *Book) Lookup(k price.Key) []price.Price { return b.table.Lookup(k) }

// Version implements price.Source. Discounts are part of it.
func (b *Book) Version() price.Version {
	v := b.table.Version()
	h := sha256.New()
	fmt.Fprintln(h, v.ID)
	for _, d := range b.discounts {
		fmt.Fprintf(h, "%q\n", []string{string(d.cloud), string(d.kind), d.sku, d.region, d.percent.String()})
	}
	v.ID, v.AsOf = price.ShortID(h.Sum(nil)), max(v.AsOf, b.AsOf)
	return v
}

// discounted is a source less the discounts of a book.
type discounted struct {
	book *Book
	list price.Source
}

// Version implements price.Source: that of the list prices, as the book has its own.
func (d discounted) Version() price.Version { return d.list.Version() }

// Lookup implements price.Source.
func (d discounted) Lookup(k price.Key) []price.Price {
	found := d.list.Lookup(k)
	i := slices.IndexFunc(d.book.discounts, func(d discount) bool { return d.is(k) })
	if i < 0 || len(found) == 0 {
		return found
	}
	percent := d.book.discounts[i].percent
	less := slices.Clone(found)
	for n := range less {
		p := &less[n]
		p.Amount = p.Amount.Sub(p.Amount.Percent(percent))
		if p.Cap != nil {
			most := p.Cap.Sub(p.Cap.Percent(percent))
			p.Cap = &most
		}
		note := fmt.Sprintf("less %s %% by price book %s", percent, d.book.Name)
		p.Origin.Note = strings.TrimPrefix(p.Origin.Note+"; "+note, "; ")
	}
	return less
}

// is reports whether a discount is on a price.
func (d discount) is(k price.Key) bool {
	return d.cloud == k.Cloud && (d.kind == "" || d.kind == k.Kind) && matches(d.sku, k.SKU) && matches(d.region, k.Region)
}

// matches reports whether a text fits a pattern, in which * stands for anything.
func matches(pattern, text string) bool {
	if pattern == "" {
		return true
	}
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	last := len(parts) - 1
	rest, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1:last] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, parts[last])
}
