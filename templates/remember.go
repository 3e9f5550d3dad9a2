package templates

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/lru"
	"github.com/holdfast-dev/holdfast/templates/modules"
)

// Resolver makes root modules. It remembers what it has read of folders and
// templates, by their content. It is safe for concurrent use.
type Resolver struct {
	versions  Versions
	varied    []string                   // see Varying
	trees     *lru.Cache[string]         // keys of templates, by tree and folder
	read      *lru.Cache[[][]string]     // paths that templates were read from, by what their documents say
	templates *lru.Cache[loadedTemplate] // by all that they were read from
	folders   *lru.Cache[*modules.Folder]
}

type loadedTemplate struct {
	template *Template
	faults   holdfast.Faults
}

// How much is remembered. Of the trees of open pull requests, one of each, there may be
// thousands, and as many versions of one template: these are bounded by what they weigh.
const (
	maxTrees         = 4096
	maxReads         = 8 // sets of paths for what one document says: a module may call others or not
	maxTemplateBytes = 128 << 20
)

// What a template weighs: what every one has compiled, and what it has for each value of its
// document. That of the library, of some 1,700 values, was measured with 0.9 MiB.
const (
	templateBytes = 200 << 10
	valueBytes    = 400
	faultBytes    = 500
)

// NewResolver returns a Resolver. Without versions (nil) every released
// template is a fault, and those by path work.
func NewResolver(versions Versions) *Resolver {
	return &Resolver{
		versions:  versions,
		trees:     lru.New[string](maxTrees),
		read:      lru.New[[][]string](maxTrees),
		templates: lru.NewSized(maxTemplateBytes, loadedTemplate.weight),
		folders:   lru.New[*modules.Folder](4096),
	}
}

// Using returns a Resolver that finds released templates with versions and
// shares what r remembers.
func (r *Resolver) Using(versions Versions) *Resolver {
	using := *r
	using.versions = versions
	return &using
}

// Varying returns a Resolver for engines in whose environment these variables may have
// another value in another project or environment, of those that may lead to another store
// of states (location.Variables). It shares what r remembers.
func (r *Resolver) Varying(variables []string) *Resolver {
	varying := *r
	varying.varied = variables
	return &varying
}

// load reads the template in a folder of a tree. Modules may be anywhere in the
// tree, so it is remembered by the whole tree; and as most commits change
// something else, by what it was read from, too.
func (r *Resolver) load(tree holdfast.Tree, dir string) (loadedTemplate, error) {
	hash, err := tree.Hash(".")
	if err != nil {
		return loadedTemplate{}, fmt.Errorf("hash tree: %w", err)
	}
	at := "tree " + hash + ":" + dir
	if key, ok := r.trees.Get(at); ok {
		if loaded, ok := r.templates.Get(key); ok {
			return loaded, nil
		}
	}
	now := content{tree: tree, states: map[string]string{}}
	document, err := now.key(dir, []string{path.Join(dir, templateFile)})
	if err != nil {
		return loadedTemplate{}, err
	}
	read, _ := r.read.Get(document)
	for _, names := range read {
		key, err := now.key(dir, names)
		if err != nil {
			return loadedTemplate{}, err
		}
		if loaded, ok := r.templates.Get(key); ok {
			r.trees.Put(at, key)
			return loaded, nil
		}
	}
	t, faults, err := loadTemplate(tree, dir, r.folders)
	if err != nil {
		return loadedTemplate{}, err
	}
	key := at // what is missing for a template with faults may be anywhere
	if len(faults) == 0 {
		names := t.reads()
		if key, err = now.key(dir, names); err != nil {
			return loadedTemplate{}, err
		}
		if !slices.ContainsFunc(read, func(other []string) bool { return slices.Equal(other, names) }) {
			r.read.Put(document, append([][]string{names}, read[:min(len(read), maxReads-1)]...))
		}
	}
	loaded := loadedTemplate{t, faults}
	r.trees.Put(at, key)
	r.templates.Put(key, loaded)
	return loaded, nil
}

// weight is about how many bytes of memory are needed to remember it.
func (l loadedTemplate) weight() int64 {
	weight := int64(len(l.faults)) * faultBytes
	if l.template != nil {
		weight += templateBytes + int64(l.template.values)*valueBytes
	}
	return weight
}

// reads returns what a template depends on in its tree, all providers together.
func (t *Template) reads() []string {
	names := map[string]bool{t.File: true, path.Join(path.Dir(t.File), lockFileName): true}
	for _, p := range t.providers {
		for dir, part := range p.parts {
			names[dir] = true
			for _, name := range part.Linked {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// content says what is at paths of a tree, and looks once at each.
type content struct {
	tree   holdfast.Tree
	states map[string]string // by path
}

// key is of what is at some paths. A template that was read from all of them in one tree would
// be read from another one with the same key as it was.
func (c content) key(dir string, names []string) (string, error) {
	digest := holdfast.NewDigester("template content")
	digest.Add(dir)
	for _, name := range names {
		is, ok := c.states[name]
		if !ok {
			var err error
			if is, err = state(c.tree, name); err != nil {
				return "", err
			}
			c.states[name] = is
		}
		digest.Add(name, is)
	}
	return string(digest.Digest()), nil
}

// state says what is at a path, as far as a root module may depend on it: the
// hash of a file does not say whether it is executable.
func state(tree holdfast.Tree, name string) (string, error) {
	hash, err := tree.Hash(name)
	var info fs.FileInfo
	if err == nil {
		info, err = (&modules.Gatherer{Tree: tree}).Stat(name)
	}
	if _, refused := modules.Refused(err); refused || errors.Is(err, fs.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("look for %s: %w", name, err)
	}
	return fmt.Sprintf("%v %s", info.Mode(), hash), nil
}
