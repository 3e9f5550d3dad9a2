package templates

import (
	"fmt"
	"path"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/document"
	"github.com/holdfast-dev/holdfast/templates/modules"
	"github.com/holdfast-dev/holdfast/templates/terragrunt"
)

// Sources returns a digest of what a cluster's own repository has for its root module: the
// code of a custom module, or a template in a folder with its modules. Unlike the digest
// of a Root it is there next to faults, too: files that a fault names count. It is empty
// if the document refers to nothing there. An error is the tree's.
func (r *Resolver) Sources(tree holdfast.Tree, doc document.Document) (holdfast.Digest, error) {
	var digest holdfast.Digest
	var err error
	switch c := doc.Cluster; {
	case c.Module != nil && document.LocalPath(c.Module.Path):
		digest, err = r.moduleSources(tree, path.Clean(c.Module.Path), c.Engine.Name)
	case c.Template != nil && c.Template.Path != "":
		if dir, ok := modules.Within(path.Dir(c.Path), c.Template.Path); ok {
			digest, err = r.TemplateSources(tree, dir)
		}
	}
	if _, refused := modules.Refused(err); refused { // such as a path that is too deep: a fault of the document
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("read sources of cluster %q: %w", doc.Cluster.Name, err)
	}
	return digest, nil
}

// TemplateSources returns a digest of all that the template in a folder of a tree is made
// of, as Sources does.
func (r *Resolver) TemplateSources(tree holdfast.Tree, dir string) (holdfast.Digest, error) {
	loaded, err := r.load(tree, dir)
	if err != nil {
		return "", fmt.Errorf("load template %s: %w", dir, err)
	}
	digest := holdfast.NewDigester("template sources")
	if loaded.template != nil {
		digest.Add(string(loaded.template.Digest()))
	}
	faulty := append(slices.Clone(loaded.faults), holdfast.Fault{File: path.Join(dir, templateFile)})
	return digestWith(digest, tree, faulty)
}

func (r *Resolver) moduleSources(tree holdfast.Tree, dir, engine string) (holdfast.Digest, error) {
	g, faults, err := r.gatherModule(tree, dir, engine)
	if err != nil {
		return "", err
	}
	digest := holdfast.NewDigester("module sources")
	for _, folder := range slices.Sorted(slices.Values(g.Dirs)) {
		digest.Add(folder, string(g.Digests[folder]))
	}
	g.AddExtra(digest)
	return digestWith(digest, tree, slices.Concat(faults, g.Faults))
}

// gatherModule gathers a custom module, or a unit of Terragrunt.
func (r *Resolver) gatherModule(tree holdfast.Tree, dir, engine string) (*modules.Gatherer, holdfast.Faults, error) {
	g := modules.NewGatherer(tree, r.folders)
	if err := g.GatherRoot(dir, engine, func() holdfast.Fault { return holdfast.Fault{File: dir} }); err != nil {
		return nil, nil, fmt.Errorf("read module %s: %w", dir, err)
	}
	if is, err := isUnit(g, dir); err != nil {
		return nil, nil, err
	} else if is {
		unit, faults, err := terragrunt.Read(tree, dir)
		if err != nil {
			return nil, nil, fmt.Errorf("read unit %s: %w", dir, err)
		}
		g = modules.NewGatherer(tree, r.folders)
		return g, faults, unit.Gather(g, engine)
	}
	if err := g.ReferRoot(dir); err != nil {
		return nil, nil, fmt.Errorf("read module %s: %w", dir, err)
	}
	return g, nil, nil
}

// digestWith adds the files of faults: one that is refused is not among what was read.
func digestWith(digest *holdfast.Digester, tree holdfast.Tree, faults holdfast.Faults) (holdfast.Digest, error) {
	for _, fault := range faults {
		is, err := state(tree, fault.File)
		if err != nil {
			return "", err
		}
		digest.Add(fault.File, is)
	}
	return digest.Digest(), nil
}
