package templates

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/holdfast-dev/holdfast/templates/condition"
	"github.com/holdfast-dev/holdfast/templates/hclvalue"
	"github.com/holdfast-dev/holdfast/templates/modules"
	"github.com/holdfast-dev/holdfast/templates/schema"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// mismatch is where a value does not have the type that a module's variable
// wants.
type mismatch struct {
	path string // from the value: "[].count"
	want string
	got  string
}

// typed checks that an input has the type that the module's variable wants. It
// refuses only what the engine would refuse: what is not known is accepted.
func (l *templateLoader) typed(call templateCall, input string, want cty.Type) {
	m := l.fit(call.inputs[input], want, "")
	if m == nil {
		return
	}
	l.Add(call.keys[input], fmt.Sprintf("module %q wants %s%s as %s, and %s", call.name, input, m.path, m.want, m.got), "")
}

// typeWords names a type; of an object, what it must have.
func typeWords(t cty.Type) string {
	if !t.IsObjectType() {
		return wording.Clip(typeexpr.TypeString(t))
	}
	var names []string
	for _, name := range sortedKeys(t.AttributeTypes()) {
		if !t.AttributeOptional(name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "an object"
	}
	return wording.Clip("an object with " + wording.Listed(names))
}

// fit compares a parsed template with a type.
func (l *templateLoader) fit(v any, want cty.Type, path string) *mismatch {
	if want == cty.DynamicPseudoType {
		return nil
	}
	switch v := v.(type) {
	case []hclvalue.Part:
		return l.fitText(v, want, path)
	case []any:
		return l.fitList(v, want, path)
	case map[string]any:
		return l.fitMapping(v, want, path)
	case nil:
		return nil
	}
	return fitScalar(hclvalue.Scalar(v), want, path)
}

func fitScalar(v cty.Value, want cty.Type, path string) *mismatch {
	if want.IsPrimitiveType() {
		if _, err := convert.Convert(v, want); err == nil {
			return nil
		}
	}
	got := "this is " + v.Type().FriendlyName()
	if word, err := convert.Convert(v, cty.String); err == nil && !v.IsNull() {
		got = "this is " + wording.Clip(word.AsString())
		if v.Type() == cty.String {
			got = fmt.Sprintf("this is %q", wording.Clip(word.AsString()))
		}
	}
	return &mismatch{path, typeWords(want), got}
}

// misfit compares a value that a cluster gives with what a variable wants.
func misfit(v modules.Variable, value any) *mismatch {
	return (&templateLoader{}).fit(literal(value), v.Full, "")
}

// literal is a value as a parsed template, in which all texts are what they are.
func literal(v any) any {
	switch v := v.(type) {
	case string:
		return []hclvalue.Part{{Literal: v}}
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = literal(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, item := range v {
			out[name] = literal(item)
		}
		return out
	}
	return v
}

// fitText compares a text, or a reference that keeps its type.
func (l *templateLoader) fitText(parts []hclvalue.Part, want cty.Type, path string) *mismatch {
	if len(parts) == 1 && parts[0].Words != nil {
		return l.fitReference(parts[0], want, path)
	}
	var literal strings.Builder
	for _, p := range parts {
		if p.Words != nil { // known only to the engine
			if want.IsPrimitiveType() {
				return nil
			}
			return &mismatch{path, typeWords(want), "this is a text"}
		}
		literal.WriteString(p.Literal)
	}
	return fitScalar(cty.StringVal(literal.String()), want, path)
}

func (l *templateLoader) fitReference(ref hclvalue.Part, want cty.Type, path string) *mismatch {
	var given *schema.Shape
	what := ""
	switch {
	case len(ref.Words) < 2:
		return nil
	case ref.Words[0] == "cluster":
		given, what = &schema.Shape{Kind: schema.String}, ref.Text
	case ref.Words[0] == "var" && l.t.schema.Shapes[ref.Words[1]] != nil:
		given, _, _ = l.t.schema.Shapes[ref.Words[1]].At(ref.Words[2:])
		what = fmt.Sprintf("variable %q", strings.TrimPrefix(ref.Text, "var."))
	}
	if given == nil {
		return nil // of another module, or reported already
	}
	if m := fitShape(given, want, ""); m != nil {
		if m.path != "" {
			what += " has " + m.got + " there"
		} else {
			what += " is " + m.got
		}
		return &mismatch{path + m.path, m.want, what}
	}
	return nil
}

func (l *templateLoader) fitList(items []any, want cty.Type, path string) *mismatch {
	switch {
	case want.IsListType() || want.IsSetType():
		for _, item := range items {
			if m := l.fit(item, want.ElementType(), path+"[]"); m != nil {
				return m
			}
		}
		return nil
	case want.IsTupleType():
		types := want.TupleElementTypes()
		if len(types) != len(items) {
			return &mismatch{path, typeWords(want), fmt.Sprintf("this has %s", wording.Count(len(items), "item"))}
		}
		for i, item := range items {
			if m := l.fit(item, types[i], fmt.Sprintf("%s[%d]", path, i)); m != nil {
				return m
			}
		}
		return nil
	}
	return &mismatch{path, typeWords(want), "this is a list"}
}

func (l *templateLoader) fitMapping(values map[string]any, want cty.Type, path string) *mismatch {
	switch {
	case want.IsMapType():
		for _, name := range sortedKeys(values) {
			if m := l.fit(values[name], want.ElementType(), path+"."+name); m != nil {
				return m
			}
		}
		return nil
	case want.IsObjectType():
		types := want.AttributeTypes()
		for _, name := range sortedKeys(types) {
			value, ok := values[name]
			if !ok {
				if !want.AttributeOptional(name) {
					return &mismatch{path, typeWords(want), fmt.Sprintf("this has no %s", name)}
				}
				continue
			}
			if m := l.fit(value, types[name], path+"."+name); m != nil {
				return m
			}
		}
		return nil
	}
	return &mismatch{path, typeWords(want), "this is a mapping"}
}

// fitShape compares what a schema says of a value with a type that the engine has to
// convert it to, whatever the value is. got of the mismatch is what it is.
func fitShape(s *schema.Shape, want cty.Type, path string) *mismatch {
	bad := &mismatch{path, typeWords(want), s.Words()}
	switch {
	case want == cty.DynamicPseudoType || s.Kind == schema.Any:
		return nil
	case s.Kind == schema.String:
		if want == cty.String {
			return nil
		}
	case s.Kind == schema.Integer || s.Kind == schema.Number:
		if want == cty.Number || want == cty.String {
			return nil
		}
	case s.Kind == schema.Bool:
		if want == cty.Bool || want == cty.String {
			return nil
		}
	case s.Kind == schema.List:
		if want.IsListType() || want.IsSetType() {
			return fitShape(s.Items, want.ElementType(), path+"[]")
		}
		if want.IsTupleType() {
			return nil // it depends on how many there are
		}
	case s.Kind == schema.Mapping:
		if want.IsMapType() {
			return fitShape(s.Items, want.ElementType(), path+".*")
		}
		if want.IsObjectType() {
			return nil // it depends on the keys
		}
	case s.Kind == schema.Object:
		return fitObject(s, want, path, bad)
	}
	return bad
}

func fitObject(s *schema.Shape, want cty.Type, path string, bad *mismatch) *mismatch {
	switch {
	case want.IsMapType():
		for _, name := range sortedKeys(s.Fields) {
			if m := fitShape(s.Fields[name], want.ElementType(), path+"."+name); m != nil {
				return m
			}
		}
		return nil
	case want.IsObjectType():
		types := want.AttributeTypes()
		for _, name := range sortedKeys(types) {
			field := s.Fields[name]
			switch {
			case field != nil:
				if m := fitShape(field, types[name], path+"."+name); m != nil {
					return m
				}
			case s.Closed && !want.AttributeOptional(name):
				return &mismatch{path, typeWords(want), "a mapping without " + name}
			}
		}
		return nil
	}
	return bad
}

// offInputs reports inputs that are left out while the module that they refer
// to is off, and that the called module cannot do without.
func (l *templateLoader) offInputs(p *provider, call templateCall, m *modules.Module) {
	for _, input := range sortedKeys(call.inputs) {
		v, known := m.Variables[input]
		if !known || !v.Required {
			continue
		}
		for _, name := range call.refers[input] {
			other := p.find(name)
			if other.name == "" || other.when == nil || sameWhen(call.when, other.when) {
				continue
			}
			l.Add(call.keys[input], fmt.Sprintf("module %q needs the input %q, which is left out while module %q is off", call.name, input, name),
				fmt.Sprintf("give the module's variable a default, or the module the same when: %s", wording.Clip(other.when.Text)))
		}
	}
}

func sameWhen(a, b *condition.Expression) bool { return a != nil && b != nil && a.Text == b.Text }

// leftOut reports inputs that are null when a variable is left out, where the
// called module takes no null and has no default.
func (l *templateLoader) leftOut(p *provider, call templateCall, input string, v modules.Variable) {
	parts, _ := call.inputs[input].([]hclvalue.Part)
	if len(parts) != 1 || len(parts[0].Words) != 2 || parts[0].Words[0] != "var" || v.Nullable || !v.Required {
		return
	}
	name := parts[0].Words[1]
	s := l.t.schema
	_, referred := s.SecretDefaults[name]
	if s.Properties[name] == nil || referred || p.always(name) || l.mayRequire(name) {
		return
	}
	if call.when != nil && (call.when.Asks[name] || call.when.Uses[name]) {
		return
	}
	l.Add(call.keys[input], fmt.Sprintf("module %q does not accept null as %s, and variable %q is null when it is left out", call.name, input, name),
		"give the variable a default, or require it")
}

// mayRequire reports whether something else than `required` may see to it that
// a variable is there.
func (l *templateLoader) mayRequire(name string) bool {
	for _, keyword := range []string{"allOf", "anyOf", "oneOf", "if", "dependentRequired", "dependentSchemas", "$ref", "minProperties"} {
		if l.t.schema.Doc[keyword] != nil {
			return true
		}
	}
	return slices.ContainsFunc(l.ruleTexts, func(text string) bool { return strings.Contains(text, name) })
}
