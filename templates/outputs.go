package templates

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
)

func meanings() []string {
	return []string{holdfast.MeansEndpoint, holdfast.MeansKubeconfig, holdfast.MeansNodeCount}
}

// readOutputs reads the outputs, by name.
func (l *templateLoader) readOutputs(o *object) {
	if o.node == nil {
		return
	}
	meant := map[string]string{}
	for i := 0; i+1 < len(o.node.Content); i += 2 {
		key, node := o.node.Content[i], o.node.Content[i+1]
		out := templateOutput{name: key.Value, at: key}
		if !identifier.MatchString(key.Value) {
			l.add(key, fmt.Sprintf("%q cannot be the name of an output", clip(key.Value)), "use letters, digits, _ and -")
		}
		value := node
		if node.Kind == yaml.MappingNode {
			long := l.object(node, o.label(key.Value))
			if value = long.get("value"); value == nil {
				long.missing("value")
			}
			out.sensitive = long.boolean("sensitive", false)
			out.description = long.str("description")
			l.means(long, &out, meant)
			long.done()
		}
		if value != nil {
			out.value = l.template(value)
			out.refers = modulesIn(out.value)
			out.written = asWritten(l.value(value))
		}
		references(out.value, func(ref part) {
			if ref.ref[0] == "var" && len(ref.ref) > 1 && l.t.schema.secrets[ref.ref[1]] && !out.sensitive {
				l.add(key, fmt.Sprintf("output %s shows %s, which is secret", out.name, ref.ref[1]), "add sensitive: true")
			}
		})
		l.t.outputs = append(l.t.outputs, out)
	}
	slices.SortFunc(l.t.outputs, func(a, b templateOutput) int { return strings.Compare(a.name, b.name) })
}

func (l *templateLoader) means(o *object, out *templateOutput, meant map[string]string) {
	out.means = o.choice("means", meanings()...)
	switch other := meant[out.means]; {
	case out.means == "":
	case other != "":
		l.add(o.get("means"), fmt.Sprintf("outputs %s and %s both mean %s", other, out.name, out.means), "one of them can")
	case out.means == holdfast.MeansKubeconfig && !out.sensitive:
		l.add(o.get("means"), fmt.Sprintf("output %s is a kubeconfig and not sensitive", out.name), "add sensitive: true")
	}
	if out.means != "" {
		meant[out.means] = out.name
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
