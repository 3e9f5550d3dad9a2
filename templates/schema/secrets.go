package schema

import (
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/rootmodule"
	"github.com/holdfast-dev/holdfast/templates/decode"
)

// TakeSecrets parts variables into those whose values are in Git and references
// to secrets, and returns what is wrong with the latter.
func (s *Schema) TakeSecrets(variables map[string]any) (plain map[string]any, refs map[string]rootmodule.SecretRef, bad []Violation) {
	plain = make(map[string]any, len(variables))
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		value := variables[name]
		switch {
		case s.Secrets[name]:
			ref, wrong := decode.ReadSecret(value)
			if wrong != nil {
				bad = append(bad, Violation{
					Path: append([]string{name}, wrong.Path...), Key: wrong.Key,
					Message: name + " is secret: say where its value is, such as " + decode.SecretExample, Hint: wrong.Hint,
				})
			}
			if refs == nil {
				refs = map[string]rootmodule.SecretRef{}
			}
			refs[name] = ref
		case decode.LooksSecret(value) && s.Properties[name] != nil && !s.hasSecretField(name):
			bad = append(bad, Violation{
				Path:    []string{name},
				Message: fmt.Sprintf("variable %s is not secret: its value is written here", name),
				Hint:    "the template makes a variable secret by writeOnly: true",
			})
		default:
			plain[name] = value
		}
	}
	return plain, refs, bad
}

// hasSecretField reports whether a variable is an object that has a field
// called secret.
func (s *Schema) hasSecretField(name string) bool {
	shape := s.Shapes[name]
	return shape != nil && shape.Kind == Object && shape.Fields[decode.SecretKey] != nil
}
