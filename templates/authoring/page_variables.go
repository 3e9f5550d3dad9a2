package authoring

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// variable is a row of the table of variables.
type variable struct {
	path     string
	schema   map[string]any
	required bool
}

// flatten lists a schema's properties, each before what is below it.
func (p *page) flatten(prefix string, schema map[string]any, depth int) []variable {
	const deepest = 6
	properties, _ := schema["properties"].(map[string]any)
	if depth > deepest {
		return nil
	}
	required, _ := schema["required"].([]any)
	var out []variable
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property := p.schema(properties[name])
		out = append(out, variable{prefix + name, property, slices.Contains(required, any(name))})
		p.inside(properties[name], func() { out = append(out, p.parts(prefix+name, property, depth)...) })
	}
	return out
}

func (p *page) parts(at string, schema map[string]any, depth int) []variable {
	out := p.flatten(at+".", schema, depth+1)
	if items := p.schema(schema["items"]); items != nil {
		p.inside(schema["items"], func() { out = append(out, p.flatten(at+"[].", items, depth+1)...) })
	}
	if values := p.schema(schema["additionalProperties"]); values != nil {
		p.inside(schema["additionalProperties"], func() { out = append(out, p.flatten(at+".*.", values, depth+1)...) })
	}
	return out
}

// inside calls list for what is below a schema, unless that is below itself.
func (p *page) inside(schema any, list func()) {
	m, _ := schema.(map[string]any)
	ref, _ := m["$ref"].(string)
	if ref != "" && slices.Contains(p.open, ref) {
		return
	}
	p.open = append(p.open, ref)
	list()
	p.open = p.open[:len(p.open)-1]
}

// schema is a schema with what it refers to, one step deep.
func (p *page) schema(v any) map[string]any {
	schema, _ := v.(map[string]any)
	ref, _ := schema["$ref"].(string)
	name, ok := strings.CutPrefix(ref, "#/$defs/")
	if !ok {
		return schema
	}
	defs, _ := p.b.Schema["$defs"].(map[string]any)
	out, _ := defs[name].(map[string]any)
	out = maps.Clone(out)
	if out == nil {
		out = map[string]any{}
	}
	maps.Copy(out, schema)
	delete(out, "$ref")
	return out
}

func (p *page) variables() {
	p.heading("Variables")
	all := p.flatten("", p.b.Schema, 0)
	if len(all) == 0 {
		p.line("None.")
		return
	}
	rows := make([][]string, len(all))
	for i, v := range all {
		fallback, ofProviders := "", ""
		if d, ok := v.schema["default"]; ok {
			fallback = code(jsonOf(d))
		}
		if !strings.ContainsAny(v.path, ".[") {
			ofProviders = p.providerDefaults(v.path)
			fallback = cmp.Or(fallback, ofProviders)
		}
		must := ""
		switch given := fallback != "" && v.schema["writeOnly"] == true; {
		case !v.required || given || ofProviders == byProvider:
		case ofProviders == "":
			must = "yes"
		default:
			must = "elsewhere"
		}
		words, _ := v.schema["description"].(string)
		if v.schema["writeOnly"] == true {
			words = strings.TrimSpace("Secret: say where it is, such as `{secret: {env: NAME}}`. " + words)
		}
		schema := v.schema
		if schema["writeOnly"] == true { // no value of a secret is shown, not even as an example
			schema = maps.Clone(schema)
			for _, keyword := range []string{"enum", "const", "examples"} {
				delete(schema, keyword)
			}
		}
		limits := allowed(schema)
		if each := p.schema(v.schema["items"]); each != nil && allowed(each) != "" {
			limits = strings.TrimPrefix(limits+"; each "+allowed(each), "; ")
		}
		rows[i] = []string{code(v.path), code(p.typeOf(v.schema)), fallback, must, limits, inline(words)}
	}
	p.table([]string{"Variable", "Type", "Default", "Required", "Allowed", "Description"}, rows)
}

// byProvider is the default of a variable that has one on each provider.
const byProvider = "by provider"

// providerDefaults says where a variable has a default where the schema has none.
func (p *page) providerDefaults(name string) string {
	var of []string
	for _, provider := range p.b.Providers {
		if _, ok := provider.Defaults[name]; ok {
			of = append(of, provider.Name)
		}
	}
	switch len(of) {
	case 0:
		return ""
	case len(p.b.Providers):
		return byProvider
	}
	return "on " + codes(of)
}

func (p *page) typeOf(schema map[string]any) string {
	switch t := schema["type"].(type) {
	case string:
		if items := p.schema(schema["items"]); items != nil && t == "array" {
			return "list of " + p.typeOf(items)
		}
		if values := p.schema(schema["additionalProperties"]); values != nil && t == "object" && schema["properties"] == nil {
			return "map of " + p.typeOf(values)
		}
		return map[string]string{"array": "list"}[t] + map[bool]string{true: t}[t != "array"]
	case []any:
		words := make([]string, len(t))
		for i, word := range t {
			words[i] = fmt.Sprint(word)
		}
		return strings.Join(words, " or ")
	}
	return "any"
}

// allowed says in words what a schema demands of a value.
func allowed(schema map[string]any) string {
	var out []string
	if fixed, ok := schema["const"]; ok {
		out = append(out, "only "+code(jsonOf(fixed)))
	}
	if values, ok := schema["enum"].([]any); ok {
		words := make([]string, len(values))
		for i, v := range values {
			words[i] = code(jsonOf(v))
		}
		out = append(out, "one of "+strings.Join(words, ", "))
	}
	between := func(from, to, unit string) {
		low, hasLow := schema[from]
		high, hasHigh := schema[to]
		switch {
		case hasLow && hasHigh:
			out = append(out, fmt.Sprintf("%s to %s%s", jsonOf(low), jsonOf(high), unit))
		case hasLow && unit != "" && jsonOf(low) == "1":
			out = append(out, "not empty")
		case hasLow:
			out = append(out, fmt.Sprintf("at least %s%s", jsonOf(low), unit))
		case hasHigh:
			out = append(out, fmt.Sprintf("at most %s%s", jsonOf(high), unit))
		}
	}
	between("minimum", "maximum", "")
	for keyword, words := range map[string]string{"exclusiveMinimum": "more than ", "exclusiveMaximum": "less than ", "multipleOf": "a multiple of "} {
		if v, ok := schema[keyword]; ok {
			out = append(out, words+jsonOf(v))
		}
	}
	slices.Sort(out[min(len(out), 1):]) // the order of the map above is nobody's
	between("minLength", "maxLength", " characters")
	between("minItems", "maxItems", " items")
	between("minProperties", "maxProperties", " entries")
	examples, _ := schema["examples"].([]any)
	if pattern, ok := schema["pattern"].(string); ok {
		const readable = 60
		if len(pattern) <= readable || len(examples) == 0 {
			out = append(out, "matches "+code(pattern))
		}
	}
	if len(examples) > 0 {
		out = append(out, "such as "+code(jsonOf(examples[0])))
	}
	if schema["format"] == "instance-type" {
		out = append(out, "an instance type of the provider")
	}
	if schema["uniqueItems"] == true {
		out = append(out, "no item twice")
	}
	return strings.Join(out, "; ")
}

func jsonOf(v any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return "?"
	}
	return strings.TrimSpace(b.String())
}
