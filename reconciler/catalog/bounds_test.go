package catalog_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/catalog"
)

// memory is a repository whose trees are in memory.
type memory map[string]fstest.MapFS

type memoryTree struct {
	fstest.MapFS
	id string
}

func (t memoryTree) Hash(name string) (string, error) { return t.id + name, nil }

func (m memory) Tree(_ context.Context, _, revision string) (holdfast.Tree, error) {
	return memoryTree{m[revision], revision}, nil
}

func (m memory) Diff(context.Context, string, string, string) ([]holdfast.TreeChange, error) {
	return nil, fmt.Errorf("nothing is kept that could differ: %w", holdfast.ErrNotFound)
}

// TestOneContentUnderManyNames: a tree can give one content many names, and nothing of
// such a tree is kept for others. Large ones are those of TestLargeContentUnderManyNames.
func TestOneContentUnderManyNames(t *testing.T) {
	t.Parallel()
	wantBound(t, claimOfA, 150, "more than 100 documents have the name a")
}

const claimOfA = "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: a}\n"

// wantBound reads a tree that has a text in so many files twice: it has that fault, and
// is not kept.
func wantBound(t *testing.T, text string, count int, want string) {
	t.Helper()
	files := fstest.MapFS{}
	for i := range count {
		files[fmt.Sprintf("clusters/%05d.yaml", i)] = &fstest.MapFile{Data: []byte(text)}
	}
	reader := catalog.NewReader(catalog.Options{Git: memory{"head": files}, Globs: map[string][]string{"fleet": {"**/*.yaml"}}})
	var first *catalog.Catalog
	for range 2 {
		cat, err := reader.Read(t.Context(), "fleet", "head")
		if err != nil {
			t.Fatal(err)
		}
		if cat == first {
			t.Error("the catalog is kept")
		}
		if first = cat; !strings.Contains(cat.Faults().Error(), want) {
			t.Errorf("%.300v", cat.Faults())
		}
	}
}
