//go:build !race

package gitsource_test

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast/gitsource"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
)

// Many fetches of a little each leave few packs, and never write again what came
// with the first, large one.
func TestPacksStayFew(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("fetches many times")
	}
	dir := t.TempDir()
	repo := gitserver.NewRepo(t, filepath.Join(dir, "origin.git"))
	files := make(map[string]string)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 10 {
		data := make([]byte, 100<<10)
		for j := range data {
			data[j] = byte(rnd.Uint32())
		}
		files[fmt.Sprintf("clusters/%03d.yaml", i)] = hex.EncodeToString(data)
	}
	repo.Commit("main", "all", files)
	mirrors := filepath.Join(dir, "mirrors")
	source := open(t, mirrors, gitsource.Repository{URL: repo.Path, Branch: "main"})
	fetch(t, source)
	packs := filepath.Join(mirrors, "*.git", "objects", "pack", "*.pack")
	first, err := filepath.Glob(packs)
	if err != nil || len(first) != 1 {
		t.Fatalf("the first fetch left %v: %v", first, err)
	}
	revisions := map[string]string{}
	for i := range 50 {
		text := fmt.Sprintf("name: edit-%d\n", i)
		revisions[repo.Commit("main", "edit", map[string]string{"clusters/007.yaml": text})] = text
		fetch(t, source)
	}
	left, err := filepath.Glob(packs)
	if err != nil || len(left) > 21 {
		t.Errorf("%d packs are left: %v", len(left), err)
	}
	if _, err := os.Stat(first[0]); err != nil {
		t.Errorf("the first pack was written again: %v", err)
	}
	for revision, want := range revisions {
		tr := tree(t, source, revision)
		if got, err := tr.ReadFile("clusters/007.yaml"); err != nil || string(got) != want {
			t.Errorf("%s has %q: %v", revision, got, err)
		}
	}
}
