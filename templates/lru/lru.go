package lru

import (
	"container/list"
	"sync"
)

// Cache keeps the values that were used last. It is safe for concurrent use.
type Cache[V any] struct {
	mu    sync.Mutex
	limit int
	order *list.List // of *cached, the one used last in front
	items map[string]*list.Element
}

type cached[V any] struct {
	key   string
	value V
}

// New returns a cache of at most limit values.
func New[V any](limit int) *Cache[V] {
	return &Cache[V]{limit: limit, order: list.New(), items: map[string]*list.Element{}}
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
	c.mu.Lock()
	defer c.mu.Unlock()
	if item, ok := c.items[key]; ok {
		item.Value.(*cached[V]).value = value
		c.order.MoveToFront(item)
		return
	}
	c.items[key] = c.order.PushFront(&cached[V]{key, value})
	for c.order.Len() > c.limit {
		oldest := c.order.Back()
		c.order.Remove(oldest)
		delete(c.items, oldest.Value.(*cached[V]).key)
	}
}
