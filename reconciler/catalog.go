package reconciler

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates"
)

// catalog is what one tree of a repository says of clusters. The documents of
// files that two trees share are parsed once, and what was resolved from content
// that they share is resolved once: work grows with what changed.
type catalog struct {
	repo  string
	tree  holdfast.Tree
	id    string // the Git id of the tree
	files map[string]*file
	names map[string][]entry // more than one: claimed twice

	mu       sync.Mutex
	resolved map[string]*resolution
	states   map[string][]entry // by location; nil: not asked for yet
	renames  map[string]string  // former names to new ones; nil: not asked for yet
}

type file struct {
	path   string
	id     string // the Git id of the content
	docs   []templates.Document
	faults holdfast.Faults
}

type entry struct {
	file *file
	doc  templates.Document
}

// resolution is what a cluster's document and all that it refers to come to.
type resolution struct {
	doc      templates.Document
	digest   holdfast.Digest // empty: faults say why
	location string
	template string
	dir      string
	reads    []string // folders of the tree that the digest depends on
	faults   holdfast.Faults
}

// catalogs keeps the catalogs that were made last, a few for each repository.
type catalogs struct {
	mu   sync.Mutex
	last map[string][]*catalog // newest first
}

// catalogsKept is how many trees of a repository are remembered: the tracked
// branch, and the pull requests that are being looked at.
const catalogsKept = 16

func newCatalogs() *catalogs { return &catalogs{last: make(map[string][]*catalog)} }

// find returns the catalog of a tree, and otherwise the newest one to start from.
func (c *catalogs) find(repo, id string) (found, base *catalog) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, cat := range c.last[repo] {
		if cat.id == id {
			c.last[repo] = slices.Insert(slices.Delete(c.last[repo], i, i+1), 0, cat)
			return cat, nil
		}
	}
	if kept := c.last[repo]; len(kept) > 0 {
		return nil, kept[0]
	}
	return nil, nil
}

func (c *catalogs) keep(cat *catalog) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := slices.Insert(c.last[cat.repo], 0, cat)
	c.last[cat.repo] = kept[:min(len(kept), catalogsKept)]
}

// forgetVersions drops what was resolved with a template's version: the tags
// have moved.
func (c *catalogs) forgetVersions() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, kept := range c.last {
		for _, cat := range kept {
			cat.mu.Lock()
			maps.DeleteFunc(cat.resolved, func(name string, _ *resolution) bool { return versioned(cat.names[name]) })
			cat.mu.Unlock()
		}
	}
}

func versioned(entries []entry) bool {
	return slices.ContainsFunc(entries, func(e entry) bool {
		return e.doc.Cluster.Template != nil && e.doc.Cluster.Template.Version != ""
	})
}

// catalog returns the catalog of a revision, or of a tree by its id.
func (r *Reconciler) catalog(ctx context.Context, repo Repository, treeish string) (*catalog, error) {
	tree, err := r.opts.Git.Tree(ctx, repo.Name, treeish)
	if err != nil {
		return nil, fmt.Errorf("open %s at %s: %w", repo.Name, treeish, err)
	}
	id, err := tree.Hash(".")
	if err != nil {
		return nil, fmt.Errorf("open %s at %s: %w", repo.Name, treeish, err)
	}
	found, base := r.catalogs.find(repo.Name, id)
	if found != nil {
		return found, nil
	}
	cat := &catalog{
		repo: repo.Name, tree: tree, id: id,
		files: make(map[string]*file), names: make(map[string][]entry), resolved: make(map[string]*resolution),
	}
	if base == nil {
		err = cat.readAll(ctx, repo)
	} else {
		err = r.derive(ctx, repo, base, cat)
	}
	if err != nil {
		return nil, fmt.Errorf("read clusters of %s at %s: %w", repo.Name, treeish, err)
	}
	r.catalogs.keep(cat)
	return cat, nil
}

func (c *catalog) readAll(ctx context.Context, repo Repository) error {
	return fs.WalkDir(c.tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case !d.Type().IsRegular() || !defines(repo, name):
			return nil
		}
		c.read(name)
		return nil
	})
}

// derive makes cat from base, reading only what differs.
func (r *Reconciler) derive(ctx context.Context, repo Repository, base, cat *catalog) error {
	changes, err := r.opts.Git.Diff(ctx, repo.Name, base.id, cat.id)
	if err != nil {
		return err
	}
	cat.files, cat.names = maps.Clone(base.files), maps.Clone(base.names)
	touched := make(map[string]bool)
	for _, change := range changes {
		for _, name := range []string{change.From, change.Path} {
			touch(touched, name)
			cat.forget(name)
		}
	}
	for _, change := range changes {
		if change.Kind != "deleted" && defines(repo, change.Path) {
			cat.read(change.Path)
		}
	}
	base.mu.Lock()
	defer base.mu.Unlock()
	for name, res := range base.resolved {
		if same(base.names[name], cat.names[name]) && res.faults == nil && !reads(res, touched) {
			cat.resolved[name] = res
		}
	}
	return nil
}

// touch marks a changed path and all folders around it.
func touch(touched map[string]bool, name string) {
	for name != "" && name != "." && !touched[name] {
		touched[name] = true
		name = path.Dir(name)
	}
	touched["."] = true
}

func reads(res *resolution, touched map[string]bool) bool {
	return slices.ContainsFunc(res.reads, func(dir string) bool { return touched[dir] })
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
	old := c.files[name]
	if old == nil {
		return
	}
	delete(c.files, name)
	for _, doc := range old.docs {
		key := doc.Cluster.Name
		left := slices.DeleteFunc(slices.Clone(c.names[key]), func(e entry) bool { return e.file == old })
		if len(left) == 0 {
			delete(c.names, key)
		} else {
			c.names[key] = left
		}
	}
}

// read takes in one file. What is wrong with it is a fault, not an error: the
// other clusters still work.
func (c *catalog) read(name string) {
	f := &file{path: name}
	data, err := c.tree.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if id, err := c.tree.Hash(name); err == nil {
		f.id = id
	}
	if err != nil {
		f.faults = holdfast.Faults{{File: name, Message: err.Error(), Hint: "cluster files are small; move other data out of the configured paths"}}
	} else {
		f.docs, f.faults = templates.ParseClusters(name, data)
	}
	if len(f.docs) == 0 && len(f.faults) == 0 {
		return
	}
	c.files[name] = f
	for _, doc := range f.docs {
		key := doc.Cluster.Name
		c.names[key] = append(slices.Clone(c.names[key]), entry{file: f, doc: doc})
	}
}

// faults returns what is wrong with the files themselves, whatever cluster it
// is about, sorted by position.
func (c *catalog) faults() holdfast.Faults {
	var out holdfast.Faults
	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		out = append(out, c.files[name].faults...)
	}
	return out
}

// resolve says what a cluster comes to in this tree; nil if it is not defined.
func (r *Reconciler) resolve(ctx context.Context, c *catalog, name string) (*resolution, error) {
	c.mu.Lock()
	res := c.resolved[name]
	c.mu.Unlock()
	entries := c.names[name]
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
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resolved[name] = res
	return res, nil
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
	return nil
}

// differing returns the names of clusters that two trees say different things
// of, sorted: changed, added, deleted, or newly at fault.
func (r *Reconciler) differing(ctx context.Context, from, to *catalog) ([]string, error) {
	names := make(map[string]bool)
	for name, entries := range to.names {
		if !same(from.names[name], entries) {
			names[name] = true
		}
	}
	for name := range from.names {
		if len(to.names[name]) == 0 {
			names[name] = true
		}
	}
	touched := make(map[string]bool)
	changes, err := r.opts.Git.Diff(ctx, to.repo, from.id, to.id)
	if err != nil {
		return nil, err
	}
	for _, change := range changes {
		touch(touched, change.Path)
		touch(touched, change.From)
	}
	for name := range to.names {
		if names[name] {
			continue
		}
		old, err := r.resolve(ctx, from, name)
		if err != nil {
			return nil, err
		}
		if old == nil || old.faults != nil || reads(old, touched) {
			names[name] = true
		}
	}
	return r.effective(ctx, from, to, slices.Sorted(maps.Keys(names)))
}

// effective keeps the names whose content really differs: a moved file, a
// comment or a label changes nothing.
func (r *Reconciler) effective(ctx context.Context, from, to *catalog, names []string) ([]string, error) {
	var out []string
	for _, name := range names {
		before, err := r.resolve(ctx, from, name)
		if err != nil {
			return nil, err
		}
		after, err := r.resolve(ctx, to, name)
		if err != nil {
			return nil, err
		}
		if before == nil || after == nil || !before.digest.Equal(after.digest) {
			if before != nil && after != nil && len(before.faults) > 0 && slices.Equal(before.faults, after.faults) {
				continue // as wrong as it was
			}
			out = append(out, name)
		}
	}
	return out, nil
}

// ownState reports whether a state location is in Holdfast's own backend.
func ownState(location string) bool {
	dir, _ := path.Split(location)
	return dir == "clusters/"
}
