package modules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/holdfast-dev/holdfast"
)

const (
	// anyText stands for what depends on values while a source is evaluated; no
	// source has it.
	anyText = "\x00"
	// maxPattern bounds a source, in bytes: locals of locals double it.
	maxPattern = 4096
	// maxChoices bounds how many texts a source can be.
	maxChoices = 64
)

// source is that of a module's call, which depends on values.
type source struct {
	module       string // the name of the call
	expr         hcl.Expression
	file         string
	line, column int
	variable     string // whose value it is, and nothing else; else empty
}

// fault is one of the source.
func (s source) fault(message, hint string) holdfast.Fault {
	return holdfast.Fault{File: s.file, Line: s.line, Column: s.column, Message: message, Hint: hint}
}

// unknown is the fault of a source of which nobody knows here whether it is a folder.
func (s source) unknown() holdfast.Fault {
	return s.fault(
		fmt.Sprintf("module %q has a source that depends on values, and it is not known here whether it is a folder of the repository", s.module),
		"begin it with ./ or ../, or with the address that it is fetched from: what follows may depend on values",
	)
}

// pattern is a source that is a folder, with "*" in place of what depends on values.
type pattern struct {
	text string
	of   source
}

// patterns evaluates the sources of a module's calls that depend on values.
type patterns struct {
	locals map[string]hcl.Expression
	known  map[string][]string // by local: the texts that it can be
}

// resolvePatterns makes the patterns of the module's sources, once all its files
// are read. Those that are not known to be a folder or none are left open.
func (m *Module) resolvePatterns() {
	p := patterns{locals: m.locals, known: make(map[string][]string)}
	for _, s := range m.sources {
		for _, text := range p.texts(nativeOf(s.expr)) {
			start, _, depends := strings.Cut(text, anyText)
			unknown := depends && strings.Trim(start, ".") == "" // "..${var.x}" may be "../x"
			local := IsLocal(start) && !unknown
			if strings.ContainsAny(text, `*?[\`) && local || unknown {
				s.variable = variableOf(s.expr)
				m.open = append(m.open, s)
				break
			}
			text = strings.ReplaceAll(text, anyText, "*")
			known := slices.ContainsFunc(m.patterns, func(p pattern) bool { return p.text == text })
			if local && !known {
				m.patterns = append(m.patterns, pattern{text, s})
			}
		}
	}
	m.sources, m.locals = nil, nil
}

// variableOf is the name of the variable whose value an expression is, empty if it is not
// one's.
func variableOf(expr hcl.Expression) string {
	traversal, diags := hcl.AbsTraversalForExpr(nativeOf(expr))
	if diags.HasErrors() || len(traversal) != 2 || traversal.RootName() != "var" {
		return ""
	}
	attr, _ := traversal[1].(hcl.TraverseAttr)
	return attr.Name
}

// unreadable is an expression that is not evaluated.
var unreadable hclsyntax.Expression = &hclsyntax.LiteralValueExpr{Val: cty.DynamicVal} //nolint:gochecknoglobals // a constant

// nativeOf is an expression as the native syntax has it: what JSON has as a text is a template.
func nativeOf(expr hcl.Expression) hclsyntax.Expression {
	native, ok := expr.(hclsyntax.Expression)
	if !ok {
		raw, ok := constant(expr, nil)
		if !ok || raw.Type() != cty.String || tooDeep([]byte(raw.AsString())) > 0 {
			return unreadable
		}
		parsed, diags := hclsyntax.ParseTemplate([]byte(raw.AsString()), "", hcl.InitialPos)
		if diags.HasErrors() {
			return unreadable
		}
		native = parsed
	}
	if exceeds(native, maxEffort) > 0 {
		return unreadable
	}
	return native
}

// texts are those that an expression can be, with anyText in place of what depends on
// variables or is made by functions.
func (p *patterns) texts(expr hclsyntax.Expression) []string {
	switch e := expr.(type) {
	case *hclsyntax.TemplateExpr:
		return p.joined(e.Parts)
	case *hclsyntax.TemplateWrapExpr:
		return p.texts(e.Wrapped)
	case *hclsyntax.ParenthesesExpr:
		return p.texts(e.Expression)
	case *hclsyntax.ConditionalExpr:
		return bounded(slices.Concat(p.texts(e.TrueResult), p.texts(e.FalseResult)))
	case *hclsyntax.ScopeTraversalExpr:
		return p.referred(e)
	case *hclsyntax.IndexExpr:
		if all, ok := p.value(e.Collection); ok {
			return itemsIn(all)
		}
	case *hclsyntax.FunctionCallExpr:
		if e.Name == "format" && len(e.Args) > 0 {
			return formats(p.texts(e.Args[0]))
		}
	default:
		if v, ok := p.value(expr); ok {
			return bounded([]string{textOf(v)})
		}
	}
	return []string{anyText}
}

// joined are the texts that parts can be one after the other.
func (p *patterns) joined(parts []hclsyntax.Expression) []string {
	texts := []string{""}
	for _, part := range parts {
		var next []string
		for _, end := range p.texts(part) {
			for _, begin := range texts {
				next = append(next, begin+end)
			}
		}
		texts = bounded(next)
	}
	return texts
}

// bounded are texts, or anyText if they are too many or too long: that stands for them all.
func bounded(texts []string) []string {
	slices.Sort(texts)
	texts = slices.Compact(texts)
	tooLong := func(text string) bool { return len(text) > maxPattern }
	if len(texts) > maxChoices || slices.ContainsFunc(texts, tooLong) {
		return []string{anyText}
	}
	return texts
}

// verb is what format puts a value in place of, or a percent sign.
var verb = regexp.MustCompile(`%[^a-zA-Z%]*[a-zA-Z%]`)

// formats are the texts that format can make of a text.
func formats(texts []string) []string {
	for i, text := range texts {
		texts[i] = verb.ReplaceAllStringFunc(text, func(found string) string {
			if found == "%%" {
				return "%"
			}
			return anyText
		})
	}
	return bounded(texts)
}

// referred are the texts of what a source refers to.
func (p *patterns) referred(expr *hclsyntax.ScopeTraversalExpr) []string {
	root, name := expr.Traversal.RootName(), ""
	if len(expr.Traversal) > 1 {
		attr, _ := expr.Traversal[1].(hcl.TraverseAttr)
		name = attr.Name
	}
	switch {
	case root == "path" && (name == "module" || name == "root"):
		return []string{"."}
	case root != "local" || p.locals[name] == nil:
		return []string{anyText}
	case len(expr.Traversal) > 2:
		if v, ok := p.value(expr); ok {
			return bounded([]string{textOf(v)})
		}
		return []string{anyText}
	}
	texts, ok := p.known[name]
	if !ok {
		p.known[name] = []string{anyText} // and if it refers to itself
		texts = p.texts(nativeOf(p.locals[name]))
		p.known[name] = texts
	}
	return slices.Clone(texts)
}

// value is that of an expression that depends on nothing, or of a part of a local that
// depends on nothing.
func (p *patterns) value(expr hclsyntax.Expression) (cty.Value, bool) {
	reference, ok := expr.(*hclsyntax.ScopeTraversalExpr)
	if !ok {
		return constant(expr, nil)
	}
	if len(reference.Traversal) < 2 || reference.Traversal.RootName() != "local" {
		return cty.NilVal, false
	}
	attr, _ := reference.Traversal[1].(hcl.TraverseAttr)
	if p.locals[attr.Name] == nil {
		return cty.NilVal, false
	}
	v, ok := constant(p.locals[attr.Name], nil)
	if !ok {
		return cty.NilVal, false
	}
	v, diags := reference.Traversal[2:].TraverseRel(v)
	return v, !diags.HasErrors() && !v.IsNull() && v.IsWhollyKnown()
}

// itemsIn are the texts in a list or an object.
func itemsIn(all cty.Value) []string {
	if !all.CanIterateElements() {
		return []string{anyText}
	}
	var texts []string
	for _, item := range all.Elements() {
		texts = append(texts, textOf(item))
	}
	return bounded(texts)
}

// textOf is a value as a text; anyText if it is not one.
func textOf(v cty.Value) string {
	text, err := convert.Convert(v, cty.String)
	if err != nil || text.IsNull() || !text.IsKnown() {
		return anyText
	}
	return text.AsString()
}
