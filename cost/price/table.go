package price

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Source is one link of a chain.
type Source interface {
	// Lookup returns the prices of a key: several if origins disagree, none if it has
	// no price. Those of its region count before those of AnyRegion. It is safe for
	// concurrent use, and does not ask a network.
	Lookup(Key) []Price
	// Version identifies the prices: equal versions have equal prices.
	Version() Version
}

// Version says which prices a source has.
type Version struct {
	Name string `json:"name"` // "book", "cache" or "embedded"
	ID   string `json:"id"`
	// AsOf is the date of the newest price; empty: none has a date.
	AsOf string `json:"asOf,omitempty"`
}

// Table is prices by key. The zero value has none.
type Table struct {
	name   string
	prices map[Key][]Price
}

// NewTable returns a table without prices.
func NewTable(name string) *Table {
	return &Table{name: name, prices: make(map[Key][]Price)}
}

// Add adds a price. A second one for a key is what another origin says.
func (t *Table) Add(k Key, p Price) { t.prices[k] = append(t.prices[k], p) }

// Set replaces what is known of a key.
func (t *Table) Set(k Key, p ...Price) { t.prices[k] = p }

// Lookup implements Source.
func (t *Table) Lookup(k Key) []Price {
	if found := t.prices[k]; len(found) > 0 {
		return found
	}
	k.Region = AnyRegion
	return t.prices[k]
}

// Len is how many keys have a price.
func (t *Table) Len() int { return len(t.prices) }

// Keys returns the keys in order.
func (t *Table) Keys() []Key {
	keys := make([]Key, 0, len(t.prices))
	for k := range t.prices {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, Compare)
	return keys
}

// Compare orders keys.
func Compare(a, b Key) int {
	for _, pair := range [][2]string{
		{string(a.Cloud), string(b.Cloud)}, {string(a.Kind), string(b.Kind)}, {a.SKU, b.SKU}, {a.Region, b.Region},
	} {
		if c := strings.Compare(pair[0], pair[1]); c != 0 {
			return c
		}
	}
	return 0
}

// Version implements Source. It is computed each time: what is looked up often keeps it.
func (t *Table) Version() Version {
	v := Version{Name: t.name}
	h := sha256.New()
	for _, k := range t.Keys() {
		for _, p := range t.prices[k] {
			most := ""
			if p.Cap != nil {
				most = p.Cap.String()
			}
			fmt.Fprintf(h, "%q\n", []string{
				string(k.Cloud), k.Region, string(k.Kind), k.SKU,
				p.Amount.String(), string(p.Unit), p.Currency, most, fmt.Sprint(p.Hours), p.Origin.Source, p.Origin.AsOf,
			})
			v.AsOf = max(v.AsOf, p.Origin.AsOf)
		}
	}
	v.ID = ShortID(h.Sum(nil))
	return v
}

// ShortID is a digest as versions show it.
func ShortID(sum []byte) string { return hex.EncodeToString(sum)[:12] }

// Chain asks its sources one after another: the first that has a price of a key is the one
// that counts.
type Chain []Source

// Lookup implements Source.
func (c Chain) Lookup(k Key) []Price {
	for _, s := range c {
		if found := s.Lookup(k); len(found) > 0 {
			return found
		}
	}
	return nil
}

// Version implements Source: that of all its sources together.
func (c Chain) Version() Version {
	v := Version{Name: "prices"}
	h := sha256.New()
	for _, part := range c.Parts() {
		fmt.Fprintf(h, "%q %q\n", part.Name, part.ID)
		v.AsOf = max(v.AsOf, part.AsOf)
	}
	v.ID = ShortID(h.Sum(nil))
	return v
}

// Parts are the versions of the sources.
func (c Chain) Parts() []Version {
	parts := make([]Version, len(c))
	for i, s := range c {
		parts[i] = s.Version()
	}
	return parts
}
