package lru

import (
	"container/list"
	"sync"
)

// Cache keeps the values that were used last. It is safe for concurrent use.
type Cache[V any] struct {
	mu    sync.Mutex
	limit int64
	used  int64 // sizes of all values
	size  func(V) int64
	order *list.List // of *cached, the one used last in front
	items map[string]*list.Element
}

type cached[V any] struct {
	key   string
	value V
	size  int64
}

// New returns a cache of at most limit values.
func New[V any](limit int) *Cache[V] {
	return NewSized(int64(limit), func(V) int64 { return 1 })
}

// NewSized returns a cache of values that have at most limit together, in the unit of size. It
// keeps the value that was used last in any case. A value must not change its size.
func NewSized[V any](limit int64, size func(V) int64) *Cache[V] {
	return &Cache[V]{limit: limit, size: size, order: list.New(), items: map[string]*list.Element{}}
}

// Get returns the value of a key, which then is the one used last.
func (c *Cache[V]) Get(key string) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	item, ok := c.items[key]
	if !ok {
		return value, false
	}
	c.order.MoveToFront(item)
	return item.Value.(*cached[V]).value, true
}

// Put keeps a value, and forgets those that were not used for longest beyond the limit.
func (c *Cache[V]) Put(key string, value V) {
	size := c.size(value)
	c.mu.Lock()
	defer c.mu.Unlock()
	if item, ok := c.items[key]; ok {
		c.forget(item)
	}
	c.items[key] = c.order.PushFront(&cached[V]{key, value, size})
	c.used += size
	for c.used > c.limit && c.order.Len() > 1 {
		c.forget(c.order.Back())
	}
}

// forget takes out a value. It is called with mu held.
func (c *Cache[V]) forget(item *list.Element) {
	old := c.order.Remove(item).(*cached[V])
	delete(c.items, old.key)
	c.used -= old.size
}
