package initcache_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/holdfast-dev/holdfast/runner/folders"
	"github.com/holdfast-dev/holdfast/runner/initcache"
)

// hole makes a file of a module that is large, and takes no room on the disk.
func hole(t *testing.T, from initcache.Source, size int64) {
	t.Helper()
	path := filepath.Join(from.Root, ".terraform/modules/m/large")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

// TestPublishBounds: what init left is copied up to a size, holes included, and is
// not read into memory.
func TestPublishBounds(t *testing.T) { //nolint:paralleltest // it counts what is allocated
	dir := t.TempDir()
	s, err := initcache.New(initcache.Options{Dir: dir, Size: 200 << 20})
	if err != nil {
		t.Fatal(err)
	}
	removable(t, dir)
	from := left(t, "a provider")
	hole(t, from, 150<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := s.Publish(t.Context(), from, initcache.Names{Key: "key", Final: "key"}); err != nil {
		t.Fatal(err)
	}
	f, ok := s.Open("key")
	if !ok {
		t.Fatal("no folder")
	}
	f.Release()
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 20<<20 {
		t.Errorf("%d bytes of memory for a module of %d", used, 150<<20)
	}
	hole(t, from, 1<<40)
	if _, err := s.Publish(t.Context(), from, initcache.Names{Key: "next", Final: "next"}); !errors.Is(err, folders.ErrBounds) {
		t.Errorf("a module of a terabyte: %v, want %v", err, folders.ErrBounds)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "tmp-*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// TestLinksOfModules: what a link in a module leads to is not looked into. It can be
// whatever the agent can read, and never ends.
func TestLinksOfModules(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	from, outside := left(t, "a provider"), t.TempDir()
	file := filepath.Join(outside, "file")
	for _, err := range []error{
		os.WriteFile(file, []byte("of somebody else"), 0o600),
		os.Symlink(outside, filepath.Join(from.Root, ".terraform/modules/m/link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Publish(t.Context(), from, initcache.Names{Key: "key", Final: "key"}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("and changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, ok := s.Open("key")
	if !ok {
		t.Fatal("what a link of a module leads to is part of the prepared folder")
	}
	f.Release()
}
