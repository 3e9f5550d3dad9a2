package authoring

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// Files and folders of a template.
const (
	templateFile  = "template.yaml"
	examplesDir   = "examples"
	testsDir      = "tests"
	changelogFile = "CHANGELOG.md"
)

// Draft is a template that somebody works on, with its examples and tests. It
// is safe for concurrent use.
type Draft struct {
	Dir string // of template.yaml, in the tree

	// Template is nil if something is wrong with it.
	Template  *templates.Template
	Blueprint templates.Blueprint
	Examples  []Example // those that can be rendered, by file
	Suites    []Suite   // those that could be read, by file
	Changelog []byte    // CHANGELOG.md; nil: there is none

	tree     holdfast.Tree
	resolver *templates.Resolver
}

// Example is a cluster in a file of the folder examples.
type Example struct {
	File string // in the tree
	Text []byte
	Doc  document.Document
	Root *templates.Root
}

// Find returns the folders below dir, itself included, that have a
// template.yaml, sorted. Folders whose names begin with a dot are passed over.
func Find(tree holdfast.Tree, dir string) ([]string, error) {
	var found []string
	err := fs.WalkDir(tree, dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != dir && strings.HasPrefix(path.Base(name), "."):
			return fs.SkipDir
		case path.Base(name) == templateFile && d.Type().IsRegular():
			found = append(found, path.Dir(name))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for templates: %w", err)
	}
	slices.Sort(found)
	return found, nil
}

// Open reads the template in a folder of a tree, its examples and its tests, and
// returns all that is wrong with them, in order of the files. A Draft is returned even
// then, with what is right. The error is the tree's. The tree must not change as long
// as the Draft is used, except for golden files.
func Open(ctx context.Context, tree holdfast.Tree, dir string) (*Draft, holdfast.Faults, error) {
	tree = freeze(tree)
	d := &Draft{Dir: path.Clean(dir), tree: tree}
	d.resolver = templates.NewResolver(draftVersions{d})
	t, faults, err := d.resolver.Load(tree, d.Dir)
	if err != nil {
		return nil, nil, fmt.Errorf("load template %s: %w", d.Dir, err)
	}
	faults = slices.Clone(faults)
	if len(faults) == 0 {
		d.Template, d.Blueprint = t, t.Blueprint()
	}
	for _, read := range []func(context.Context) (holdfast.Faults, error){d.readExamples, d.readSuites} {
		found, err := read(ctx)
		if err != nil {
			return nil, nil, err
		}
		faults = append(faults, found...)
	}
	d.Changelog, err = tree.ReadFile(path.Join(d.Dir, changelogFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("read changelog: %w", err)
	}
	return d, faults, nil
}

// draftVersions returns a draft for whatever version of it is asked for.
type draftVersions struct{ d *Draft }

// Version implements templates.Versions.
func (v draftVersions) Version(_ context.Context, name, version string) (templates.TemplateVersion, error) {
	if v.d.Template != nil && name != v.d.Template.Name {
		return templates.TemplateVersion{}, &templates.NoVersionError{Name: name, Version: version, Templates: []string{v.d.Template.Name}}
	}
	return templates.TemplateVersion{Repo: ".", Tag: name + "/v" + version, Tree: v.d.tree, Dir: v.d.Dir}, nil
}

// Resolve makes the root module of a cluster that is made from the draft.
func (d *Draft) Resolve(ctx context.Context, doc document.Document) (*templates.Root, holdfast.Faults, error) {
	return d.resolver.Resolve(ctx, d.tree, doc)
}

// yamlFiles returns the YAML files of a folder of the template; none if there is
// no such folder.
func (d *Draft) yamlFiles(folder string) ([]string, error) {
	list, err := d.tree.ReadDir(path.Join(d.Dir, folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read folder %s: %w", folder, err)
	}
	var files []string
	for _, item := range list {
		if ext := path.Ext(item.Name()); item.Type().IsRegular() && (ext == ".yaml" || ext == ".yml") {
			files = append(files, path.Join(d.Dir, folder, item.Name()))
		}
	}
	return files, nil
}

func (d *Draft) readExamples(ctx context.Context) (holdfast.Faults, error) {
	files, err := d.yamlFiles(examplesDir)
	if err != nil {
		return nil, err
	}
	var faults holdfast.Faults
	for _, file := range files {
		text, err := d.tree.ReadFile(file)
		if err != nil {
			faults = append(faults, holdfast.Fault{File: file, Message: err.Error()})
			continue
		}
		docs, found := document.ParseClusters(file, text)
		faults = append(faults, found...)
		if len(docs) == 0 && len(found) == 0 {
			faults = append(faults, holdfast.Fault{
				File: file, Message: "example has no cluster",
				Hint: "write a document with apiVersion: holdfast.dev/v1 and kind: Cluster",
			})
		}
		if len(found) > 0 || d.Template == nil {
			continue
		}
		for _, doc := range docs {
			root, found, err := d.Resolve(ctx, doc)
			if err != nil {
				return nil, fmt.Errorf("render example %s: %w", file, err)
			}
			faults = append(faults, found...)
			if root != nil {
				d.Examples = append(d.Examples, Example{File: file, Text: text, Doc: doc, Root: root})
			}
		}
	}
	return faults, nil
}

func (d *Draft) readSuites(context.Context) (holdfast.Faults, error) {
	files, err := d.yamlFiles(testsDir)
	if err != nil {
		return nil, err
	}
	var faults holdfast.Faults
	for _, file := range files {
		data, err := d.tree.ReadFile(file)
		if err != nil {
			faults = append(faults, holdfast.Fault{File: file, Message: err.Error()})
			continue
		}
		suite, found := ParseSuite(file, d.Dir, data)
		faults = append(faults, found...)
		d.Suites = append(d.Suites, suite)
	}
	return faults, nil
}

// ResolveAs makes the root module that a cluster would have if it were made from
// the draft, whatever its document says of a template.
func (d *Draft) ResolveAs(ctx context.Context, doc document.Document) (*templates.Root, holdfast.Faults, error) {
	version := d.Blueprint.Version
	if version == "" {
		version = "0.0.0"
	}
	doc.Cluster.Template = &holdfast.TemplateRef{Name: d.Blueprint.Name, Version: version}
	doc.Cluster.Module = nil
	return d.resolver.Resolve(ctx, d.tree, doc)
}
