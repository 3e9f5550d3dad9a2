package lru_test

import (
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/templates/lru"
)

func kept[V any](c *lru.Cache[V], keys ...string) []string {
	return slices.DeleteFunc(keys, func(key string) bool { _, ok := c.Get(key); return !ok })
}

// What was not used for longest is forgotten first, however many values the limit holds.
func TestBounds(t *testing.T) {
	t.Parallel()
	few := lru.New[int](2)
	few.Put("a", 1)
	few.Put("b", 1)
	few.Get("a")
	few.Put("c", 1)
	if got := kept(few, "a", "b", "c"); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("of two values %v are kept", got)
	}

	sized := lru.NewSized(10, func(text string) int64 { return int64(len(text)) })
	for _, key := range []string{"a", "b", "c"} {
		sized.Put(key, "four")
	}
	if got := kept(sized, "a", "b", "c"); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("of ten bytes %v are kept", got)
	}
	sized.Put("c", "c")
	sized.Put("d", "four")
	if got := kept(sized, "b", "c", "d"); !slices.Equal(got, []string{"b", "c", "d"}) {
		t.Errorf("after one has become smaller %v are kept", got)
	}
	sized.Put("e", "larger than all of it")
	if got := kept(sized, "b", "c", "d", "e"); !slices.Equal(got, []string{"e"}) {
		t.Errorf("after one that is larger than the limit %v are kept", got)
	}
	if text, _ := sized.Get("e"); text != "larger than all of it" {
		t.Errorf("it is %q", text)
	}
}
