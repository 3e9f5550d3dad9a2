package modules

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/boundedhcl"
	"github.com/holdfast-dev/holdfast/rootmodule"
	"github.com/holdfast-dev/holdfast/templates/decode"
)

// takesSecret reports whether a reference to a secret can stand for the value of a
// variable: the engine takes the value from its environment, as a text.
func (v Variable) takesSecret() bool {
	return v.Full == cty.DynamicPseudoType || v.Full.IsPrimitiveType()
}

// SecretsOf parts the variables of a document into those whose values are in Git
// and references to secrets. What is wrong with the latter is for the caller to say.
func (m *Module) SecretsOf(c holdfast.Cluster) (plain map[string]any, refs map[string]rootmodule.SecretRef) {
	plain, refs = make(map[string]any, len(c.Variables)), make(map[string]rootmodule.SecretRef)
	for name, value := range c.Variables {
		if v, declared := m.Variables[name]; declared && v.takesSecret() && decode.LooksSecret(value) {
			refs[name], _ = decode.ReadSecret(value)
		} else {
			plain[name] = value
		}
	}
	return plain, refs
}

// SecretVariables returns the variables that the code in a folder keeps in its own
// file.
func (g *Gatherer) SecretVariables(dir string) []string {
	return slices.Sorted(maps.Keys(g.SecretRefs(dir)))
}

// SecretRefs says where the values of these variables are. What is wrong with that file
// the agent says.
func (g *Gatherer) SecretRefs(dir string) map[string]rootmodule.SecretRef {
	file, ok := g.Entries[path.Join(dir, rootmodule.SecretFile)]
	if !ok {
		return nil
	}
	data, ok := g.content(file.Source)
	var given map[string]json.RawMessage
	if !ok || json.Unmarshal(data, &given) != nil {
		return nil
	}
	refs := make(map[string]rootmodule.SecretRef, len(given))
	for name, value := range given {
		var ref rootmodule.SecretRef
		_ = json.Unmarshal(value, &ref)
		refs[name] = ref
	}
	return refs
}

// content reads a file, and reports whether the tree does not refuse it. That the tree
// failed says Err.
func (g *Gatherer) content(file string) ([]byte, bool) {
	data, err := g.Tree.ReadFile(file)
	if _, refused := Refused(err); err != nil && !refused {
		g.err = fmt.Errorf("read %s: %w", file, err)
	}
	return data, err == nil
}

// Err is how the tree has failed in what returns no error.
func (g *Gatherer) Err() error { return g.err }

// Assignment is where a file of variables gives one its value.
type Assignment struct {
	Name, File string
	Line       int
}

// Assigned returns what the files of variables in a folder assign that engines
// load automatically. What cannot be read they report.
func (g *Gatherer) Assigned(dir string) (out []Assignment, faults holdfast.Faults) {
	for _, name := range slices.Sorted(maps.Keys(g.Entries)) {
		base := path.Base(name)
		text, isJSON := strings.HasSuffix(base, ".auto.tfvars") || base == "terraform.tfvars",
			strings.HasSuffix(base, ".auto.tfvars.json") || base == "terraform.tfvars.json"
		if path.Dir(name) != dir || !text && !isJSON {
			continue
		}
		data, ok := g.content(g.Entries[name].Source)
		if !ok {
			continue
		}
		if g.code += len(data); g.code > maxTreeCode {
			faults = append(faults, g.tooMuchCode(name))
			break
		}
		if isJSON {
			var values map[string]json.RawMessage
			_ = json.Unmarshal(data, &values) // the engine reports it
			for _, key := range slices.Sorted(maps.Keys(values)) {
				out = append(out, Assignment{Name: key, File: name})
			}
			continue
		}
		file, _, err := boundedhcl.ParseFile(data, name)
		if err != nil {
			faults = append(faults, excess(name, err))
			continue
		}
		attributes, _ := file.Body.JustAttributes()
		for _, key := range slices.Sorted(maps.Keys(attributes)) {
			out = append(out, Assignment{Name: key, File: name, Line: attributes[key].NameRange.Start.Line})
		}
	}
	return out, faults
}
