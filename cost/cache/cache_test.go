package cache_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/cost/cache"
	"github.com/holdfast-dev/holdfast/cost/money"
	"github.com/holdfast-dev/holdfast/cost/price"
)

// publisher is a source whose answers the test decides on.
type publisher struct {
	cloud price.Cloud
	asked [][]string // SKUs of each request
	has   map[string]string
	err   error
}

func (p *publisher) Name() string         { return "publisher" }
func (p *publisher) Has(k price.Key) bool { return k.Cloud == p.cloud }
func (p *publisher) Fetch(_ context.Context, keys []price.Key) (*price.Table, error) {
	var skus []string
	table := price.NewTable("publisher")
	for _, k := range keys {
		skus = append(skus, k.SKU)
		if amount, ok := p.has[k.SKU]; ok {
			table.Set(k, price.Price{Amount: money.MustParse(amount), Unit: price.Month, Currency: "USD", Origin: price.Origin{Source: "publisher", AsOf: "2026-11-30"}})
		}
	}
	p.asked = append(p.asked, skus)
	return table, p.err
}

func key(sku string) price.Key {
	return price.Key{Cloud: price.AWS, Region: "r", Kind: price.Node, SKU: sku}
}

func amount(c *cache.Cache, sku string) string {
	found := c.Lookup(key(sku))
	if len(found) == 0 {
		return ""
	}
	return found[0].Amount.String()
}

// Nothing is asked for that nobody looked up; what was looked up is there after a refresh,
// is asked for again when it is old, and survives a source that fails.
func TestRefresh(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	p := &publisher{cloud: price.AWS, has: map[string]string{"a": "1"}}
	other := &publisher{cloud: price.GCP, err: errors.New("it answers 503")}
	path := filepath.Join(t.TempDir(), "prices.json")
	open := func() *cache.Cache {
		c, err := cache.Open(cache.Options{Path: path, Sources: []cache.Source{other, p}, Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := open()
	refresh := func(wantErr string, wantAsked ...string) {
		t.Helper()
		p.asked = nil
		err := c.Refresh(t.Context())
		if (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Fatalf("refresh: %v, want %q", err, wantErr)
		}
		var asked []string
		for _, skus := range p.asked {
			asked = append(asked, skus...)
		}
		if !slices.Equal(asked, wantAsked) {
			t.Fatalf("asked for %v, want %v", asked, wantAsked)
		}
	}
	refresh("")
	if amount(c, "a") != "" || amount(c, "b") != "" {
		t.Error("a price is there before anybody was asked")
	}
	before := c.Version()
	refresh("", "a", "b")
	if amount(c, "a") != "1" || amount(c, "b") != "" || c.Version().ID == before.ID || c.Version().AsOf != "2026-11-30" {
		t.Errorf("a costs %q, b %q, version %+v", amount(c, "a"), amount(c, "b"), c.Version())
	}
	refresh("") // nothing is old
	version := c.Version()
	c = open() // another process
	if amount(c, "a") != "1" || c.Version() != version {
		t.Errorf("from the file: a costs %q, version %+v, was %+v", amount(c, "a"), c.Version(), version)
	}
	now = now.Add(25 * time.Hour)
	p.err, p.has = errors.New("it answers 503"), nil
	refresh("fetch prices: it answers 503", "a", "b")
	if amount(c, "a") != "1" {
		t.Error("a source that fails takes a price away")
	}
	p.err, p.has = nil, map[string]string{"b": "2"}
	refresh("", "a", "b")
	if amount(c, "a") != "1" || amount(c, "b") != "2" {
		t.Errorf("a costs %q, b %q", amount(c, "a"), amount(c, "b"))
	}
	now = now.Add(-100 * time.Hour) // a clock that was set back does not stop it
	refresh("", "a", "b")
	// Another source that fails does not keep this one from being asked.
	c.Lookup(price.Key{Cloud: price.GCP, SKU: "x"})
	c.Lookup(key("c"))
	refresh("it answers 503", "c")
}

// A file that cannot be read is said, and prices are fetched again; a plan that names SKUs
// without end does not fill the memory.
func TestBadInput(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"empty": "", "damaged": `{"version":1,"entries":[{"key":{"sku":"a"},"prices":[{"amount":"x"}]}]}`, "of another version": `{"version":2}`} {
		path := filepath.Join(t.TempDir(), "prices.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p := &publisher{cloud: price.AWS, has: map[string]string{"a": "1"}}
		c, err := cache.Open(cache.Options{Path: path, Sources: []cache.Source{p}, Now: time.Now})
		if err == nil || !strings.Contains(err.Error(), "it is damaged, or of another version") {
			t.Errorf("%s: %v", name, err)
		}
		amount(c, "a")
		if err := c.Refresh(t.Context()); err != nil || amount(c, "a") != "1" {
			t.Errorf("%s: a costs %q: %v", name, amount(c, "a"), err)
		}
		if _, err := cache.Open(cache.Options{Path: path, Now: time.Now}); err != nil {
			t.Errorf("%s: the next start: %v", name, err)
		}
	}
	p := &publisher{cloud: price.AWS}
	c, err := cache.Open(cache.Options{Sources: []cache.Source{p}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20_000 {
		c.Lookup(key(fmt.Sprint("sku-", i)))
	}
	c.Lookup(key(strings.Repeat("x", 101)))
	if err := c.Refresh(t.Context()); err != nil || len(p.asked[0]) != 10_000 {
		t.Errorf("%d keys are asked for: %v", len(p.asked[0]), err)
	}
}

// What has become wanted is asked for some seconds later, once, with all that the plan needs.
func TestWantedIsAskedForSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &publisher{cloud: price.AWS, has: map[string]string{"a": "1", "b": "2"}}
		c, err := cache.Open(cache.Options{Sources: []cache.Source{p}, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.Run(ctx, func(err error) { t.Error(err) })
		}()
		synctest.Wait()
		if got := amount(c, "a") + amount(c, "b"); got != "" {
			t.Errorf("there are prices before anybody was asked: %s", got)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := amount(c, "a") + amount(c, "b"); got != "12" || len(p.asked) != 1 {
			t.Errorf("got %q, after asking for %v", got, p.asked)
		}
		stop()
		<-done
	})
}
