package catalog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler/parallel"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/document"
	"github.com/holdfast-dev/holdfast/templates/modules"
	"github.com/holdfast-dev/holdfast/templates/runnerdoc"
)

// Catalog is what one tree of a repository says of clusters. The documents of
// files that two trees share are parsed once, and what was resolved from content
// that they share is resolved once: work grows with what changed.
type Catalog struct {
	Repo  string
	Tree  holdfast.Tree
	ID    string // the Git id of the tree
	reads reads
	files shards[*File]
	names shards[[]Entry] // more than one: claimed twice
	// Of files that cannot be read as they should, of names that say what they were before,
	// and of files with runners there are few.
	spoiled, renaming, running map[string]bool
	upgrading                  shards[bool] // names whose documents say within what newer versions of their template are proposed

	index *catalogIndex
	bounds

	mu       sync.Mutex
	resolved shards[*Resolution]
	pending  map[string]bool                // names that are not resolved
	faulty   map[string]bool                // names that are resolved, to faults
	renames  map[string][]string            // former names to new ones; nil: not asked for yet
	strays   map[string]map[string]string   // documents that left the configured paths since other trees, by name; see Misplaced
	untitled map[[sha256.Size]byte][]string // what documents say apart from their names to these; nil: not asked for yet
	claims   map[string][]Entry             // documents that other trees do not have so, by the ids of these; see NewClaims
}

// File is a file that defines clusters, or that cannot be read as it should.
type File struct {
	Path   string
	ID     string // the Git id of the content
	docs   []document.Document
	size   int // bytes that it was written with
	Faults holdfast.Faults
	// Runners are the runners and rules in it, and RunnerFaults what is wrong with others
	// whose names cannot be read: no cluster is in doubt for that.
	Runners      []runnerdoc.Document
	RunnerFaults holdfast.Faults
}

// Entry is one document that claims a name.
type Entry struct {
	File *File
	Doc  document.Document
}

// Resolution is what a cluster's document and all that it refers to resolve to.
type Resolution struct {
	Doc    document.Document
	Digest holdfast.Digest // empty: faults say why
	// Others are digests of the same that an earlier version, or one with another
	// configuration, has recorded; see templates.Root.
	Others   []holdfast.Digest
	Location string
	Template string
	Dir      string
	// SecretEnv are the names of credentials that secret variables refer to, by defaults of
	// the template and in the code as well; with faults, those that the document refers to.
	SecretEnv []string
	reads     []string // folders of the tree that the digest depends on
	Faults    holdfast.Faults
}

// forgetResolved drops what names resolve to. It holds mu while it asks which.
func (c *Catalog) forgetResolved(which func(name string) bool) {
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

// unresolve drops what a name resolves to. The caller holds mu, or is alone.
func (c *Catalog) unresolve(name string) {
	c.resolved.remove(name)
	delete(c.faulty, name)
	delete(c.pending, name)
	if len(c.names.get(name)) > 0 {
		c.pending[name] = true
	}
}

func versioned(entries []Entry) bool {
	return slices.ContainsFunc(entries, func(e Entry) bool {
		return e.Doc.Cluster.Template != nil && e.Doc.Cluster.Template.Version != ""
	})
}

// readAll reads every file that may define clusters, some side by side: at the
// first look at a repository that is what one waits for.
func (c *Catalog) readAll(ctx context.Context) error {
	var names []string
	err := walk(ctx, c.Tree, ".", func(name string) error {
		ok, err := c.defines(name)
		if ok {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return err
	}
	files := make([]*File, len(names))
	err = parallel.Each(ctx, len(names), func(i int) error {
		var err error
		files[i], err = c.parse(names[i])
		return err
	})
	if err != nil {
		return err
	}
	for i, f := range files {
		c.take(names[i], f)
	}
	return nil
}

// walk calls look for each regular file of a folder and of those below it. A folder that
// the tree refuses to read, such as one that is nested too deep, is passed over.
func walk(ctx context.Context, tree holdfast.Tree, dir string, look func(name string) error) error {
	var limit holdfast.PathLimit
	return fs.WalkDir(tree, dir, func(name string, d fs.DirEntry, err error) error {
		if _, refused := modules.Refused(err); refused {
			return fs.SkipDir
		}
		if err = cmp.Or(err, ctx.Err(), limit.Add(name)); err != nil {
			return err
		}
		if d.Type().IsRegular() {
			return look(name)
		}
		return nil
	})
}

// documented adds the names that files before or after a change define to names.
func (c *Catalog) documented(names map[string]bool, change holdfast.TreeChange) {
	for _, file := range []string{change.From, change.Path} {
		if f := c.files.get(file); f != nil {
			for _, doc := range f.docs {
				names[doc.Cluster.Name] = true
			}
		}
	}
}

func same(a, b []Entry) bool {
	return slices.EqualFunc(a, b, func(x, y Entry) bool { return x.File.Same(y.File) })
}

// Same reports whether two trees have the same file: it may have been read for
// each of them.
func (f *File) Same(other *File) bool {
	return f == other || f != nil && other != nil && f.ID != "" && f.ID == other.ID && f.Path == other.Path
}

// defines reports whether a file may define clusters or runners. The error is the tree's.
func (c *Catalog) defines(name string) (bool, error) {
	if !match(c.reads.clusters, name) && !match(c.reads.runners, name) {
		return false, nil
	}
	example, err := templates.OfTemplate(c.Tree, name)
	return !example && err == nil, err
}

func (c *Catalog) forget(name string) {
	old := c.files.get(name)
	if old == nil {
		return
	}
	c.files.remove(name)
	c.release(old)
	delete(c.spoiled, name)
	delete(c.running, name)
	for _, doc := range old.docs {
		key := doc.Cluster.Name
		c.define(key, slices.DeleteFunc(slices.Clone(c.names.get(key)), func(e Entry) bool { return e.File == old }))
	}
}

// define says which documents a name has, and sorts these. The caller is alone.
func (c *Catalog) define(name string, entries []Entry) {
	delete(c.renaming, name)
	c.upgrading.remove(name)
	if len(entries) == 0 {
		c.names.remove(name)
		return
	}
	slices.SortFunc(entries, byPlace)
	c.names.set(name, entries)
	if slices.ContainsFunc(entries, func(e Entry) bool { return e.Doc.Cluster.RenamedFrom != "" }) {
		c.renaming[name] = true
	}
	if ref := entries[0].Doc.Cluster.Template; ref != nil && ref.Name != "" && ref.Upgrades != "" {
		c.upgrading.set(name, true)
	}
}

// read reads one file, if it may define clusters or runners.
func (c *Catalog) read(name string) error {
	ok, err := c.defines(name)
	if !ok {
		return err
	}
	f, err := c.parse(name)
	if err == nil {
		c.take(name, f)
	}
	return err
}

// parse reads a file; nil if it has nothing to do with clusters and runners. What is wrong
// with it is a fault, not an error: the other clusters still work. An error is the
// tree's: a catalog is kept, and must not remember what passes. Several may be read at
// once.
func (c *Catalog) parse(name string) (*File, error) {
	f := &File{Path: name}
	data, err := c.Tree.ReadFile(name)
	gone, why := missing(err)
	if gone {
		return nil, nil
	} else if err != nil && why == "" {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if id, err := c.Tree.Hash(name); err == nil {
		f.ID = id
	}
	if err != nil {
		f.Faults = holdfast.Faults{{File: strings.ToValidUTF8(name, "\uFFFD"), Message: strings.ToValidUTF8(err.Error(), "\uFFFD"), Hint: "cluster files are small; move other data out of the configured paths"}}
	} else if c.fits(f, len(data)) {
		alone := !match(c.reads.clusters, name)
		if f.Runners, f.RunnerFaults = runnerdoc.Parse(name, data, alone, c.reads.documents); !alone {
			f.docs, f.Faults = document.ParseClusters(name, data)
			c.reads.require(f.docs)
		}
	}
	if len(f.docs) == 0 && len(f.Faults) == 0 && len(f.Runners) == 0 && len(f.RunnerFaults) == 0 {
		c.release(f)
		return nil, nil
	}
	return f, nil
}

func (c *Catalog) take(name string, f *File) {
	if f == nil {
		return
	}
	c.boundClaims(f)
	c.files.set(name, f)
	if len(f.Faults) > 0 {
		c.spoiled[name] = true
	}
	if len(f.Runners) > 0 || len(f.RunnerFaults) > 0 {
		c.running[name] = true
	}
	for _, doc := range f.docs {
		key := doc.Cluster.Name
		c.define(key, append(slices.Clone(c.names.get(key)), Entry{File: f, Doc: doc}))
		c.pending[key] = true
	}
}

// Faults returns what is wrong with the files themselves, whatever cluster it
// is about, sorted by position.
func (c *Catalog) Faults() holdfast.Faults {
	var out holdfast.Faults
	for _, name := range slices.Sorted(maps.Keys(c.spoiled)) {
		out = append(out, c.files.get(name).Faults...)
	}
	return out
}

// unresolved returns the names that are not resolved yet, sorted.
func (c *Catalog) unresolved() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.pending))
}

// FaultsOf returns what is wrong with the documents of one cluster.
func (f *File) FaultsOf(cluster string) holdfast.Faults {
	var out holdfast.Faults
	for _, fault := range f.Faults {
		if fault.Cluster == cluster {
			out = append(out, fault)
		}
	}
	return out
}

func claimedTwice(entries []Entry) holdfast.Faults {
	var out holdfast.Faults
	for i, e := range entries {
		other := entries[(i+1)%len(entries)].Doc.Fault("", "", "metadata", "name")
		out = append(out, e.Doc.Fault(
			fmt.Sprintf("the name %q is claimed twice: also at %s", e.Doc.Cluster.Name, other.Position()),
			"give one of the two another metadata.name", "metadata", "name",
		))
	}
	return out
}

// Unproven is why a tree that does not define a cluster in a file, where it was,
// does not prove that it was removed; empty if it does. Each document is looked at
// apart: that others of the file are there says nothing of this one. An error is the
// tree's.
func (c *Catalog) Unproven(name, file string) (string, error) {
	if faults := c.Faults(); len(faults) > 0 {
		return "it may be in a file that cannot be read: " + faults[0].Error(), nil
	}
	if file == "" {
		return "", nil
	}
	data, err := c.Tree.ReadFile(file)
	if gone, why := missing(err); gone || why != "" {
		if why != "" {
			why = fmt.Sprintf("it is not known what happened to %s: %s", file, why)
		}
		return why, nil
	} else if err != nil {
		return "", fmt.Errorf("look for %s: %w", file, err)
	}
	if c.files.get(file) == nil {
		return file + " is still there, but no longer defines a cluster or is outside the configured paths", nil
	}
	if line := decode.Names(file, data)[name]; line > 0 {
		return fmt.Sprintf("%s:%d has its name, in a document that is not a cluster", file, line), nil
	}
	return "", nil
}

// missing reports whether an error says that nothing is at a path. Otherwise it returns
// what is there, or on the way there, if that is why it cannot be read; empty if the tree
// failed.
func missing(err error) (gone bool, why string) {
	var at *fs.PathError
	if !errors.As(err, &at) {
		return false, ""
	}
	if at.Err == fs.ErrNotExist { //nolint:errorlint // wrapped, it says that a link or a submodule is on the way
		return true, ""
	}
	if what, refused := modules.Refused(err); refused {
		return false, "it " + what
	} else if errors.Is(err, fs.ErrNotExist) {
		return false, strings.TrimSuffix(at.Err.Error(), ": "+fs.ErrNotExist.Error())
	}
	return false, ""
}

// Retitled returns the documents that say what gone said under other names, wherever
// they are, and do not say that its name is their former name: a letter of its name may
// have been mistyped, or the former name forgotten, while its file was moved.
func (c *Catalog) Retitled(gone holdfast.Cluster) []holdfast.Cluster {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.untitled == nil {
		c.untitled = make(map[[sha256.Size]byte][]string)
		for name, entries := range c.names.all() {
			for _, e := range entries {
				said := untitled(e.Doc.Cluster)
				if names := c.untitled[said]; len(names) == 0 || names[len(names)-1] != name {
					c.untitled[said] = append(names, name)
				}
			}
		}
	}
	said := untitled(gone)
	var out []holdfast.Cluster
	for _, name := range slices.Sorted(slices.Values(c.untitled[said])) {
		entries := c.names.get(name)
		for _, e := range entries {
			other := e.Doc.Cluster
			is := len(entries) == 1 || untitled(other) == said
			if is && name != gone.Name && other.RenamedFrom != gone.Name {
				out = append(out, other)
			}
		}
	}
	return out
}

// Says reports whether a document with a name says what another one does, apart from names.
func (c *Catalog) Says(name string, other holdfast.Cluster) bool {
	said := untitled(other)
	return slices.ContainsFunc(c.names.get(name), func(e Entry) bool { return untitled(e.Doc.Cluster) == said })
}

// untitled is a digest of what a document says apart from its names and its place, in
// a form in which values from YAML and from records compare.
func untitled(c holdfast.Cluster) [sha256.Size]byte {
	if c.Template != nil && c.Template.Path != "" { // it is relative to the file, which may be another one
		ref := *c.Template
		ref.Path = path.Join(path.Dir(c.Path), ref.Path)
		c.Template = &ref
	}
	c.Name, c.RenamedFrom, c.Path, c.Line = "", "", "", 0
	data, _ := json.Marshal(c) // plain values always marshal
	return sha256.Sum256(data)
}

// Renamed returns the names, sorted, that a tree gives to a cluster which it no
// longer defines.
func (c *Catalog) Renamed(name string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.renames == nil {
		c.renames = make(map[string][]string)
		for _, to := range slices.Sorted(maps.Keys(c.renaming)) {
			for _, e := range c.names.get(to) {
				from := e.Doc.Cluster.RenamedFrom
				if from != "" && len(c.names.get(from)) == 0 && !slices.Contains(c.renames[from], to) {
					c.renames[from] = append(c.renames[from], to)
				}
			}
		}
	}
	return c.renames[name]
}

// Renaming returns the names, sorted, of the clusters whose documents say that they had
// another one.
func (c *Catalog) Renaming() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.renaming))
}

// Named returns the documents that claim a name; more than one are a fault.
func (c *Catalog) Named(name string) []Entry { return c.names.get(name) }

// All yields the names and their documents in no order.
func (c *Catalog) All() iter.Seq2[string, []Entry] { return c.names.all() }

// Len is how many names there are.
func (c *Catalog) Len() int { return c.names.len() }

// File returns a file that has to do with clusters, or nil.
func (c *Catalog) File(name string) *File { return c.files.get(name) }

// Spoiled reports whether a file cannot be read as it should.
func (c *Catalog) Spoiled(name string) bool { return c.spoiled[name] }

// Upgrading yields the names whose documents say within what newer versions of
// their template are proposed, in no order.
func (c *Catalog) Upgrading() iter.Seq2[string, bool] { return c.upgrading.all() }

// AnyUpgrading reports whether there are such names.
func (c *Catalog) AnyUpgrading() bool { return c.upgrading.len() > 0 }
