package templates

import (
	"maps"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/condition"
)

// scope is what the expressions of a template see of a cluster. Values get the
// types that the schema says once, here: an expression may look at them often.
func (t *Template) scope(c holdfast.Cluster, provider string, g given) (condition.Scope, error) {
	self := maps.Clone(t.schema.Defaults)
	maps.Copy(self, g.plain)
	for name := range t.uses {
		value, ok := self[name]
		if !ok {
			continue
		}
		typed, err := condition.Value(value, t.schema.Shapes[name])
		if err != nil {
			typed = err // reported by whoever asks for it
		}
		self[name] = typed
	}
	for name := range g.secrets {
		self[name] = true // that it is there; no more
	}
	return condition.NewScope(self, clusterValues(c, provider))
}

// clusterValues are the fields of a cluster that a template may use.
func clusterValues(c holdfast.Cluster, provider string) map[string]any {
	return map[string]any{
		"name": c.Name, "project": c.Project, "environment": c.Environment, "provider": provider, "region": c.Region,
	}
}
