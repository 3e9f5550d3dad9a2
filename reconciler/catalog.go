package reconciler

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// catalog is what one tree of a repository says of clusters. The documents of
// files that two trees share are parsed once, and what was resolved from content
// that they share is resolved once: work grows with what changed.
type catalog struct {
	repo  string
	tree  holdfast.Tree
	id    string // the Git id of the tree
	files shards[*file]
	names shards[[]entry] // more than one: claimed twice
	// Of files that cannot be read as they should, and of names that say what
	// they were before, there are few.
	spoiled, renaming map[string]bool
	upgrading         shards[bool] // names whose documents say within what newer versions of their template are proposed

	index *catalogIndex

	mu       sync.Mutex
	resolved shards[*resolution]
	pending  map[string]bool     // names that are not resolved
	faulty   map[string]bool     // names that are resolved, to faults
	renames  map[string][]string // former names to new ones; nil: not asked for yet
}

type file struct {
	path   string
	id     string // the Git id of the content
	docs   []document.Document
	faults holdfast.Faults
}

type entry struct {
	file *file
	doc  document.Document
}

// resolution is what a cluster's document and all that it refers to come to.
type resolution struct {
	doc      document.Document
	digest   holdfast.Digest // empty: faults say why
	location string
	template string
	dir      string
	reads    []string // folders of the tree that the digest depends on
	faults   holdfast.Faults
}

// forgetResolved drops what names come to. It holds mu while it asks which.
func (c *catalog) forgetResolved(which func(name string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for name := range c.resolved.all() {
		if which(name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		c.unresolve(name)
	}
}

// unresolve drops what a name comes to. The caller holds mu, or is alone.
func (c *catalog) unresolve(name string) {
	c.resolved.remove(name)
	delete(c.faulty, name)
	delete(c.pending, name)
	if len(c.names.get(name)) > 0 {
		c.pending[name] = true
	}
}

func versioned(entries []entry) bool {
	return slices.ContainsFunc(entries, func(e entry) bool {
		return e.doc.Cluster.Template != nil && e.doc.Cluster.Template.Version != ""
	})
}

// catalog returns the catalog of a revision, or of a tree by its id. Near are
// others of the repository from which it may differ little, the nearest first: what
// is in them is not read again. A pull request may differ from its base by
// thousands of files.
func (r *Reconciler) catalog(ctx context.Context, repo Repository, treeish string, near ...string) (*catalog, error) {
	tree, err := r.opts.Git.Tree(ctx, repo.Name, treeish)
	if err != nil {
		return nil, fmt.Errorf("open %s at %s: %w", repo.Name, treeish, err)
	}
	id, err := tree.Hash(".")
	if err != nil {
		return nil, fmt.Errorf("open %s at %s: %w", repo.Name, treeish, err)
	}
	if found := r.catalogs.find(repo.Name, id); found != nil {
		return found, nil
	}
	cat := &catalog{
		repo: repo.Name, tree: tree, id: id, index: r.catalogs.indexOf(repo.Name),
		spoiled: make(map[string]bool), renaming: make(map[string]bool),
		pending: make(map[string]bool), faulty: make(map[string]bool),
	}
	if base := r.nearest(ctx, repo, near); base == nil {
		err = cat.readAll(ctx, repo)
	} else {
		err = r.derive(ctx, repo, base, cat)
	}
	if err != nil {
		return nil, fmt.Errorf("read clusters of %s at %s: %w", repo.Name, treeish, err)
	}
	cat.files.freeze()
	cat.names.freeze()
	cat.upgrading.freeze()
	r.catalogs.keep(cat)
	return cat, nil
}

// readAll reads every file that may define clusters, some side by side: at the
// first look at a repository that is what one waits for.
func (c *catalog) readAll(ctx context.Context, repo Repository) error {
	var names []string
	err := fs.WalkDir(c.tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && defines(repo, name) && !templates.OfTemplate(c.tree, name) {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return err
	}
	files := make([]*file, len(names))
	err = sideBySide(ctx, len(names), func(i int) error {
		files[i] = c.parse(names[i])
		return nil
	})
	for i, f := range files {
		c.take(names[i], f)
	}
	return err
}

// sideBySide calls do with the numbers below n, as many at once as there are
// processors, until one fails.
func sideBySide(ctx context.Context, n int, do func(i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(n, runtime.GOMAXPROCS(0)) {
		g.Go(func() error {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if err := do(int(i)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// derive makes cat from base, reading only what differs.
func (r *Reconciler) derive(ctx context.Context, repo Repository, base, cat *catalog) error {
	changes, err := r.changes(ctx, base, cat)
	if err != nil {
		return err
	}
	cat.files, cat.names, cat.upgrading = base.files, base.names, base.upgrading // none is written to any more
	cat.spoiled, cat.renaming = maps.Clone(base.spoiled), maps.Clone(base.renaming)
	base.mu.Lock()
	cat.resolved = base.resolved.copied()
	cat.pending, cat.faulty = maps.Clone(base.pending), maps.Clone(base.faulty)
	base.mu.Unlock()

	again := maps.Clone(cat.faulty) // what mends them may be anywhere
	for _, change := range changes {
		cat.documented(again, change)
		cat.forget(change.From)
		cat.forget(change.Path)
	}
	for _, change := range changes {
		if change.Kind != "deleted" && defines(repo, change.Path) && !templates.OfTemplate(cat.tree, change.Path) {
			cat.read(change.Path)
		}
		cat.documented(again, change)
	}
	cat.index.reading(touchedBy(changes), again)
	for name := range again {
		cat.unresolve(name)
	}
	return nil
}

// documented adds the names that files before or after a change define to names.
func (c *catalog) documented(names map[string]bool, change holdfast.TreeChange) {
	for _, path := range []string{change.From, change.Path} {
		if f := c.files.get(path); f != nil {
			for _, doc := range f.docs {
				names[doc.Cluster.Name] = true
			}
		}
	}
}

func same(a, b []entry) bool {
	return slices.EqualFunc(a, b, func(x, y entry) bool { return x.file.same(y.file) })
}

// same reports whether two trees have the same file: it may have been read for
// each of them.
func (f *file) same(other *file) bool {
	return f == other || f != nil && other != nil && f.id != "" && f.id == other.id && f.path == other.path
}

func defines(repo Repository, name string) bool {
	return slices.ContainsFunc(repo.Clusters, func(glob string) bool {
		ok, err := doublestar.Match(glob, name)
		return ok && err == nil
	})
}

func (c *catalog) forget(name string) {
	old := c.files.get(name)
	if old == nil {
		return
	}
	c.files.remove(name)
	delete(c.spoiled, name)
	for _, doc := range old.docs {
		key := doc.Cluster.Name
		c.define(key, slices.DeleteFunc(slices.Clone(c.names.get(key)), func(e entry) bool { return e.file == old }))
	}
}

// define says which documents a name has. The caller is alone.
func (c *catalog) define(name string, entries []entry) {
	delete(c.renaming, name)
	c.upgrading.remove(name)
	if len(entries) == 0 {
		c.names.remove(name)
		return
	}
	c.names.set(name, entries)
	if entries[0].doc.Cluster.RenamedFrom != "" {
		c.renaming[name] = true
	}
	if ref := entries[0].doc.Cluster.Template; ref != nil && ref.Name != "" && ref.Upgrades != "" {
		c.upgrading.set(name, true)
	}
}

// read takes in one file.
func (c *catalog) read(name string) { c.take(name, c.parse(name)) }

// parse reads a file; nil if it has nothing to do with clusters. What is wrong
// with it is a fault, not an error: the other clusters still work. Several may be
// read at once.
func (c *catalog) parse(name string) *file {
	f := &file{path: name}
	data, err := c.tree.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if id, err := c.tree.Hash(name); err == nil {
		f.id = id
	}
	if err != nil {
		f.faults = holdfast.Faults{{File: name, Message: err.Error(), Hint: "cluster files are small; move other data out of the configured paths"}}
	} else {
		f.docs, f.faults = document.ParseClusters(name, data)
	}
	if len(f.docs) == 0 && len(f.faults) == 0 {
		return nil
	}
	return f
}

func (c *catalog) take(name string, f *file) {
	if f == nil {
		return
	}
	c.files.set(name, f)
	if len(f.faults) > 0 {
		c.spoiled[name] = true
	}
	for _, doc := range f.docs {
		key := doc.Cluster.Name
		c.define(key, append(slices.Clone(c.names.get(key)), entry{file: f, doc: doc}))
		c.pending[key] = true
	}
}

// faults returns what is wrong with the files themselves, whatever cluster it
// is about, sorted by position.
func (c *catalog) faults() holdfast.Faults {
	var out holdfast.Faults
	for _, name := range slices.Sorted(maps.Keys(c.spoiled)) {
		out = append(out, c.files.get(name).faults...)
	}
	return out
}

// resolve says what a cluster comes to in this tree; nil if it is not defined.
func (r *Reconciler) resolve(ctx context.Context, c *catalog, name string) (*resolution, error) {
	c.mu.Lock()
	res := c.resolved.get(name)
	c.mu.Unlock()
	entries := c.names.get(name)
	if res != nil || len(entries) == 0 {
		return res, nil
	}
	res = &resolution{doc: entries[0].doc}
	switch faults := entries[0].file.faultsOf(name); {
	case len(entries) > 1:
		res.faults = claimedTwice(entries)
	case len(faults) > 0:
		res.faults = faults
	default:
		root, faults, err := r.resolver.Resolve(ctx, c.tree, res.doc)
		if err != nil {
			return nil, fmt.Errorf("resolve cluster %q: %w", name, err)
		}
		res.faults = faults
		if root != nil && len(faults) == 0 {
			res.digest, res.location, res.template, res.dir = root.Digest, root.StateLocation, root.Template, root.Dir
			res.reads = root.Reads
			res.faults = r.forbidden(c.repo, res)
		}
	}
	if len(res.faults) > 0 {
		res.digest = ""
	}
	c.index.add(name, res)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resolved.set(name, res)
	delete(c.pending, name)
	if len(res.faults) > 0 {
		c.faulty[name] = true
	}
	return res, nil
}

// resolveAll resolves what is not resolved yet, side by side: the index knows of
// all names then.
func (r *Reconciler) resolveAll(ctx context.Context, c *catalog) error {
	names := c.unresolved()
	return sideBySide(ctx, len(names), func(i int) error {
		_, err := r.resolve(ctx, c, names[i])
		return err
	})
}

// unresolved returns the names that are not resolved yet, sorted.
func (c *catalog) unresolved() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.pending))
}

func (f *file) faultsOf(cluster string) holdfast.Faults {
	var out holdfast.Faults
	for _, fault := range f.faults {
		if fault.Cluster == cluster {
			out = append(out, fault)
		}
	}
	return out
}

func claimedTwice(entries []entry) holdfast.Faults {
	var out holdfast.Faults
	for i, e := range entries {
		other := entries[(i+1)%len(entries)].doc.Fault("", "", "metadata", "name")
		out = append(out, e.doc.Fault(
			fmt.Sprintf("the name %q is claimed twice: also at %s", e.doc.Cluster.Name, other.Position()),
			"give one of the two another metadata.name", "metadata", "name",
		))
	}
	return out
}

// forbidden holds a document to what its repository and path may define.
func (r *Reconciler) forbidden(repo string, res *resolution) holdfast.Faults {
	if err := r.opts.Allow(repo, res.doc.Cluster, res.location); err != nil {
		return holdfast.Faults{res.doc.Fault(
			err.Error(), "bind it under repositories[].allow in holdfast.yaml, or move the cluster", "metadata", "name",
		)}
	}
	if r.opts.Limits == nil {
		return nil
	}
	_, most := r.opts.Limits(res.doc.Cluster)
	if key, bound := res.doc.Cluster.Limits.Beyond(most); key != "" {
		return holdfast.Faults{res.doc.Fault(
			fmt.Sprintf("spec.limits.%s is more than this cluster may have, which is %s", key, bound),
			"ask for less, or allow it under runs.limits.max."+key+" in holdfast.yaml, for all or under runs.limits.overrides", "spec", "limits", key,
		)}
	}
	return nil
}
