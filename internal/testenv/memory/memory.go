// Package memory has folders that need no disk, for tests that often write small
// files, such as databases: a commit to a disk waits for it, which tells nothing
// about the code.
package memory

import (
	"os"
	"testing"
)

const (
	shared = "/dev/shm"
	// least is how many bytes have to be free: containers often have but 64 MiB there.
	least = 1 << 30
)

// Dir returns a new folder that ends with the test. It is in memory where this
// machine has a file system for that with some room, and else the test's own
// temporary folder. Programs in it may be refused.
func Dir(t testing.TB) string {
	t.Helper()
	if !roomy(shared) {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(shared, "holdfast-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return dir
}
