package templates

import (
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/rootmodule"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/document"
	"github.com/holdfast-dev/holdfast/templates/modules"
)

// secretFaults is what is wrong with the secret variables of a document and of the
// code's own file: each comes from one place only, and is declared as sensitive.
func secretFaults(doc document.Document, g *modules.Gatherer, dir string) holdfast.Faults {
	var faults holdfast.Faults
	m := g.Modules[dir]
	_, refs := m.SecretsOf(doc.Cluster)
	inCode := g.SecretVariables(dir)
	ownFile := path.Join(dir, rootmodule.SecretFile)
	if _, taken := g.Entries[ownFile]; taken && len(refs) > 0 {
		name := slices.Sorted(maps.Keys(refs))[0]
		faults = append(faults, doc.KeyFault(fmt.Sprintf("variable %s refers to a secret, in addition to %s", name, ownFile),
			"write all references in one of the two", "spec", "variables", name))
	}
	for _, name := range inCode {
		if _, given := doc.Cluster.Variables[name]; given && refs[name] == (rootmodule.SecretRef{}) { // the engine would take this one
			faults = append(faults, doc.KeyFault(fmt.Sprintf("variable %s is secret: %s says where its value is", name, ownFile),
				"remove it here, or there", "spec", "variables", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		if _, wrong := decode.ReadSecret(doc.Cluster.Variables[name]); wrong != nil {
			faults = append(faults, doc.FaultAt(name+" refers to a secret: say where its value is, such as "+decode.SecretExample, wrong.Hint, wrong.Key,
				append([]string{"spec", "variables", name}, wrong.Path...)))
		}
		if !m.Variables[name].Hidden {
			faults = append(faults, doc.KeyFault(fmt.Sprintf("variable %s refers to a secret, and %s does not declare it as sensitive", name, dir),
				"add sensitive = true to its declaration", "spec", "variables", name))
		}
	}
	names := slices.Concat(inCode, slices.Sorted(maps.Keys(refs)))
	if len(names) == 0 {
		return faults
	}
	assigned, unread := g.Assigned(dir)
	faults = append(faults, unread...)
	for _, at := range assigned {
		if slices.Contains(names, at.Name) {
			faults = append(faults, holdfast.Fault{
				File: at.File, Line: at.Line, Message: fmt.Sprintf("variable %s is secret, and the engine would take this value", at.Name),
				Hint: "remove it here",
			})
		}
	}
	return faults
}
