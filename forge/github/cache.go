package github

import (
	"container/list"
	"net/http"
	"sync"
)

const (
	maxCached      = 16 << 20 // bytes of bodies in one cache
	maxCachedEntry = 1 << 20  // bytes of one body
)

// cache keeps answers with their ETag, so that asking again for what has not
// changed costs nothing of the rate limit. The least recently used go first.
type cache struct {
	mu      sync.Mutex
	entries map[string]*list.Element // of *cached
	recent  *list.List               // the most recently used first
	size    int
}

type cached struct {
	key    string
	etag   string
	header http.Header
	body   []byte // never written to
}

func newCache() *cache {
	return &cache{entries: make(map[string]*list.Element), recent: list.New()}
}

func cacheKey(req *http.Request) string { return req.URL.String() + " " + req.Header.Get("Accept") }

func (c *cache) get(key string) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.entries[key]
	if !ok {
		return nil
	}
	c.recent.MoveToFront(element)
	return element.Value.(*cached)
}

func (c *cache) put(entry *cached) {
	if len(entry.body) > maxCachedEntry {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, ok := c.entries[entry.key]; ok {
		c.remove(element)
	}
	c.entries[entry.key] = c.recent.PushFront(entry)
	c.size += entry.weight()
	for c.size > maxCached {
		c.remove(c.recent.Back())
	}
}

// remove takes an element out; c.mu is held.
func (c *cache) remove(element *list.Element) {
	entry := c.recent.Remove(element).(*cached)
	delete(c.entries, entry.key)
	c.size -= entry.weight()
}

// weight counts the body, the key and a kilobyte for all else.
func (e *cached) weight() int { return len(e.body) + len(e.key) + 1<<10 }
