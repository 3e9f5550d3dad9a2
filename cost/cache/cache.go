package cache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/cost/price"
	"github.com/holdfast-dev/holdfast/internal/durable"
)

// Source answers requests for prices; package sources has the implementations.
type Source interface {
	Name() string
	Has(price.Key) bool
	Fetch(ctx context.Context, keys []price.Key) (*price.Table, error)
}

// Options are what a cache needs.
type Options struct {
	// Path is its file. Empty: it is kept in memory only.
	Path string
	// Sources are asked in their order: the first that has a key is the one for it.
	Sources []Source
	Now     func() time.Time
	// TTL is how old a price may be before it is asked for again; 0: a day.
	TTL time.Duration
}

// Bounds: plans may name any SKU, also ones that do not exist.
const (
	maxWanted = 10_000
	maxSKU    = 100
	maxFile   = 64 << 20
)

// Cache keeps prices. It is safe for concurrent use.
type Cache struct {
	opts Options

	refreshing sync.Mutex    // held while sources are asked
	wanted     chan struct{} // has something if a price is wanted for which no source was asked

	mu      sync.Mutex // guards the following
	entries map[price.Key]entry
	version price.Version
}

// entry is what is known of a key that somebody has looked up.
type entry struct {
	Key    price.Key     `json:"key"`
	Prices []price.Price `json:"prices,omitempty"`
	Asked  time.Time     `json:"asked,omitzero"` // a source answered last; zero: none has yet
}

// file is what is kept.
type file struct {
	Version int     `json:"version"`
	Entries []entry `json:"entries"`
}

const fileVersion = 1

// Open reads a cache from its file. One that is damaged is an error, and the cache that
// comes with it is empty: prices are fetched again.
func Open(o Options) (*Cache, error) {
	if o.TTL == 0 {
		o.TTL = 24 * time.Hour
	}
	c := &Cache{opts: o, entries: make(map[price.Key]entry), wanted: make(chan struct{}, 1)}
	err := c.load()
	c.version = c.versionNow()
	return c, err
}

func (c *Cache) load() error {
	if c.opts.Path == "" {
		return nil
	}
	f, err := os.Open(c.opts.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open price cache: %w", err)
	}
	defer f.Close()
	var kept file
	dec := json.NewDecoder(io.LimitReader(f, maxFile))
	if err := dec.Decode(&kept); err != nil || kept.Version != fileVersion {
		return fmt.Errorf("read price cache %s: it is damaged, or of another version; it starts empty", c.opts.Path)
	}
	for _, e := range kept.Entries {
		c.entries[e.Key] = e
	}
	return nil
}

// Lookup implements price.Source. What is not there is wanted from now on.
func (c *Cache) Lookup(k price.Key) []price.Price {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[k]
	if !ok && len(c.entries) < maxWanted && len(k.SKU) <= maxSKU && len(k.Region) <= maxSKU && c.sourceOf(k) >= 0 {
		c.entries[k] = entry{Key: k}
		select {
		case c.wanted <- struct{}{}:
		default:
		}
	}
	return e.Prices
}

// sourceOf is the number of the source that has a key, -1 if none has.
func (c *Cache) sourceOf(k price.Key) int {
	return slices.IndexFunc(c.opts.Sources, func(s Source) bool { return s.Has(k) })
}

// Version implements price.Source.
func (c *Cache) Version() price.Version {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version
}

func (c *Cache) versionNow() price.Version {
	table := price.NewTable("cache")
	for k, e := range c.entries {
		if len(e.Prices) > 0 {
			table.Set(k, e.Prices...)
		}
	}
	return table.Version()
}

// Run refreshes the cache until ctx is done: at once, each hour, which asks for what has become
// old, and some seconds after something has become wanted, when a plan has asked for all that it
// needs. report is given what has failed.
func (c *Cache) Run(ctx context.Context, report func(error)) {
	const pause, gather = time.Hour, 5 * time.Second
	for {
		if err := c.Refresh(ctx); err != nil && ctx.Err() == nil {
			report(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
			continue
		case <-c.wanted:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(gather):
		}
	}
}

// Refresh asks the sources for what is wanted and was not answered within the TTL. If a
// source fails, what it was asked for stays as it was, and is asked for again the next
// time.
func (c *Cache) Refresh(ctx context.Context) error {
	c.refreshing.Lock()
	defer c.refreshing.Unlock()
	var failed []error
	changed := false
	for number, s := range c.opts.Sources {
		keys := c.due(number)
		if len(keys) == 0 {
			continue
		}
		found, err := s.Fetch(ctx, keys)
		if err != nil {
			failed = append(failed, fmt.Errorf("fetch prices: %w", err))
			continue
		}
		c.take(keys, found)
		changed = true
	}
	if changed {
		if err := c.save(); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// due returns the keys to ask a source for, in order.
func (c *Cache) due(source int) (keys []price.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.opts.Now()
	for k, e := range c.entries {
		old := now.Sub(e.Asked) >= c.opts.TTL || e.Asked.After(now) // the clock was set back
		if old && c.sourceOf(k) == source {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, price.Compare)
	return keys
}

// take keeps what a source has found. A key that had a price and no longer has one keeps
// the last one: sources have gaps, and their dates are shown.
func (c *Cache) take(keys []price.Key, found *price.Table) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.opts.Now()
	for _, k := range keys {
		e := c.entries[k]
		e.Key, e.Asked = k, now
		if prices := found.Lookup(k); len(prices) > 0 {
			e.Prices = prices
		}
		c.entries[k] = e
	}
	c.version = c.versionNow()
}

// save writes the file, whole or not at all.
func (c *Cache) save() error {
	if c.opts.Path == "" {
		return nil
	}
	data, err := json.Marshal(c.kept())
	if err != nil {
		return fmt.Errorf("write price cache: %w", err)
	}
	dir := filepath.Dir(c.opts.Path)
	f, err := os.CreateTemp(dir, ".prices-*")
	if err != nil {
		return fmt.Errorf("write price cache: %w", err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), c.opts.Path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("write price cache: %w", err)
	}
	if err := durable.SyncDir(dir); err != nil {
		return fmt.Errorf("write price cache: %w", err)
	}
	return nil
}

func (c *Cache) kept() file {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := file{Version: fileVersion}
	for _, e := range c.entries {
		kept.Entries = append(kept.Entries, e)
	}
	slices.SortFunc(kept.Entries, func(a, b entry) int { return price.Compare(a.Key, b.Key) })
	return kept
}
