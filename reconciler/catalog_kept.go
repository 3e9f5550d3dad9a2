package reconciler

import (
	"context"
	"slices"
	"sync"
)

// catalogs keeps the catalogs that were made last, a few for each repository.
type catalogs struct {
	mu    sync.Mutex
	last  map[string][]*catalog // newest first
	index map[string]*catalogIndex
}

// catalogsKept is how many trees of a repository are remembered: the tracked
// branch, and the pull requests that are being looked at.
const catalogsKept = 16

func newCatalogs() *catalogs {
	return &catalogs{last: make(map[string][]*catalog), index: make(map[string]*catalogIndex)}
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
func (c *catalogs) find(repo, id string) *catalog {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, cat := range c.last[repo] {
		if cat.id == id {
			c.last[repo] = slices.Insert(slices.Delete(c.last[repo], i, i+1), 0, cat)
			return cat
		}
	}
	return nil
}

// newest returns the catalog that was used last; nil if none is kept.
func (c *catalogs) newest(repo string) *catalog {
	c.mu.Lock()
	defer c.mu.Unlock()
	if kept := c.last[repo]; len(kept) > 0 {
		return kept[0]
	}
	return nil
}

func (c *catalogs) keep(cat *catalog) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := slices.Insert(c.last[cat.repo], 0, cat)
	c.last[cat.repo] = kept[:min(len(kept), catalogsKept)]
}

// forgetVersions drops what was resolved with versions of templates that tags
// which have moved may release, and what came to faults: they may tell of versions
// that there are.
func (c *catalogs) forgetVersions(moved tagSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, kept := range c.last {
		for _, cat := range kept {
			cat.forgetResolved(func(name string) bool {
				entries := cat.names.get(name)
				return moved.release(entries) || cat.faulty[name] && versioned(entries)
			})
		}
	}
}

// nearest returns the catalog to start from: the first of near that is kept, else
// the one that was used last; nil if there is none.
func (r *Reconciler) nearest(ctx context.Context, repo Repository, near []string) *catalog {
	for _, treeish := range near {
		if treeish == "" {
			continue
		}
		tree, err := r.opts.Git.Tree(ctx, repo.Name, treeish)
		if err != nil {
			continue // gone, by a forced push
		}
		id, err := tree.Hash(".")
		if err != nil {
			continue
		}
		if cat := r.catalogs.find(repo.Name, id); cat != nil {
			return cat
		}
	}
	return r.catalogs.newest(repo.Name)
}
