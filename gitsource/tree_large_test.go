//go:build !race

package gitsource_test

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/gitsource"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
)

// A file of 100 MB in the repository costs neither its readers nor those of
// other files their memory.
func TestTreeWithHugeFile(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("writes 100 MB")
	}
	repo := gitserver.NewRepo(t, filepath.Join(t.TempDir(), "repo.git"))
	sha := repo.Commit("main", "huge", map[string]string{"huge.yaml": repeat("name: cluster\n", 100<<20/14), "a": "1"})
	s := open(t, t.TempDir(), gitsource.Repository{URL: repo.Path})
	fetch(t, s)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	tr := tree(t, s, sha)
	for range 20 {
		if _, err := tr.ReadFile("huge.yaml"); err == nil || !strings.Contains(err.Error(), "larger than the limit") {
			t.Fatalf("ReadFile = %v", err)
		}
		if data, err := tr.ReadFile("a"); err != nil || string(data) != "1" {
			t.Fatalf("ReadFile = %q, %v", data, err)
		}
	}
	runtime.ReadMemStats(&after)
	t.Logf("allocated %d MiB", (after.TotalAlloc-before.TotalAlloc)>>20)
}
