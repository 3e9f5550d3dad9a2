package templates

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"
)

// variables reads the schema of the variables.
func (l *templateLoader) variables(o *object) {
	doc := map[string]any{}
	if o.node != nil {
		doc, _ = l.value(o.node).(map[string]any)
	}
	s := newSchema(doc)
	l.t.schema = s
	l.schemaNode = o.node
	general, err := s.compile(nil)
	if err != nil {
		at := o.node
		var fault *schemaFault
		if errors.As(err, &fault) {
			at = nodeAt(at, fault.path)
		}
		l.add(at, "spec.variables is not a JSON Schema that can be used: "+err.Error(), "")
	}
	l.general = general
	if o.node == nil {
		return
	}
	if _, properties := lookup(o.node, "properties"); properties != nil && properties.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(properties.Content); i += 2 {
			l.variable(properties.Content[i], properties.Content[i+1])
		}
	}
	l.secretsElsewhere(o.node, doc)
}

func (l *templateLoader) variable(key, node *yaml.Node) {
	name := key.Value
	if !identifier.MatchString(name) {
		l.add(key, fmt.Sprintf("%q cannot be the name of a variable", clip(name)), "use letters, digits, _ and -")
	} else if slices.Contains(reservedVariables(), name) {
		l.add(key, fmt.Sprintf("%q cannot be the name of a variable: it means something else to the engine", name), "")
	}
	if node.Kind != yaml.MappingNode {
		return
	}
	property, _ := l.t.schema.properties[name].(map[string]any)
	_, fallback := lookup(node, "default")
	switch {
	case l.t.schema.secrets[name]:
		if property["type"] != "string" {
			_, at := lookup(node, "writeOnly")
			l.add(at, fmt.Sprintf("variable %s is secret (writeOnly) and must have type: string", name), "")
		}
		if fallback != nil && fallback.Tag != "!!null" {
			l.secretDefault(name, property["default"], fallback)
		}
	case fallback != nil && l.general != nil:
		for _, v := range l.general.variable(name, property["default"]) {
			l.add(nodeAt(fallback, v.path[1:]), "the default of "+v.message, v.hint)
		}
	}
}

func (l *templateLoader) secretDefault(name string, value any, at *yaml.Node) {
	if _, bad := secretRef(value); bad != nil {
		l.add(nodeAt(at, bad.path), name+" is secret: its default says where its value is, such as "+secretExample, bad.hint)
	}
}

// secretsElsewhere tells of writeOnly where it would be of no effect, and of
// schemas that would look at a secret's value: nobody knows it here.
func (l *templateLoader) secretsElsewhere(node *yaml.Node, doc map[string]any) {
	const hint = "only whether it is given can be asked for, by required"
	rewriteSchema(doc, nil, func(at []string, schema map[string]any) any {
		tell := func(keyword, message, hint string) {
			l.add(nodeAt(node, append(slices.Clone(at), keyword)), message, hint)
		}
		ofVariable := len(at) == 2 && at[0] == "properties"
		if mark, _ := schema["writeOnly"].(bool); mark && !ofVariable {
			tell("writeOnly", "writeOnly is not at a variable itself", "only a variable as a whole can be secret")
		}
		ref, _ := schema["$ref"].(string)
		if name, ok := strings.CutPrefix(ref, "#/properties/"); ok && l.t.schema.secrets[unpointerWord(name)] {
			tell("$ref", fmt.Sprintf("a schema refers to that of %s, which is secret", unpointerWord(name)), "write it out: the value of another variable is in Git")
		}
		if len(at) > 2 && at[len(at)-2] == "properties" && l.t.schema.secrets[at[len(at)-1]] && ofWhole(at[:len(at)-2]) && len(schema) > 0 {
			l.add(nodeAt(node, at), fmt.Sprintf("a condition asks for the value of %s, which is secret", at[len(at)-1]), hint)
		}
		return schema
	})
}

// ofWhole reports whether the schema at a path is held against the variables as
// a whole.
func ofWhole(at []string) bool {
	for i := 0; i < len(at); i++ {
		switch at[i] {
		case "if", "then", "else", "not":
		case "allOf", "anyOf", "oneOf", "dependentSchemas":
			i++ // and an index or a name
		default:
			return false
		}
	}
	return true
}

// nodeAt returns the value at a path below a node, or the nearest that there is.
func nodeAt(n *yaml.Node, path []string) *yaml.Node {
	for _, word := range path {
		next := (*yaml.Node)(nil)
		switch n.Kind {
		case yaml.MappingNode:
			_, next = lookup(n, word)
		case yaml.SequenceNode:
			var i int
			if _, err := fmt.Sscanf(word, "%d", &i); err == nil && i >= 0 && i < len(n.Content) {
				next = n.Content[i]
			}
		default: // nothing is below a scalar
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

// variable returns what is wrong with a variable's value by itself. Only whoever
// reads the template may call it.
func (s *providerSchema) variable(name string, value any) []violation {
	if !s.affordable(s.properties[name], value) {
		return []violation{{path: []string{name}, message: label([]string{name}) + " is too large for its schema", hint: tooLarge}}
	}
	compiled, err := s.compiler.Compile(schemaURL + "#/properties/" + url.PathEscape(pointerWord(name)))
	if err != nil {
		return nil // the whole could be compiled: there is no such variable
	}
	var located func(e *jsonschema.ValidationError)
	located = func(e *jsonschema.ValidationError) {
		e.InstanceLocation = append([]string{name}, e.InstanceLocation...)
		for _, cause := range e.Causes {
			located(cause)
		}
	}
	var wrong *jsonschema.ValidationError
	if err := compiled.Validate(value); errors.As(err, &wrong) {
		located(wrong)
		return s.flatten(wrong)
	} else if err != nil {
		return []violation{{path: []string{name}, message: label([]string{name}) + " cannot be checked"}}
	}
	return nil
}

// providerSchema reads which instance types a provider allows.
func (l *templateLoader) providerSchema(p *provider, o *object) {
	patterns, nodes := o.strings("instanceTypes")
	if len(patterns) > maxInstanceTypes {
		l.add(nodes[0], fmt.Sprintf("%s has more than %d patterns", o.label("instanceTypes"), maxInstanceTypes), "use wildcards: m7i.*")
		return
	}
	for i, pattern := range patterns {
		if problem := badGlob(pattern); problem != "" {
			l.add(nodes[i], fmt.Sprintf("instance type %q %s", clip(pattern), problem), `write one such as t3.medium or "m7i.*"`)
			patterns[i] = "*"
		}
	}
	p.instanceTypes = patterns
	p.schema = l.general
	if len(patterns) == 0 || l.general == nil {
		return
	}
	if !hasFormat(l.t.schema.doc, formatOfInstanceTypes) {
		l.add(nodes[0], o.label("instanceTypes")+" is of no effect: no variable has format: "+formatOfInstanceTypes,
			"say format: "+formatOfInstanceTypes+" at the variables that name one")
		return
	}
	s, err := l.t.schema.compile(newInstanceTypes(p.name, patterns))
	if err != nil { // it was fine without
		l.add(nodes[0], "spec.variables is not a JSON Schema that can be used: "+err.Error(), "")
		return
	}
	p.schema = s
}

func badGlob(pattern string) string {
	switch {
	case pattern == "":
		return "is empty"
	case strings.Contains(pattern, "/"):
		return "has a /"
	case !validGlob(pattern):
		return "is no pattern"
	}
	return ""
}

// defaults reads the values that a provider gives to variables.
func (l *templateLoader) defaults(p *provider, o *object) {
	s := l.t.schema
	if o.node != nil {
		p.defaults, _ = l.value(o.node).(map[string]any)
		for i := 0; i+1 < len(o.node.Content); i += 2 {
			key, value := o.node.Content[i], o.node.Content[i+1]
			switch {
			case s.properties[key.Value] == nil && !s.open:
				l.add(key, fmt.Sprintf("unknown variable %q", clip(key.Value)), didYouMean(key.Value, s.names))
			case s.secrets[key.Value]:
				l.secretDefault(key.Value, p.defaults[key.Value], value)
			case p.schema != nil:
				for _, v := range p.schema.variable(key.Value, p.defaults[key.Value]) {
					l.add(nodeAt(value, v.path[1:]), v.message, v.hint)
				}
			}
		}
	}
	if p.schema == nil || p.schema == l.general {
		return
	}
	// A default of the schema that this provider does not replace, and cannot have.
	for _, name := range slices.Sorted(maps.Keys(s.defaults)) {
		if _, replaced := p.defaults[name]; replaced || len(l.general.variable(name, s.defaults[name])) > 0 {
			continue
		}
		for _, v := range p.schema.variable(name, s.defaults[name]) {
			l.add(nodeAt(l.schemaNode, []string{"properties", name, "default"}), "the default of "+v.message,
				"give the provider a default of its own")
		}
	}
}

// reservedVariables are names that the engines refuse in a variable block.
func reservedVariables() []string {
	return []string{"source", "version", "providers", "count", "for_each", "lifecycle", "depends_on", "locals", "_"}
}
