package templates

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/schema"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// variables reads the schema of the variables.
func (l *templateLoader) variables(o *decode.Object) {
	doc := map[string]any{}
	if o.Node != nil {
		doc, _ = l.Value(o.Node).(map[string]any)
	}
	s := schema.New(doc)
	l.t.schema = s
	l.schemaNode = o.Node
	general, err := s.Compile("", nil)
	if err != nil {
		at := o.Node
		var fault *schema.Fault
		if errors.As(err, &fault) {
			at = nodeAt(at, fault.Path)
		}
		l.Add(at, "spec.variables is not a JSON Schema that can be used: "+err.Error(), "")
	}
	l.t.general = general
	if o.Node == nil {
		return
	}
	if _, properties := decode.Lookup(o.Node, "properties"); properties != nil && properties.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(properties.Content); i += 2 {
			l.variable(properties.Content[i], properties.Content[i+1])
		}
	}
	l.secretsElsewhere(o.Node, doc)
}

func (l *templateLoader) variable(key, node *yaml.Node) {
	name := key.Value
	if !decode.IsIdentifier(name) {
		l.Add(key, fmt.Sprintf("%q cannot be the name of a variable", wording.Clip(name)), "use letters, digits, _ and -")
	} else if slices.Contains(reservedVariables(), name) {
		l.Add(key, fmt.Sprintf("%q cannot be the name of a variable: it means something else to the engine", name), "")
	}
	if node.Kind != yaml.MappingNode {
		return
	}
	property, _ := l.t.schema.Properties[name].(map[string]any)
	_, fallback := decode.Lookup(node, "default")
	switch {
	case l.t.schema.Secrets[name]:
		if property["type"] != "string" {
			_, at := decode.Lookup(node, "writeOnly")
			l.Add(at, fmt.Sprintf("variable %s is secret (writeOnly) and must have type: string", name), "")
		}
		if fallback != nil && fallback.Tag != "!!null" {
			l.secretDefault(name, property["default"], fallback)
		}
	case fallback != nil && l.t.general != nil:
		for _, v := range l.t.general.Variable(name, property["default"]) {
			l.Add(nodeAt(fallback, v.Path[1:]), "the default of "+v.Message, v.Hint)
		}
	}
}

func (l *templateLoader) secretDefault(name string, value any, at *yaml.Node) {
	if _, bad := decode.ReadSecret(value); bad != nil {
		l.Add(nodeAt(at, bad.Path), name+" is secret: its default says where its value is, such as "+decode.SecretExample, bad.Hint)
	}
}

// secretsElsewhere reports writeOnly where it would be of no effect, and of
// schemas that would look at a secret's value: nobody knows it here.
func (l *templateLoader) secretsElsewhere(node *yaml.Node, doc map[string]any) {
	const hint = "only whether it is given can be asked for, by required"
	schema.Rewrite(doc, nil, func(at []string, part map[string]any) any {
		tell := func(keyword, message, hint string) {
			l.Add(nodeAt(node, append(slices.Clone(at), keyword)), message, hint)
		}
		ofVariable := len(at) == 2 && at[0] == "properties"
		if mark, _ := part["writeOnly"].(bool); mark && !ofVariable {
			tell("writeOnly", "writeOnly is not at a variable itself", "only a variable as a whole can be secret")
		}
		ref, _ := part["$ref"].(string)
		if name, ok := strings.CutPrefix(ref, "#/properties/"); ok && l.t.schema.Secrets[schema.UnpointerWord(name)] {
			tell("$ref", fmt.Sprintf("a schema refers to that of %s, which is secret", schema.UnpointerWord(name)), "write it out: the value of another variable is in Git")
		}
		if len(at) > 2 && at[len(at)-2] == "properties" && l.t.schema.Secrets[at[len(at)-1]] && schema.OfWhole(at[:len(at)-2]) && len(part) > 0 {
			l.Add(nodeAt(node, at), fmt.Sprintf("a condition asks for the value of %s, which is secret", at[len(at)-1]), hint)
		}
		return part
	})
}

// nodeAt returns the value at a path below a node, or the nearest one that exists.
func nodeAt(n *yaml.Node, path []string) *yaml.Node {
	for _, word := range path {
		next := (*yaml.Node)(nil)
		switch n.Kind {
		case yaml.MappingNode:
			_, next = decode.Lookup(n, word)
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

// providerSchema reads which instance types a provider allows.
func (l *templateLoader) providerSchema(p *provider, o *decode.Object) {
	patterns, nodes := o.Strings("instanceTypes")
	if len(patterns) > maxInstanceTypes {
		l.Add(nodes[0], fmt.Sprintf("%s has more than %d patterns", o.Label("instanceTypes"), maxInstanceTypes), "use wildcards: m7i.*")
		return
	}
	for i, pattern := range patterns {
		if problem := badGlob(pattern); problem != "" {
			l.Add(nodes[i], fmt.Sprintf("instance type %q %s", wording.Clip(pattern), problem), `write one such as t3.medium or "m7i.*"`)
			patterns[i] = "*"
		}
	}
	p.instanceTypes = patterns
	p.schema = l.t.general
	if len(patterns) == 0 || l.t.general == nil {
		return
	}
	if !schema.HasFormat(l.t.schema.Doc, schema.InstanceType) {
		l.Add(nodes[0], o.Label("instanceTypes")+" has no effect: no variable has format: "+schema.InstanceType,
			"say format: "+schema.InstanceType+" at the variables that name one")
		return
	}
	s, err := l.t.schema.Compile(p.name, patterns)
	if err != nil { // it was fine without
		l.Add(nodes[0], "spec.variables is not a JSON Schema that can be used: "+err.Error(), "")
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
		return "is not a pattern"
	}
	return ""
}

// defaults reads the values that a provider gives to variables.
func (l *templateLoader) defaults(p *provider, o *decode.Object) {
	s := l.t.schema
	if o.Node != nil {
		p.defaults, _ = l.Value(o.Node).(map[string]any)
		for i := 0; i+1 < len(o.Node.Content); i += 2 {
			key, value := o.Node.Content[i], o.Node.Content[i+1]
			switch {
			case s.Properties[key.Value] == nil && !s.Open:
				l.Add(key, fmt.Sprintf("unknown variable %q", wording.Clip(key.Value)), wording.DidYouMean(key.Value, s.Names))
			case s.Secrets[key.Value]:
				l.secretDefault(key.Value, p.defaults[key.Value], value)
			case p.schema != nil:
				for _, v := range p.schema.Variable(key.Value, p.defaults[key.Value]) {
					l.Add(nodeAt(value, v.Path[1:]), v.Message, v.Hint)
				}
			}
		}
	}
	if p.schema == nil || p.schema == l.t.general {
		return
	}
	// A default of the schema that this provider does not replace, and cannot have.
	for _, name := range slices.Sorted(maps.Keys(s.Defaults)) {
		if _, replaced := p.defaults[name]; replaced || len(l.t.general.Variable(name, s.Defaults[name])) > 0 {
			continue
		}
		for _, v := range p.schema.Variable(name, s.Defaults[name]) {
			l.Add(nodeAt(l.schemaNode, []string{"properties", name, "default"}), "the default of "+v.Message,
				"give the provider a default of its own")
		}
	}
}

// reservedVariables are names that the engines refuse in a variable block.
func reservedVariables() []string {
	return []string{"source", "version", "providers", "count", "for_each", "lifecycle", "depends_on", "locals", "_"}
}
