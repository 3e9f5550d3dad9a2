package templates

import (
	"container/list"
	"sync"
)

// cache keeps the values that were used last. It is safe for concurrent use.
type cache[V any] struct {
	mu    sync.Mutex
	limit int
	order *list.List // of *entry, the one used last in front
	items map[string]*list.Element
}

type cached[V any] struct {
	key   string
	value V
}

func newCache[V any](limit int) *cache[V] {
	return &cache[V]{limit: limit, order: list.New(), items: map[string]*list.Element{}}
}

func (c *cache[V]) get(key string) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	item, ok := c.items[key]
	if !ok {
		return value, false
	}
	c.order.MoveToFront(item)
	return item.Value.(*cached[V]).value, true
}

func (c *cache[V]) put(key string, value V) {
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
