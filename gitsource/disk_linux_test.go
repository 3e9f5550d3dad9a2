package gitsource_test

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/gitsource"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/internal/testenv/mounts"
)

// A fetch for which the disk of the mirrors has no room says so, and one that has room
// takes it back.
func TestFetchToAFullDisk(t *testing.T) {
	t.Parallel()
	if mounts.Again(t) {
		return
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	repo := gitserver.New(t).CreateRepo(repoName)
	for name, at := range map[string]string{"over HTTP": repo.URL, "of a folder": repo.Path} {
		repo.Commit("main", name, map[string]string{"small": name})
		mirrors := filepath.Join(dir, name)
		s := open(t, mirrors, gitsource.Repository{URL: at})
		fetch(t, s)
		if full := s.DiskFull(); full != nil {
			t.Errorf("%s: there is room, and the disk is full for %q", name, full)
		}
		random := make([]byte, 2<<20)
		_, _ = rand.Read(random)
		repo.Commit("main", "large", map[string]string{"large": hex.EncodeToString(random)})
		if _, err := s.Fetch(t.Context(), repoName); err == nil || !slices.Equal(s.DiskFull(), []string{repoName}) {
			t.Errorf("%s: there is no room: %v, and the disk is full for %q", name, err, s.DiskFull())
		}
		repo.Branch("main", "main^")
		fetch(t, s)
		if full := s.DiskFull(); full != nil {
			t.Errorf("%s: there is room again, and the disk is full for %q", name, full)
		}
		if err := os.RemoveAll(mirrors); err != nil {
			t.Fatal(err)
		}
	}
}
