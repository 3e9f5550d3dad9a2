package templates

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/hclvalue"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

func meanings() []string {
	return []string{holdfast.OutputRoleEndpoint, holdfast.OutputRoleKubeconfig, holdfast.OutputRoleNodeCount}
}

// readOutputs reads the outputs, by name.
func (l *templateLoader) readOutputs(o *decode.Object) {
	if o.Node == nil {
		return
	}
	meant := map[string]string{}
	for i := 0; i+1 < len(o.Node.Content); i += 2 {
		key, node := o.Node.Content[i], o.Node.Content[i+1]
		out := templateOutput{name: key.Value, at: key}
		if !decode.IsIdentifier(key.Value) {
			l.Add(key, fmt.Sprintf("%q cannot be the name of an output", wording.Clip(key.Value)), "use letters, digits, _ and -")
		}
		value := node
		if node.Kind == yaml.MappingNode {
			long := l.Object(node, o.Label(key.Value))
			if value = long.Get("value"); value == nil {
				long.Missing("value")
			}
			out.sensitive = long.Bool("sensitive", false)
			out.description = long.Text("description")
			l.means(long, &out, meant)
			long.Done()
		}
		if value != nil {
			out.value = l.template(value)
			out.refers = modulesIn(out.value)
			out.written = asWritten(l.Value(value))
		}
		hclvalue.References(out.value, func(ref hclvalue.Part) {
			if ref.Words[0] == "var" && len(ref.Words) > 1 && l.t.schema.Secrets[ref.Words[1]] && !out.sensitive {
				l.Add(key, fmt.Sprintf("output %s shows %s, which is secret", out.name, ref.Words[1]), "add sensitive: true")
			}
		})
		l.t.outputs = append(l.t.outputs, out)
	}
	slices.SortFunc(l.t.outputs, func(a, b templateOutput) int { return strings.Compare(a.name, b.name) })
}

func (l *templateLoader) means(o *decode.Object, out *templateOutput, meant map[string]string) {
	out.means = o.Choice("means", meanings()...)
	switch other := meant[out.means]; {
	case out.means == "":
	case other != "":
		l.Add(o.Get("means"), fmt.Sprintf("outputs %s and %s both mean %s", other, out.name, out.means), "one of them can")
	case out.means == holdfast.OutputRoleKubeconfig && !out.sensitive:
		l.Add(o.Get("means"), fmt.Sprintf("output %s is a kubeconfig and not sensitive", out.name), "add sensitive: true")
	}
	if out.means != "" {
		meant[out.means] = out.name
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
