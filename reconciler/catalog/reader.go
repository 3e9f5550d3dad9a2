package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/parallel"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/document"
	"github.com/holdfast-dev/holdfast/templates/location"
	"github.com/holdfast-dev/holdfast/templates/runnerdoc"
)

// Git is what a Reader reads of repositories; *gitsource.Source is one.
type Git interface {
	// Tree opens a revision, or a tree by its id.
	Tree(ctx context.Context, repo, revision string) (holdfast.Tree, error)
	// Diff returns the files that differ between two revisions or trees.
	Diff(ctx context.Context, repo, from, to string) ([]holdfast.TreeChange, error)
}

// Options are what a Reader needs. All are required unless noted.
type Options struct {
	Git      Git
	Resolver *templates.Resolver
	// Globs are those of the files that may define clusters, by repository; **
	// crosses folders.
	Globs map[string][]string
	// Runners are the globs of files that may define runners and rules besides, by
	// repository, and RunnerDocuments what these are held to. Both may be zero.
	Runners         map[string][]string
	RunnerDocuments runnerdoc.Options
	// Check returns why a repository may not define a cluster with that state
	// location.
	Check func(repo string, doc document.Document, stateLocation string) holdfast.Faults
	// Requires returns the conditions of an apply that a cluster has whatever its document
	// says, and what they ask for at least. Nil: none.
	Requires func(c holdfast.Cluster) ([]string, holdfast.GateTerms)
}

// Reader reads catalogs, and keeps those that it read last. It is safe for
// concurrent use.
type Reader struct {
	git      Git
	resolver *templates.Resolver
	opts     Options
	check    func(repo string, doc document.Document, stateLocation string) holdfast.Faults
	kept     *catalogs
}

// NewReader returns a Reader that has read nothing.
func NewReader(opts Options) *Reader {
	return &Reader{git: opts.Git, resolver: opts.Resolver, opts: opts, check: opts.Check, kept: newCatalogs()}
}

// MayDefine reports whether a repository may define, where a document is, a cluster of that
// project, environment and state.
func (r *Reader) MayDefine(repo string, doc document.Document, as holdfast.Applied) bool {
	doc.Cluster.Project, doc.Cluster.Environment, doc.Cluster.Limits = as.Document.Project, as.Document.Environment, as.Document.Limits
	return len(r.check(repo, doc, as.StateLocation)) == 0
}

// ForgetVersions drops what was resolved with versions of templates that tags which
// have moved may release, and what resolved to faults: they may mention existing
// versions.
func (r *Reader) ForgetVersions(moved TagSet) { r.kept.forgetVersions(moved) }

// Read returns the catalog of a revision, or of a tree by its id. Near are
// others of the repository from which it may differ little, the nearest first: what
// is in them is not read again. A pull request may differ from its base by
// thousands of files.
func (r *Reader) Read(ctx context.Context, repo, treeish string, near ...string) (*Catalog, error) {
	tree, err := r.git.Tree(ctx, repo, treeish)
	if err != nil {
		return nil, fmt.Errorf("open %s at %s: %w", repo, treeish, err)
	}
	id, err := tree.Hash(".")
	if err != nil {
		return nil, fmt.Errorf("open %s at %s: %w", repo, treeish, err)
	}
	if found := r.kept.find(repo, id); found != nil {
		return found, nil
	}
	cat := &Catalog{
		Repo: repo, Tree: tree, ID: id, index: r.kept.indexOf(repo),
		reads:   reads{clusters: r.opts.Globs[repo], runners: r.opts.Runners[repo], documents: r.opts.RunnerDocuments, requires: r.opts.Requires},
		spoiled: make(map[string]bool), renaming: make(map[string]bool), running: make(map[string]bool),
		pending: make(map[string]bool), faulty: make(map[string]bool),
	}
	if base := r.nearest(ctx, repo, near); base == nil {
		err = cat.readAll(ctx)
	} else {
		err = r.derive(ctx, base, cat)
	}
	if err != nil {
		return nil, fmt.Errorf("read clusters of %s at %s: %w", repo, treeish, err)
	}
	cat.files.freeze()
	cat.names.freeze()
	cat.upgrading.freeze()
	if !cat.exceeded.Load() { // otherwise which of its files are at fault is by chance, and nothing for other trees
		r.kept.keep(cat)
	}
	return cat, nil
}

// Has reports whether a revision or a tree is there.
func (r *Reader) Has(ctx context.Context, repo, treeish string) bool {
	_, err := r.git.Tree(ctx, repo, treeish)
	return err == nil
}

// nearest returns the catalog to start from: the first of near that is kept, otherwise
// the one that was used last; nil if there is none.
func (r *Reader) nearest(ctx context.Context, repo string, near []string) *Catalog {
	for _, treeish := range near {
		if treeish == "" {
			continue
		}
		tree, err := r.git.Tree(ctx, repo, treeish)
		if err != nil {
			continue // gone, by a forced push
		}
		id, err := tree.Hash(".")
		if err != nil {
			continue
		}
		if cat := r.kept.find(repo, id); cat != nil {
			return cat
		}
	}
	return r.kept.newest(repo)
}

// derive makes cat from base, reading only what differs.
func (r *Reader) derive(ctx context.Context, base, cat *Catalog) error {
	changes, err := r.changes(ctx, base, cat)
	if err != nil {
		return err
	}
	cat.files, cat.names, cat.upgrading = base.files, base.names, base.upgrading // none is written to from here on
	cat.size.Store(base.size.Load())
	cat.spoiled, cat.renaming, cat.running = maps.Clone(base.spoiled), maps.Clone(base.renaming), maps.Clone(base.running)
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
		if change.Kind != "deleted" {
			if err := cat.read(change.Path); err != nil {
				return err
			}
		}
		cat.documented(again, change)
	}
	cat.index.reading(touchedBy(changes), again)
	for name := range again {
		cat.unresolve(name)
	}
	return nil
}

// Resolve says what a cluster resolves to in this tree; nil if it is not defined.
func (r *Reader) Resolve(ctx context.Context, c *Catalog, name string) (*Resolution, error) {
	c.mu.Lock()
	res := c.resolved.get(name)
	c.mu.Unlock()
	entries := c.names.get(name)
	if res != nil || len(entries) == 0 {
		return res, nil
	}
	res = &Resolution{Doc: entries[0].Doc, SecretEnv: namesInDocument(entries[0].Doc.Cluster)}
	switch faults := entries[0].File.FaultsOf(name); {
	case len(entries) > 1:
		res.Faults = claimedTwice(entries)
	case len(faults) > 0:
		more, err := r.resolver.Check(ctx, c.Tree, res.Doc)
		if err != nil && ctx.Err() != nil {
			return nil, fmt.Errorf("resolve cluster %q: %w", name, err)
		}
		res.Faults = append(faults, more...) // these alone, where the template is out of reach
		decode.SortFaults(res.Faults)
	default:
		root, faults, err := r.resolver.Resolve(ctx, c.Tree, res.Doc)
		if err != nil {
			return nil, fmt.Errorf("resolve cluster %q: %w", name, err)
		}
		res.Faults = faults
		if root != nil && len(faults) == 0 {
			res.Digest, res.Location, res.Template, res.Dir = root.Digest, root.StateLocation, root.Template, root.Dir
			res.Others, res.reads = []holdfast.Digest{root.Code, root.Bound}, root.Reads
			res.SecretEnv = namesOfSecrets(root.Secrets, root.CodeSecrets)
			res.Faults = r.check(c.Repo, res.Doc, res.Location)
		}
	}
	if len(res.Faults) > 0 {
		res.Digest, res.Others = "", nil
	}
	c.index.add(name, res)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resolved.set(name, res)
	delete(c.pending, name)
	if len(res.Faults) > 0 {
		c.faulty[name] = true
	}
	return res, nil
}

// ResolveAll resolves what is not resolved yet, side by side: the index knows of
// all names then.
func (r *Reader) ResolveAll(ctx context.Context, c *Catalog) error {
	return r.ResolveEach(ctx, c, func(int, int) {})
}

// ResolveEach is ResolveAll for whoever wants to know how far it is: it calls did with each
// that is resolved, also several at once.
func (r *Reader) ResolveEach(ctx context.Context, c *Catalog, did func(done, of int)) error {
	names := c.unresolved()
	var done atomic.Int64
	return parallel.Each(ctx, len(names), func(i int) error {
		_, err := r.Resolve(ctx, c, names[i])
		did(int(done.Add(1)), len(names))
		return err
	})
}

// InFolder returns the clusters of a tree whose root module is a folder of it and whose
// state's location begins so, by name.
func (r *Reader) InFolder(ctx context.Context, cat *Catalog, dir, location string) []Entry {
	var out []Entry
	for _, name := range slices.Sorted(maps.Keys(maps.Collect(cat.All()))) {
		res, err := r.Resolve(ctx, cat, name) // its own failure is reported where it is looked at
		if err == nil && res != nil && res.Dir == dir && strings.HasPrefix(res.Location, location) {
			out = append(out, cat.names.get(name)[0])
		}
	}
	return out
}

// WithState returns the clusters of a tree that have a state location, sorted.
// What cannot be resolved has none.
func (r *Reader) WithState(ctx context.Context, cat *Catalog, state string) []Entry {
	for _, name := range cat.unresolved() {
		_, _ = r.Resolve(ctx, cat, name) // its own failure is reported where it is looked at
	}
	var out []Entry
	for _, name := range cat.index.at(state) {
		res, err := r.Resolve(ctx, cat, name)
		if err == nil && res != nil && res.Location != "" && location.Same(res.Location, state) {
			out = append(out, cat.names.get(name)[0])
		}
	}
	return out
}
