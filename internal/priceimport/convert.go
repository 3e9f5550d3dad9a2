package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// data is a data file.
type data struct {
	Cloud    string
	Currency string
	Hours    string `json:"hoursOfAMonth"`
	Items    []item
	Tables   struct {
		Origin origin
		Tables []struct {
			Kind, SKU, Unit string
			Prices          map[string]string // by region
		}
	}
	Nodes         []nodes
	NotFound      []string
	Disagreements []string
}

// item is a price that is not in a table.
type item struct {
	Region, Kind, SKU, Unit, Price, Note string
	Origin                               origin
	// Hourly and Monthly are those of Linode, whose months have a limit.
	Hourly  string
	Monthly *string
	Regions map[string]struct {
		Hourly  string
		Monthly *string
	}
}

// nodes are machine types: a price for each region, or, with columns, what Linode says.
type nodes struct {
	Origin         origin
	Currency, Unit string
	Regions        []string
	Columns        []string
	Prices         map[string][]any // text, or null: not offered, or not in the origin
}

type origin struct {
	Source   string `json:"source"`
	Revision string `json:"revision,omitempty"`
	Path     string `json:"path,omitempty"`
	AsOf     string `json:"asOf,omitempty"`
	Licence  string `json:"licence,omitempty"`
	Note     string `json:"note,omitempty"`
}

// table is what is embedded.
type table struct {
	Cloud    string
	Origins  []origin
	NotFound []string
	Blocks   []*block
}

// block is prices of one origin, kind and unit. A row has one cell for each region.
type block struct {
	Kind, Unit, Currency, Note string
	Hours, Origin              int
	Regions                    []string
	Caps, Prices               map[string][]string
}

// none is a cell without a price.
const none = "-"

func rows(b *bytes.Buffer, of map[string][]string) {
	skus := slices.Sorted(maps.Keys(of))
	for i, sku := range skus {
		fmt.Fprintf(b, "    %q: %q%s\n", sku, strings.Join(of[sku], " "), comma(i, len(skus)))
	}
}

// converter makes a table of a data file.
type converter struct {
	data  data
	table table
	left  []string
}

// convert returns the table of a data file, and what it leaves out.
func convert(text []byte) (*table, []string, error) {
	var c converter
	if err := json.Unmarshal(text, &c.data); err != nil {
		return nil, nil, err
	}
	c.table.Cloud = c.data.Cloud
	c.table.NotFound = slices.Concat(c.data.NotFound, c.data.Disagreements)
	for _, n := range c.data.Nodes {
		if err := c.nodes(n); err != nil {
			return nil, nil, err
		}
	}
	c.tables()
	for _, i := range c.data.Items {
		c.item(i)
	}
	c.table.NotFound = append(c.table.NotFound, c.left...)
	return &c.table, c.left, nil
}

func (c *converter) leave(format string, args ...any) {
	c.left = append(c.left, fmt.Sprintf(format, args...))
}

// nodes adds a table of machine types. A zero is not a price: nobody rents a machine for
// nothing.
func (c *converter) nodes(n nodes) error {
	if len(n.Columns) > 0 {
		return c.linode(n)
	}
	b := &block{Kind: "node", Unit: n.Unit, Currency: n.Currency, Origin: c.origin(n.Origin), Regions: n.Regions, Prices: map[string][]string{}}
	if n.Unit == "hour" && strings.HasPrefix(c.data.Hours, "672") {
		b.Hours = 672
	}
	zeros := 0
	for _, sku := range slices.Sorted(maps.Keys(n.Prices)) {
		row := make([]string, len(n.Regions))
		for i, cell := range n.Prices[sku] {
			price, _ := cell.(string)
			switch {
			case price == "":
				price = none
			case isZero(price):
				price = none
				zeros++
			}
			row[i] = price
		}
		b.Prices[sku] = row
	}
	if zeros > 0 {
		c.leave("%d prices of machines that are zero in their origin", zeros)
	}
	c.table.Blocks = append(c.table.Blocks, b)
	return nil
}

// linodeColumns are those of the table of its machine types.
var linodeColumns = []string{"class", "vcpus", "memory MB", "hourly", "monthly", "id-cgk hourly", "id-cgk monthly", "br-gru hourly", "br-gru monthly"} //nolint:gochecknoglobals // a constant

func (c *converter) linode(n nodes) error {
	if !slices.Equal(n.Columns, linodeColumns) {
		return fmt.Errorf("the columns of nodes are %q", n.Columns)
	}
	b := &block{
		Kind: "node", Unit: "hour", Currency: n.Currency, Origin: c.origin(n.Origin), Regions: []string{"*", "id-cgk", "br-gru"},
		Prices: map[string][]string{}, Caps: map[string][]string{},
	}
	for sku, row := range n.Prices {
		for i := 3; i < len(linodeColumns); i += 2 {
			b.Prices[sku] = append(b.Prices[sku], cell(row[i]))
			b.Caps[sku] = append(b.Caps[sku], cell(row[i+1]))
		}
	}
	c.table.Blocks = append(c.table.Blocks, b)
	return nil
}

func cell(v any) string {
	if s, ok := v.(string); ok && s != "" {
		return s
	}
	return none
}

// tables adds what has a price for each region. Where there is a price by the hour and
// one by the month, the hour's counts: a month may have discounts in it.
func (c *converter) tables() {
	hourly := map[string]bool{}
	for _, t := range c.data.Tables.Tables {
		hourly[t.SKU] = hourly[t.SKU] || t.Unit == "hour"
	}
	for _, t := range c.data.Tables.Tables {
		if t.Unit == "month" && hourly[t.SKU] {
			continue
		}
		b := &block{Kind: t.Kind, Unit: t.Unit, Currency: c.data.Currency, Origin: c.origin(c.data.Tables.Origin), Prices: map[string][]string{}}
		for _, region := range slices.Sorted(maps.Keys(t.Prices)) {
			if isZero(t.Prices[region]) {
				c.leave("%s in %s: zero in its origin", t.SKU, region)
				continue
			}
			b.Regions = append(b.Regions, region)
			b.Prices[t.SKU] = append(b.Prices[t.SKU], t.Prices[region])
		}
		c.table.Blocks = append(c.table.Blocks, b)
	}
}

// item adds one price, to a block that has its like.
func (c *converter) item(i item) {
	switch {
	case strings.Contains(i.Origin.Note, "test double"):
		c.leave("%s: its origin is a test double", i.SKU)
		return
	case strings.Contains(i.SKU, "credit"):
		c.leave("%s: a credit, which belongs to an account and not to a cluster", i.SKU)
		return
	case i.SKU == "standard-rule":
		c.leave("%s: the recorded price is for one rule, the published one for the first five together", i.SKU)
		return
	case i.Kind == "traffic":
		return // of no resource
	}
	note := i.Note
	if isZero(i.Price+i.Hourly) && note == "" {
		note = "free of charge"
	}
	b := &block{
		Kind: i.Kind, Unit: i.Unit, Currency: strings.Fields(c.data.Currency)[0], Origin: c.origin(i.Origin), Note: note,
		Regions: []string{i.Region}, Prices: map[string][]string{i.SKU: {i.Price}},
	}
	if i.Region == "global" {
		b.Regions = []string{"*"}
	}
	if i.Hourly != "" {
		i.rates(b)
	}
	c.table.Blocks = append(c.table.Blocks, b)
}

// rates takes over what Linode asks: everywhere, and in regions that cost more.
func (i item) rates(b *block) {
	b.Regions, b.Prices = []string{"*"}, map[string][]string{}
	add := func(hourly string, monthly *string) {
		switch {
		case i.Kind == "disk": // by the GB
			b.Unit = "GB-month"
			b.Prices[i.SKU] = append(b.Prices[i.SKU], *monthly)
		case monthly == nil:
			b.Unit = "hour"
			b.Prices[i.SKU] = append(b.Prices[i.SKU], hourly)
		default:
			if b.Caps == nil {
				b.Caps = map[string][]string{}
			}
			b.Unit = "hour"
			b.Prices[i.SKU] = append(b.Prices[i.SKU], hourly)
			b.Caps[i.SKU] = append(b.Caps[i.SKU], *monthly)
		}
	}
	add(i.Hourly, i.Monthly)
	for _, region := range slices.Sorted(maps.Keys(i.Regions)) {
		b.Regions = append(b.Regions, region)
		add(i.Regions[region].Hourly, i.Regions[region].Monthly)
	}
}

func isZero(price string) bool { return price != "" && strings.Trim(price, "0.") == "" }

// origin returns the number of an origin, with its date as YYYY-MM-DD; what has none says
// so in its note.
func (c *converter) origin(o origin) int {
	if date := dateOf(o.AsOf); date != "" {
		o.AsOf = date
	} else {
		o.Note = strings.TrimSuffix(o.AsOf+"; "+o.Note, "; ")
		o.AsOf = ""
	}
	if i := slices.Index(c.table.Origins, o); i >= 0 {
		return i
	}
	c.table.Origins = append(c.table.Origins, o)
	return len(c.table.Origins) - 1
}

var isoDate = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}`)

func dateOf(text string) string {
	if t, err := time.Parse(time.RFC1123, text); err == nil {
		return t.Format(time.DateOnly)
	}
	return isoDate.FindString(text)
}
