package templates

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/holdfast-dev/holdfast"
)

const (
	mainFile      = "main.tf"
	clusterFile   = "cluster.tf"
	backendFile   = "holdfast_backend.tf"
	variablesFile = "holdfast.auto.tfvars.json"
)

// render makes the part of the root module that is the same for all clusters of
// a provider: variables, module calls, outputs. What a template says of its
// cluster is a local there, see renderCluster.
func (l *templateLoader) render(p *provider) []byte {
	file := hclwrite.NewEmptyFile()
	body := file.Body()
	for _, name := range l.t.Variables() {
		l.renderVariable(body, name)
	}
	for _, call := range p.calls {
		block := body.AppendNewBlock("module", []string{call.name}).Body()
		source := call.source
		if call.dir != "" {
			source = path.Join("..", modulesDir, call.dir) // ".." keeps it a local source
		}
		block.SetAttributeRaw("source", tokens(source))
		if call.version != "" {
			block.SetAttributeRaw("version", tokens(call.version))
		}
		for _, input := range slices.Sorted(maps.Keys(call.inputs)) {
			block.SetAttributeRaw(input, tokens(call.inputs[input]))
		}
		if len(call.dependsOn) > 0 {
			items := make([]hclwrite.Tokens, len(call.dependsOn))
			for i, name := range call.dependsOn {
				items[i] = hclwrite.TokensForTraversal(hcl.Traversal{hcl.TraverseRoot{Name: "module"}, hcl.TraverseAttr{Name: name}})
			}
			block.SetAttributeRaw("depends_on", hclwrite.TokensForTuple(items))
		}
		body.AppendNewline()
	}
	outputs := slices.Clone(l.outputs)
	slices.SortFunc(outputs, func(a, b templateOutput) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
	for _, out := range outputs {
		block := body.AppendNewBlock("output", []string{out.name}).Body()
		block.SetAttributeRaw("value", tokens(out.value))
		if out.description != "" {
			block.SetAttributeRaw("description", tokens(out.description))
		}
		if out.sensitive {
			block.SetAttributeValue("sensitive", cty.True)
		}
		body.AppendNewline()
	}
	return file.Bytes()
}

func (l *templateLoader) renderVariable(body *hclwrite.Body, name string) {
	block := body.AppendNewBlock("variable", []string{name}).Body()
	property, _ := l.t.schema.properties[name].(map[string]any)
	if description, ok := property["description"].(string); ok {
		block.SetAttributeRaw("description", tokens(description))
	}
	block.SetAttributeRaw("type", raw(hclsyntax.TokenIdent, variableType(property)))
	if fallback, ok := property["default"]; ok {
		block.SetAttributeRaw("default", tokens(fallback))
	} else if !slices.Contains(l.t.schema.required, name) {
		block.SetAttributeRaw("default", tokens(nil))
	}
	if l.t.schema.sensitive([]string{name}) {
		block.SetAttributeValue("sensitive", cty.True)
	}
	body.AppendNewline()
}

// variableType is the engine's type for a property; any where the schema says
// more than the engine's types can, or less.
func variableType(property map[string]any) string {
	switch property["type"] {
	case "string":
		return "string"
	case "integer", "number":
		return "number"
	case "boolean":
		return "bool"
	case "array":
		if items, ok := property["items"].(map[string]any); ok && property["prefixItems"] == nil {
			if inner := variableType(items); inner != "any" {
				return "list(" + inner + ")"
			}
		}
	}
	return "any"
}

// renderCluster makes the part of a root module that differs from cluster to
// cluster: engine, backend, and what the template says of the cluster.
func renderCluster(c holdfast.Cluster, backend string, config map[string]any, p *provider) []byte {
	file := hclwrite.NewEmptyFile()
	settings := file.Body().AppendNewBlock("terraform", nil).Body()
	if c.Engine.Version != "" {
		settings.SetAttributeRaw("required_version", tokens(c.Engine.Version))
	}
	renderBackend(settings, backend, config)
	if p != nil && len(p.fields) > 0 {
		values := map[string]string{
			"name": c.Name, "project": c.Project, "environment": c.Environment, "provider": p.name, "region": c.Region,
		}
		fields := map[string]any{}
		for _, name := range p.fields {
			fields[name] = values[name]
		}
		file.Body().AppendNewline()
		file.Body().AppendNewBlock("locals", nil).Body().SetAttributeRaw("cluster", tokens(fields))
	}
	return file.Bytes()
}

func renderBackend(settings *hclwrite.Body, backend string, config map[string]any) {
	block := settings.AppendNewBlock("backend", []string{backend}).Body()
	for _, name := range slices.Sorted(maps.Keys(config)) {
		block.SetAttributeRaw(name, tokens(config[name]))
	}
}

func header(text string) []byte {
	return fmt.Appendf(nil, "# Made by Holdfast from %s: a change here is lost.\n\n", text)
}

// renderVariables makes the values of the variables. In JSON the engine reads
// texts as they are, whatever is in them.
func renderVariables(variables map[string]any) ([]byte, error) {
	if variables == nil {
		variables = map[string]any{}
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(variables); err != nil {
		return nil, fmt.Errorf("encode variables: %w", err)
	}
	return b.Bytes(), nil
}
