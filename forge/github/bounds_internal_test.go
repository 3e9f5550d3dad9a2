package github

import (
	"crypto/rand"
	"strconv"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// The bounds of memory cannot be seen from outside.

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	c := newCache()
	noise := make([]byte, 512<<10) // does not compress
	_, _ = rand.Read(noise)
	for i := range 100 {
		c.put(&cached{key: strconv.Itoa(i), etag: "e", packed: pack(noise)})
		c.get("0") // recently used, so it stays
	}
	if c.size > maxCached || c.recent.Len() != len(c.entries) || len(c.entries) < 20 {
		t.Errorf("%d bytes in %d entries", c.size, len(c.entries))
	}
	if c.get("0") == nil || c.get("99") == nil || c.get("1") != nil {
		t.Error("not the least recently used went")
	}
	if body, err := c.get("99").body(); err != nil || string(body) != string(noise) {
		t.Errorf("the body has changed: %v", err)
	}
	c.put(&cached{key: "huge", packed: make([]byte, maxCachedEntry+1)})
	if c.get("huge") != nil {
		t.Error("a huge body was kept")
	}
	size := c.size
	c.put(&cached{key: "99", etag: "f", packed: pack(noise)})
	if c.size != size || c.get("99").etag != "f" {
		t.Errorf("replacing changed the size by %d", c.size-size)
	}
}

func TestStatusMemoryIsBounded(t *testing.T) {
	t.Parallel()
	m := newStatusMemory()
	key := func(i int) statusKey { return statusKey{"app", holdfast.Revision(strconv.Itoa(i)), "c"} }
	status := holdfast.CommitStatus{State: holdfast.StatusSuccess}
	for i := range 2 * maxStatuses {
		m.swap(key(i), status)
	}
	if len(m.values) != maxStatuses || len(m.last) != maxStatuses || m.recent.Len() != maxStatuses {
		t.Errorf("%d, %d, %d remembered", len(m.values), len(m.last), m.recent.Len())
	}
	if m.swap(key(2*maxStatuses-1), status) != status || m.swap(key(0), status) == status {
		t.Error("not the oldest was forgotten")
	}
}
