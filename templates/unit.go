package templates

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/rootmodule"
	"github.com/holdfast-dev/holdfast/templates/document"
	"github.com/holdfast-dev/holdfast/templates/modules"
	"github.com/holdfast-dev/holdfast/templates/terragrunt"
)

// isUnit reports whether a folder that was taken in has the configuration of a unit.
func isUnit(g *modules.Gatherer, dir string) (bool, error) {
	if _, has := g.Entries[path.Join(dir, terragrunt.ConfigFile)]; !has {
		return false, nil
	}
	return terragrunt.Is(g.Tree, dir)
}

// fromUnit makes the root module of a unit of Terragrunt, as far as that is known before
// the agent has Terragrunt render it: its configuration, and the module that it is of if
// that is in the repository.
func (r *Resolver) fromUnit(tree holdfast.Tree, doc document.Document, dir string) (*Root, holdfast.Faults, error) {
	c := doc.Cluster
	unit, faults, err := terragrunt.Read(tree, dir)
	if err != nil {
		return nil, nil, fmt.Errorf("read unit %s: %w", dir, err)
	}
	g := modules.NewGatherer(tree, r.folders)
	if err := unit.Gather(g, c.Engine.Name); err != nil {
		return nil, nil, err
	}
	faults = slices.Concat(faults, g.Faults, unit.Faults(c), unitFaults(doc, g, unit))
	if len(faults) > 0 || doc.Faulty() {
		return nil, faults, g.Err()
	}
	at := layout{
		dir: dir, code: unit.Source.Dir, stated: unit.Backend(g),
		files: []File{{Name: rootmodule.UnitFile, Data: append(header("the terragrunt.hcl next to it"), unitCode...)}},
	}
	root, err := r.assembleModule(c, g, at)
	return root, nil, cmp.Or(err, g.Err())
}

// unitCode keeps an agent that does not know units from planning what is not rendered.
const unitCode = "terraform {\n  required_version = \"= 0.0.0\" # Terragrunt renders this root module\n}\n"

func unitFaults(doc document.Document, g *modules.Gatherer, unit *terragrunt.Unit) holdfast.Faults {
	var faults holdfast.Faults
	if unit.Source.Address == "" {
		if m := g.Modules[unit.Source.Dir]; m.Files == 0 && len(g.Faults) == 0 {
			faults = append(faults, doc.Fault(fmt.Sprintf("spec.module.path: folder %s has no .tf file", unit.Source.Dir), "", "spec", "module", "path"))
		}
		faults = append(faults, moduleFaults(doc, g, unit.Source.Dir)...)
	} else if len(doc.Cluster.Variables) > 0 { // nobody knows which it has
		faults = append(faults, doc.KeyFault("spec.variables of a unit whose module is not in the repository",
			"write them as inputs in "+path.Join(unit.Dir, terragrunt.ConfigFile), "spec", "variables"))
	}
	if unit.Source.Dir != unit.Dir || unit.Source.Address != "" {
		faults = append(faults, takenFaults(g, unit.Dir)...)
	}
	return append(faults, unitStateFaults(doc, g, unit)...)
}

// unitStateFaults are of a unit whose state is said to be in two places.
func unitStateFaults(doc document.Document, g *modules.Gatherer, unit *terragrunt.Unit) holdfast.Faults {
	s := unit.State
	if s == nil {
		return nil
	}
	var faults holdfast.Faults
	if doc.Cluster.State != nil {
		faults = append(faults, doc.KeyFault(fmt.Sprintf("spec.state in addition to the remote_state in %s:%d", s.Place.File, s.Line),
			"remove one of them", "spec", "state"))
	}
	if b := g.Modules[unit.Source.Dir].Backend(); b != nil && b.File != s.File {
		faults = append(faults, s.Fault(fmt.Sprintf("remote_state in addition to the %s in %s:%d", b.Words(), path.Join(unit.Source.Dir, b.File), b.Line),
			"remove one of them, or have Terragrunt overwrite that file"))
	}
	return faults
}
