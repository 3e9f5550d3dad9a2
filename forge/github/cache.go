package github

import (
	"bytes"
	"compress/gzip"
	"container/list"
	"io"
	"net/http"
	"sync"
)

const (
	maxCached      = 16 << 20 // bytes of compressed bodies in one cache
	maxCachedEntry = 1 << 20  // bytes of one compressed body
)

// cache keeps answers with their ETag, so that asking again for what has not
// changed costs nothing of the rate limit. A page of pull requests is 2 MB of
// which most says the same, so bodies are kept compressed. The least recently
// used go first.
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
	packed []byte // the body, compressed
}

// pack compresses a body.
func pack(body []byte) []byte {
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed) // the level is valid
	_, _ = w.Write(body)                                 // a Buffer takes everything
	_ = w.Close()
	return packed.Bytes()
}

// body returns the body.
func (e *cached) body() ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(e.packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
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
	if len(entry.packed) > maxCachedEntry {
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
func (e *cached) weight() int { return len(e.packed) + len(e.key) + 1<<10 }
