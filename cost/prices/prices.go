package prices

import (
	"crypto/sha256"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/cost/money"
	"github.com/holdfast-dev/holdfast/cost/price"
)

//go:embed tables/*.json
var files embed.FS

// Embedded is the table of the program. The zero value is ready.
type Embedded struct{}

var _ price.Source = Embedded{}

// file is a cloud's table, as it is written.
type file struct {
	Cloud    price.Cloud `json:"cloud"`
	Origins  []origin    `json:"origins"`
	NotFound []string    `json:"notFound"`
	Blocks   []block     `json:"blocks"`
}

type origin struct {
	Source string `json:"source"`
	AsOf   string `json:"asOf"`
	Note   string `json:"note"`
}

// block is prices of one origin, kind and unit.
type block struct {
	Kind     price.Kind `json:"kind"`
	Unit     price.Unit `json:"unit"`
	Currency string     `json:"currency"`
	Hours    int64      `json:"hours"`
	Origin   int        `json:"origin"`
	Note     string     `json:"note"`
	Regions  []string   `json:"regions"`
	// Prices are cells by SKU, one for each region, with a space in between; Caps the most
	// that a month costs.
	Prices map[string]string `json:"prices"`
	Caps   map[string]string `json:"caps"`
}

// none is a cell without a price.
const none = "-"

// decoded are the tables that were asked for.
var decoded = func() map[price.Cloud]func() *file { //nolint:gochecknoglobals // decoded once, never changed
	tables := make(map[price.Cloud]func() *file)
	for _, cloud := range price.Clouds() {
		tables[cloud] = sync.OnceValue(func() *file { return decode(cloud) })
	}
	return tables
}()

// decode panics if a file is not a table, which tests find.
func decode(cloud price.Cloud) *file {
	data, err := files.ReadFile("tables/" + string(cloud) + ".json")
	if err != nil {
		panic(err)
	}
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		panic(fmt.Sprintf("table of %s: %v", cloud, err))
	}
	return &f
}

// Lookup implements price.Source.
func (Embedded) Lookup(k price.Key) (found []price.Price) {
	table, ok := decoded[k.Cloud]
	if !ok {
		return nil
	}
	f := table()
	if found = f.lookup(k); len(found) == 0 {
		k.Region = price.AnyRegion
		found = f.lookup(k)
	}
	return found
}

func (f *file) lookup(k price.Key) (found []price.Price) {
	for i := range f.Blocks {
		b := &f.Blocks[i]
		if b.Kind != k.Kind {
			continue
		}
		if row, ok := b.Prices[k.SKU]; ok {
			if p, ok := b.price(row, k, f.Origins[b.Origin]); ok {
				found = append(found, p)
			}
		}
	}
	return found
}

// price is what a row says of a region.
func (b *block) price(row string, k price.Key, from origin) (price.Price, bool) {
	i := slices.Index(b.Regions, k.Region)
	if i < 0 {
		return price.Price{}, false
	}
	text := cellOf(row, i)
	if text == none {
		return price.Price{}, false
	}
	p := price.Price{
		Amount: money.MustParse(text), Unit: b.Unit, Currency: b.Currency, Hours: b.Hours,
		Origin: price.Origin{Source: from.Source, AsOf: from.AsOf, Note: b.Note},
	}
	if p.Origin.Note == "" {
		p.Origin.Note = from.Note
	}
	if caps, ok := b.Caps[k.SKU]; ok {
		if text := cellOf(caps, i); text != none {
			most := money.MustParse(text)
			p.Cap = &most
		}
	}
	return p, true
}

// cellOf is the cell of a row with that number.
func cellOf(row string, number int) string {
	for range number {
		_, rest, ok := strings.Cut(row, " ")
		if !ok {
			return none
		}
		row = rest
	}
	text, _, _ := strings.Cut(row, " ")
	return text
}

// version is computed once.
var version = sync.OnceValue(func() price.Version { //nolint:gochecknoglobals // computed once, never changed
	v := price.Version{Name: "embedded"}
	h := sha256.New()
	for _, cloud := range price.Clouds() {
		data, err := files.ReadFile("tables/" + string(cloud) + ".json")
		if err != nil {
			panic(err)
		}
		h.Write(data)
		for _, o := range decoded[cloud]().Origins {
			v.AsOf = max(v.AsOf, o.AsOf)
		}
	}
	v.ID = price.ShortID(h.Sum(nil))
	return v
})

// Version implements price.Source.
func (Embedded) Version() price.Version { return version() }

// Missing is what the origins of a cloud's table do not have, in words.
func Missing(cloud price.Cloud) []string {
	table, ok := decoded[cloud]
	if !ok {
		return nil
	}
	return table().NotFound
}

// Each calls do with each price of a cloud.
func Each(cloud price.Cloud, do func(price.Key, price.Price)) {
	table, ok := decoded[cloud]
	if !ok {
		return
	}
	f := table()
	for i := range f.Blocks {
		b := &f.Blocks[i]
		for sku, row := range b.Prices {
			for _, region := range b.Regions {
				k := price.Key{Cloud: cloud, Region: region, Kind: b.Kind, SKU: sku}
				if p, ok := b.price(row, k, f.Origins[b.Origin]); ok {
					do(k, p)
				}
			}
		}
	}
}
