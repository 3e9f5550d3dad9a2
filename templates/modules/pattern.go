package modules

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

const (
	// anyText stands for what depends on values while a source is evaluated; no
	// source has it.
	anyText = "\x00"
	// maxPattern bounds a source, in bytes: locals of locals double it.
	maxPattern = 4096
)

// patterns evaluates the sources of a module's calls that depend on values.
type patterns struct {
	locals map[string]hcl.Expression
	known  map[string]string // by local: its text, anyText if it has none that can be told
}

// resolvePatterns makes the patterns of the module's sources, once all its files
// are read.
func (m *Module) resolvePatterns() {
	p := patterns{locals: m.locals, known: make(map[string]string)}
	for _, source := range m.sources {
		text, ok := p.text(source)
		if !ok || strings.ContainsAny(text, `*?[\`) {
			continue
		}
		if text = strings.ReplaceAll(text, anyText, "*"); IsLocal(text) && !slices.Contains(m.patterns, text) {
			m.patterns = append(m.patterns, text)
		}
	}
	m.sources, m.locals = nil, nil
}

// text evaluates an expression to text with anyText in place of what depends on
// variables. It reports false for what is no such text, or is made by functions.
func (p *patterns) text(expr hcl.Expression) (string, bool) {
	native, ok := expr.(hclsyntax.Expression)
	if !ok { // what JSON has as a text is a template
		raw, ok := constant(expr, nil)
		if !ok || raw.Type() != cty.String || tooDeep([]byte(raw.AsString())) > 0 {
			return "", false
		}
		parsed, diags := hclsyntax.ParseTemplate([]byte(raw.AsString()), "", hcl.InitialPos)
		if diags.HasErrors() {
			return "", false
		}
		native = parsed
	}
	if exceeds(native, maxEffort) > 0 {
		return "", false
	}
	roots := make(map[string]map[string]cty.Value)
	for _, traversal := range native.Variables() {
		if len(traversal) < 2 {
			return "", false
		}
		root := traversal.RootName()
		attr, ok := traversal[1].(hcl.TraverseAttr)
		if !ok {
			return "", false
		}
		if roots[root] == nil {
			roots[root] = make(map[string]cty.Value)
		}
		roots[root][attr.Name] = below(traversal[2:], p.value(root, attr.Name))
	}
	scope := &hcl.EvalContext{Variables: make(map[string]cty.Value, len(roots))}
	for root, attrs := range roots {
		scope.Variables[root] = cty.ObjectVal(attrs)
	}
	v, ok := constant(native, scope)
	if !ok || v.Type() != cty.String || len(v.AsString()) > maxPattern {
		return "", false
	}
	return v.AsString(), true
}

// value is the text of what a source refers to.
func (p *patterns) value(root, name string) string {
	switch {
	case root == "path" && name == "module":
		return "."
	case root != "local" || p.locals[name] == nil:
		return anyText
	}
	text, ok := p.known[name]
	if !ok {
		p.known[name] = anyText // and if it refers to itself
		if text, ok = p.text(p.locals[name]); !ok {
			text = anyText
		}
		p.known[name] = text
	}
	return text
}

// below returns text as the value that the rest of a traversal leads to.
func below(rest hcl.Traversal, text string) cty.Value {
	value := cty.StringVal(text)
	for _, step := range slices.Backward(rest) {
		switch step := step.(type) {
		case hcl.TraverseAttr:
			value = cty.ObjectVal(map[string]cty.Value{step.Name: value})
		case hcl.TraverseIndex:
			if step.Key.Type() == cty.String {
				value = cty.ObjectVal(map[string]cty.Value{step.Key.AsString(): value})
			}
		}
	}
	return value
}
