package catalog

import (
	"slices"
	"sync"
)

// catalogs keeps the catalogs that were made last, a few for each repository.
type catalogs struct {
	mu    sync.Mutex
	last  map[string][]*Catalog // newest first
	index map[string]*catalogIndex
}

// catalogsKept is how many trees of a repository are remembered: the tracked
// branch, and the pull requests that are being looked at.
const catalogsKept = 16

func newCatalogs() *catalogs {
	return &catalogs{last: make(map[string][]*Catalog), index: make(map[string]*catalogIndex)}
}

func (c *catalogs) indexOf(repo string) *catalogIndex {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.index[repo] == nil {
		c.index[repo] = newCatalogIndex()
	}
	return c.index[repo]
}

// find returns the catalog of a tree; nil if it is not kept.
func (c *catalogs) find(repo, id string) *Catalog {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, cat := range c.last[repo] {
		if cat.ID == id {
			c.last[repo] = slices.Insert(slices.Delete(c.last[repo], i, i+1), 0, cat)
			return cat
		}
	}
	return nil
}

// newest returns the catalog that was used last; nil if none is kept.
func (c *catalogs) newest(repo string) *Catalog {
	c.mu.Lock()
	defer c.mu.Unlock()
	if kept := c.last[repo]; len(kept) > 0 {
		return kept[0]
	}
	return nil
}

func (c *catalogs) keep(cat *Catalog) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := slices.Insert(c.last[cat.Repo], 0, cat)
	c.last[cat.Repo] = kept[:min(len(kept), catalogsKept)]
}

// forgetVersions drops what was resolved with versions of templates that tags which
// have moved may release, and what resolved to faults: they may mention existing
// versions.
func (c *catalogs) forgetVersions(moved TagSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, kept := range c.last {
		for _, cat := range kept {
			cat.forgetResolved(func(name string) bool {
				entries := cat.names.get(name)
				return moved.Release(entries) || cat.faulty[name] && versioned(entries)
			})
		}
	}
}
