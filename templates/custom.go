// Root modules that users wrote.

package templates

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/nearest"
	"github.com/holdfast-dev/holdfast/rootmodule"
	"github.com/holdfast-dev/holdfast/templates/document"
	"github.com/holdfast-dev/holdfast/templates/modules"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// fromModule makes the root module from a folder of the user's own.
func (r *Resolver) fromModule(tree holdfast.Tree, doc document.Document) (*Root, holdfast.Faults, error) {
	c := doc.Cluster
	dir := path.Clean(c.Module.Path)
	if !document.LocalPath(c.Module.Path) {
		return nil, holdfast.Faults{doc.Fault(
			fmt.Sprintf("spec.module.path %q leaves the repository", wording.Clip(c.Module.Path)), "", "spec", "module", "path")}, nil
	}
	g := modules.NewGatherer(tree, r.folders)
	err := g.GatherRoot(dir, c.Engine.Name, func() holdfast.Fault {
		return doc.Fault(fmt.Sprintf("spec.module.path: there is no folder %s", dir),
			"the path starts from the root of the repository", "spec", "module", "path")
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read module %s: %w", dir, err)
	}
	if unit, err := isUnit(g, dir); err != nil {
		return nil, nil, err
	} else if unit {
		return r.fromUnit(tree, doc, dir)
	}
	if err := g.ReferRoot(dir); err != nil {
		return nil, nil, fmt.Errorf("read module %s: %w", dir, err)
	}
	faults := g.Faults
	m := g.Modules[dir]
	if m.Files == 0 && len(faults) == 0 {
		faults = append(faults, doc.Fault(fmt.Sprintf("spec.module.path: folder %s has no .tf file", dir), "", "spec", "module", "path"))
	}
	faults = append(faults, moduleFaults(doc, g, dir)...)
	if len(faults) > 0 || doc.Faulty() {
		return nil, faults, g.Err()
	}
	root, err := r.assembleModule(c, g, layout{dir: dir, code: dir, stated: m.Backend()})
	if root != nil {
		root.Unset = unsetFaults(doc, g, dir)
	}
	return root, nil, cmp.Or(err, g.Err())
}

func moduleFaults(doc document.Document, g *modules.Gatherer, dir string) holdfast.Faults {
	var faults holdfast.Faults
	m, c := g.Modules[dir], doc.Cluster
	faults = append(faults, m.BackendFaults(dir)...)
	if b := m.Backend(); b != nil {
		at := fmt.Sprintf("%s:%d", path.Join(dir, b.File), b.Line)
		if c.State != nil {
			faults = append(faults, doc.KeyFault(
				fmt.Sprintf("spec.state in addition to the %s in %s", b.Words(), at), "remove one of them", "spec", "state"))
		}
		if kept, _ := b.Attributes["path"].(string); b.Kind == "local" && !path.IsAbs(kept) {
			faults = append(faults, holdfast.Fault{
				File: path.Join(dir, b.File), Line: b.Line,
				Message: "a local backend keeps the state in a workspace that is thrown away",
				Hint:    "remove the block: the state is kept by Holdfast then; or use another backend",
			})
		}
	}
	names := slices.Collect(maps.Keys(m.Variables))
	_, refs := m.SecretsOf(c)
	for _, name := range slices.Sorted(maps.Keys(c.Variables)) { // those that could be read
		v, declared := m.Variables[name]
		if _, secret := refs[name]; secret {
			continue
		}
		if !declared {
			faults = append(faults, doc.KeyFault(fmt.Sprintf("module %s declares no variable %q", dir, wording.Clip(name)),
				wording.DidYouMean(name, names), "spec", "variables", name))
		} else if want := v.Fits(c.Variables[name]); want != "" {
			faults = append(faults, doc.Fault(fmt.Sprintf("variable %s must be %s", name, want),
				"as "+dir+" declares it", "spec", "variables", name))
		} else if m := misfit(v, c.Variables[name]); m != nil {
			faults = append(faults, doc.Fault(fmt.Sprintf("variable %s%s must be %s, and %s", name, m.path, m.want, m.got),
				"as "+dir+" declares it", "spec", "variables", name))
		}
	}
	faults = append(faults, secretFaults(doc, g, dir)...)
	return append(faults, takenFaults(g, dir)...)
}

// takenFaults are the faults of files that have the names of ours.
func takenFaults(g *modules.Gatherer, dir string) (faults holdfast.Faults) {
	for _, name := range []string{backendFile, variablesFile, rootmodule.StateOverrideFile, rootmodule.UnitFile} {
		if _, taken := g.Entries[path.Join(dir, name)]; taken {
			faults = append(faults, holdfast.Fault{
				File: path.Join(dir, name), Message: "a file of this name is written by Holdfast", Hint: "rename it",
			})
		}
	}
	return faults
}

// unsetFaults are the variables that have no value from anywhere: the engine, which nobody
// could answer, would advise an option of its own command line. A misspelt variable in the
// document is the cause, and is reported alone.
func unsetFaults(doc document.Document, g *modules.Gatherer, dir string) holdfast.Faults {
	m, c := g.Modules[dir], doc.Cluster
	assigned, unreadable := g.Assigned(dir)
	if len(unreadable) > 0 {
		return nil
	}
	given := g.SecretVariables(dir)
	for _, a := range assigned {
		given = append(given, a.Name)
	}
	names := slices.Collect(maps.Keys(m.Variables))
	for name := range c.Variables {
		if _, declared := m.Variables[name]; !declared {
			name = nearest.Of(name, names)
		}
		given = append(given, name)
	}
	var faults holdfast.Faults
	for _, name := range m.Unset() {
		if v := m.Variables[name]; !slices.Contains(given, name) {
			faults = append(faults, doc.KeyFault(
				fmt.Sprintf("variable %q of module %s has no value, and no default (%s:%d)", name, dir, path.Join(dir, path.Base(v.File)), v.Line),
				"set it below spec.variables", "spec", "module"))
		}
	}
	return faults
}

// layout is where a custom root module and its code are.
type layout struct {
	dir    string           // of the root module
	code   string           // of its code, which is elsewhere if it is a unit of Terragrunt
	stated *modules.Backend // says where the state is; nil: nothing does
	files  []File           // that Holdfast makes in any case
}

func (r *Resolver) assembleModule(c holdfast.Cluster, g *modules.Gatherer, at layout) (*Root, error) {
	root := &Root{
		Dir: at.dir, tree: g.Tree, entries: sortedEntries(g.Entries),
		EngineConstraint: c.Engine.Version, Reads: g.Reads(), CodeSecrets: g.SecretRefs(at.code), files: at.files,
	}
	plain, refs := g.Modules[at.code].SecretsOf(c)
	if root.Variables = c.Variables; len(refs) > 0 {
		root.Variables, root.Secrets = plain, refs
		secrets, err := rootmodule.EncodeSecrets(refs)
		if err != nil {
			return nil, err
		}
		root.files = append(root.files, File{Name: rootmodule.SecretFile, Data: secrets})
	}
	var b backend
	if at.stated != nil {
		b = r.backendIn(at.stated, at.dir, c)
	} else {
		b = r.backendOf(c)
		root.files = append(root.files, File{
			Name: backendFile,
			Data: slices.Concat(header("the cluster's document"), renderCluster(holdfast.Cluster{}, b.kind, b.config, "", nil)),
		})
	}
	root.StateLocation, root.OwnState, root.state = b.location, b.own, b
	if len(root.Variables) > 0 {
		values, err := renderVariables(root.Variables)
		if err != nil {
			return nil, err
		}
		root.files = append(root.files, File{Name: variablesFile, Data: values})
	}
	slices.SortFunc(root.files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })

	digest := holdfast.NewDigester("source")
	digest.Add("module", at.dir, c.Engine.Name, c.Engine.Version)
	for _, folder := range slices.Sorted(slices.Values(g.Dirs)) {
		digest.Add(folder, string(g.Digests[folder]))
	}
	g.AddExtra(digest)
	for _, f := range root.files {
		digest.Add(f.Name, string(f.Data))
	}
	root.identify(digest.Digest(), c)
	return root, nil
}
