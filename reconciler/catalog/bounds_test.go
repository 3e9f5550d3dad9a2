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

// TestOneContentUnderManyNames: a tree can give one content thousands of names, and
// nothing of such a tree is kept for others.
func TestOneContentUnderManyNames(t *testing.T) {
	t.Parallel()
	const document = "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: a}\n"
	for name, c := range map[string]struct {
		text  string
		files int
		want  string
	}{
		"large": {document + "# " + strings.Repeat("x", 1<<20-100) + "\n", 150, "files that define clusters have more than 134217728 bytes, with this file"},
		"many":  {document, 20_000, "more than 100 documents have the name a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := fstest.MapFS{}
			for i := range c.files {
				files[fmt.Sprintf("clusters/%05d.yaml", i)] = &fstest.MapFile{Data: []byte(c.text)}
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
				if first = cat; !strings.Contains(cat.Faults().Error(), c.want) {
					t.Errorf("%.300v", cat.Faults())
				}
			}
		})
	}
}
