package authoring

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast/templates"
)

//go:embed cluster.schema.yaml
var clusterSchema []byte

// EditorSchema returns a JSON Schema of cluster documents, for editors that
// complete and check them: the whole form, and for clusters that name one of the
// drafts, by name or by the last folder of a path, its providers, regions and
// variables. It keeps to what draft-07 knows, as the YAML language server does;
// what a template's schema says beyond it is checked by Holdfast only. The same
// drafts give the same bytes.
func EditorSchema(drafts []*Draft) ([]byte, error) {
	var root map[string]any
	if err := yaml.Unmarshal(clusterSchema, &root); err != nil {
		return nil, fmt.Errorf("read schema of clusters: %w", err)
	}
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["title"] = "A cluster of Holdfast"
	e := &editorSchema{definitions: root["definitions"].(map[string]any)}
	for _, d := range drafts {
		e.template(d)
	}
	if len(e.conditions) > 0 {
		root["allOf"] = e.conditions
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(root); err != nil {
		return nil, fmt.Errorf("write schema: %w", err)
	}
	return out.Bytes(), nil
}

type object = map[string]any

type editorSchema struct {
	definitions object
	conditions  []any
}

// template adds what applies to clusters of one template.
func (e *editorSchema) template(d *Draft) {
	b := d.Blueprint
	var names []any
	for _, p := range b.Providers {
		names = append(names, p.Name)
	}
	folder := regexp.QuoteMeta(path.Base(d.Dir))
	of := []any{object{"required": []any{"name"}, "properties": object{"name": object{"const": b.Name}}}}
	if d.Dir != "." {
		of = append(of, object{"required": []any{"path"}, "properties": object{"path": object{"pattern": "(^|/)" + folder + "/?$"}}})
	}
	isOurs := object{"required": []any{"template"}, "properties": object{"template": object{"anyOf": of}}}
	provider := object{"properties": object{"provider": object{"enum": names}}}
	if len(names) > 1 {
		provider["required"] = []any{"provider"}
	}
	e.add(isOurs, provider)
	for _, p := range b.Providers {
		key := b.Name + "." + p.Name
		e.definitions[key] = variablesFor(b, p, "#/definitions/"+key)
		isProvider := object{"properties": object{"provider": object{"const": p.Name}}}
		if len(names) > 1 {
			isProvider["required"] = []any{"provider"}
		}
		then := object{"properties": object{"variables": object{"$ref": "#/definitions/" + key}}}
		required := e.definitions[key].(object)["required"]
		if list, ok := required.([]any); ok && len(list) > 0 {
			then["required"] = []any{"variables"}
		}
		if len(p.Regions) > 0 {
			then["properties"].(object)["region"] = object{"enum": anyOf(p.Regions)}
			list, _ := then["required"].([]any)
			then["required"] = append(list, "region")
		}
		e.add(object{"allOf": []any{isOurs, isProvider}}, then)
	}
}

// add adds what applies to a spec that fits the condition.
func (e *editorSchema) add(condition, then object) {
	e.conditions = append(e.conditions, object{
		"if":   object{"required": []any{"spec"}, "properties": object{"spec": condition}},
		"then": object{"properties": object{"spec": then}},
	})
}

func anyOf(words []string) []any {
	out := make([]any, len(words))
	for i, w := range words {
		out[i] = w
	}
	return out
}

// variablesFor is the schema of a template's variables as a cluster of that
// provider writes them, at its place in the editor's schema.
func variablesFor(b templates.Blueprint, p templates.ProviderBlueprint, at string) object {
	c := &converter{at: at, instanceTypes: p.InstanceTypes}
	out, _ := c.schema(b.Schema).(object)
	if out == nil {
		out = object{}
	}
	out["type"] = "object"
	if _, said := out["additionalProperties"]; !said && out["patternProperties"] == nil {
		out["additionalProperties"] = false // what is not declared is refused
	}
	properties, _ := out["properties"].(object)
	var required []any
	for _, name := range b.Required {
		_, ofProvider := p.Defaults[name]
		if !ofProvider && !secretDefault(b.Schema, name) {
			required = append(required, name)
		}
	}
	delete(out, "required")
	if len(required) > 0 {
		out["required"] = required
	}
	for _, name := range slices.Sorted(maps.Keys(p.Defaults)) {
		if property, ok := properties[name].(object); ok {
			property = maps.Clone(property)
			property["default"] = p.Defaults[name]
			properties[name] = property
		}
	}
	return out
}

// secretDefault reports whether a variable is a secret with a default place. Other
// defaults are notes to JSON Schema: what is required is written.
func secretDefault(schema object, name string) bool {
	properties, _ := schema["properties"].(object)
	property, _ := properties[name].(object)
	_, ok := property["default"]
	return ok && property["writeOnly"] == true
}

// onlyGo is what regular expressions of Go have and those of editors do not: one
// of these, and the whole schema is refused.
var onlyGo = regexp.MustCompile(`\(\?[^:]|\\[AzQECpPa]|\[\[:|\\x\{|\\[^\w\s^$\\.*+?()\[\]{}|/-]|\\_`)

// converter copies a schema of draft 2020-12 as draft-07 would say it.
type converter struct {
	at            string // where the schema is placed
	instanceTypes []string
}

func (c *converter) schema(v any) any {
	in, ok := v.(object)
	if !ok {
		return v
	}
	if in["writeOnly"] == true {
		return c.secret(in)
	}
	out := object{}
	for _, key := range slices.Sorted(maps.Keys(in)) {
		value := in[key]
		switch key {
		case "$schema", "unevaluatedProperties", "unevaluatedItems", "minContains", "maxContains":
			// not of draft-07
		case "$ref":
			if ref, ok := value.(string); ok {
				out[key] = c.at + strings.TrimPrefix(ref, "#")
			}
		case "pattern":
			if text, ok := value.(string); ok && !onlyGo.MatchString(text) {
				out[key] = text
			}
		case "patternProperties":
			patterns, _ := c.each(value).(object)
			maps.DeleteFunc(patterns, func(pattern string, _ any) bool { return onlyGo.MatchString(pattern) })
			if given, ok := value.(object); ok && len(patterns) < len(given) && out["additionalProperties"] == false {
				delete(out, "additionalProperties") // it would refuse what they allow
			}
			out[key] = patterns
		case "properties", "$defs":
			out[key] = c.each(value)
		case "dependentRequired":
			out["dependencies"] = merged(out["dependencies"], value)
		case "dependentSchemas":
			out["dependencies"] = merged(out["dependencies"], c.each(value))
		case "prefixItems", "items":
			c.items(in, out)
		case "allOf", "anyOf", "oneOf":
			list, _ := value.([]any)
			converted := make([]any, len(list))
			for i, item := range list {
				converted[i] = c.schema(item)
			}
			out[key] = converted
		case "not", "if", "then", "else", "additionalProperties", "propertyNames", "contains":
			out[key] = c.schema(value)
		default:
			out[key] = value
		}
	}
	if in["format"] == "instance-type" {
		c.instanceType(out)
	}
	// Next to a $ref draft-07 sees nothing.
	if ref, ok := out["$ref"]; ok && len(out) > 1 {
		delete(out, "$ref")
		list, _ := out["allOf"].([]any)
		out["allOf"] = append([]any{object{"$ref": ref}}, list...)
	}
	return out
}

func (c *converter) each(v any) any {
	in, ok := v.(object)
	if !ok {
		return v
	}
	out := make(object, len(in))
	for name, value := range in {
		out[name] = c.schema(value)
	}
	return out
}

func merged(a, b any) any {
	out := object{}
	for _, m := range []any{a, b} {
		if m, ok := m.(object); ok {
			maps.Copy(out, m)
		}
	}
	return out
}

// items converts what applies to the items of a list: draft-07 has the schemas of the
// first ones in items, and that of the others in additionalItems.
func (c *converter) items(in, out object) {
	prefix, ok := in["prefixItems"].([]any)
	if !ok {
		out["items"] = c.schema(in["items"])
		return
	}
	list := make([]any, len(prefix))
	for i, item := range prefix {
		list[i] = c.schema(item)
	}
	out["items"] = list
	if rest, said := in["items"]; said {
		out["additionalItems"] = c.schema(rest)
	}
}

// secret is a variable whose place a document names. What else its schema demands is of
// the value, which is not written.
func (c *converter) secret(in object) any {
	words, _ := in["description"].(string)
	out := object{
		"allOf":       []any{object{"$ref": "#/definitions/secret"}},
		"description": strings.TrimSpace("Secret: say where it is, such as {secret: {env: NAME}}. " + words),
	}
	if fallback, ok := in["default"]; ok {
		out["default"] = fallback
	}
	return out
}

// instanceType offers the types that are written in full, and checks the others.
func (c *converter) instanceType(out object) {
	delete(out, "format")
	if len(c.instanceTypes) == 0 {
		return
	}
	var exact, globs []any
	for _, glob := range c.instanceTypes {
		if strings.ContainsAny(glob, `*?[\`) {
			globs = append(globs, object{"pattern": patternOf(glob)})
		} else {
			exact = append(exact, glob)
		}
	}
	ways := globs
	if len(exact) > 0 {
		ways = append([]any{object{"enum": exact}}, globs...)
	}
	list, _ := out["allOf"].([]any)
	out["allOf"] = append(slices.Clone(list), object{"anyOf": ways})
	out["description"] = strings.TrimSpace(fmt.Sprint(either(out["description"], "")) + " Such as " + some(c.instanceTypes) + ".")
}

func either(v any, fallback string) any {
	if v == nil {
		return fallback
	}
	return v
}

func some(words []string) string {
	const most = 6
	if len(words) > most {
		words = append(slices.Clone(words[:most]), "…")
	}
	return strings.Join(words, ", ")
}

// patternOf is a regular expression that matches what a glob does.
func patternOf(glob string) string {
	var b strings.Builder
	b.WriteByte('^')
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; c {
		case '*':
			b.WriteString("[^/]*")
		case '?':
			b.WriteString("[^/]")
		case '\\':
			if i++; i < len(glob) {
				b.WriteString(regexp.QuoteMeta(glob[i : i+1]))
			}
		case '[':
			end := strings.IndexByte(glob[i:], ']')
			if end < 0 {
				return "" // matches anything: the template is refused elsewhere
			}
			b.WriteString(glob[i : i+end+1])
			i += end
		default:
			b.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	b.WriteByte('$')
	return b.String()
}
