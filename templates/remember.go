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
	templates *lru.Cache[loadedTemplate] // by tree and folder
	recent    *lru.Cache[[]readTemplate] // by folder
	folders   *lru.Cache[*modules.Folder]
}

type loadedTemplate struct {
	template *Template
	faults   holdfast.Faults
}

// readTemplate is a template without faults, and what it was read from.
type readTemplate struct {
	template *Template
	content  map[string]string // what state says of each path that it depends on
}

// How much is remembered. A template with what is compiled of it takes about a
// megabyte.
const (
	maxTrees    = 256
	maxFolders  = 64
	maxVersions = 4 // of a template in one folder
)

// NewResolver returns a Resolver. Without versions (nil) every released
// template is a fault, and those by path work.
func NewResolver(versions Versions) *Resolver {
	return &Resolver{
		versions:  versions,
		templates: lru.New[loadedTemplate](maxTrees),
		recent:    lru.New[[]readTemplate](maxFolders),
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
	key := hash + ":" + dir
	if loaded, ok := r.templates.Get(key); ok {
		return loaded, nil
	}
	recent, _ := r.recent.Get(dir)
	for _, before := range recent {
		same, err := before.sameIn(tree)
		if err != nil {
			return loadedTemplate{}, err
		}
		if same {
			loaded := loadedTemplate{template: before.template}
			r.templates.Put(key, loaded)
			return loaded, nil
		}
	}
	t, faults, err := loadTemplate(tree, dir, r.folders)
	if err != nil {
		return loadedTemplate{}, err
	}
	loaded := loadedTemplate{t, faults}
	r.templates.Put(key, loaded)
	if len(faults) > 0 {
		return loaded, nil
	}
	read := readTemplate{template: t, content: map[string]string{}}
	for _, name := range t.reads() {
		if read.content[name], err = state(tree, name); err != nil {
			return loadedTemplate{}, err
		}
	}
	r.recent.Put(dir, append([]readTemplate{read}, recent[:min(len(recent), maxVersions-1)]...))
	return loaded, nil
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

// sameIn reports whether the template would be read from tree as it was.
func (t readTemplate) sameIn(tree holdfast.Tree) (bool, error) {
	for _, name := range slices.Sorted(maps.Keys(t.content)) {
		now, err := state(tree, name)
		if err != nil || now != t.content[name] {
			return false, err
		}
	}
	return true, nil
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
