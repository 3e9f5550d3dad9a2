package modules

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/holdfast-dev/holdfast/internal/boundedhcl"
)

const (
	// anyText stands for what depends on values in the text of a source; no source
	// has it.
	anyText = "\x00"
	// maxPattern bounds a source, in bytes: locals of locals double it.
	maxPattern = 4096
	// maxTexts bounds what one source can be: conditions multiply it.
	maxTexts = 32
	// maxSourceDepth bounds expressions within those of a source, and locals within
	// locals.
	maxSourceDepth = 100
	// maxSourceSteps bounds the work for all sources of a module: each expression that is
	// looked at is a step, and each text that is made of it.
	maxSourceSteps = 20_000
)

// patterns finds what the sources of a module's calls can be that depend on values.
type patterns struct {
	locals map[string]hcl.Expression
	native map[string]hclsyntax.Expression // by local: what nativeOf makes of it
	known  map[string][]string             // by local: its texts
	steps  int                             // that are left
}

// resolvePatterns makes the patterns of the module's sources, once all its files
// are read.
func (m *Module) resolvePatterns() {
	p := patterns{
		locals: m.locals, native: make(map[string]hclsyntax.Expression), known: make(map[string][]string),
		steps: maxSourceSteps,
	}
	for _, source := range m.sources {
		for _, text := range p.texts(nativeOf(source), maxSourceDepth) {
			if strings.ContainsAny(text, `*?[\`) || len(m.patterns) >= maxModules {
				continue
			}
			if text = strings.ReplaceAll(text, anyText, "*"); IsLocal(text) && !slices.Contains(m.patterns, text) {
				m.patterns = append(m.patterns, text)
			}
		}
	}
	m.sources, m.locals = nil, nil
}

// nativeOf returns an expression of JSON as one of the native language: what JSON has as
// a text is a template. It is nil for one that is not a text.
func nativeOf(expr hcl.Expression) hclsyntax.Expression {
	if native, ok := expr.(hclsyntax.Expression); ok {
		return native
	}
	raw, ok := constant(expr, nil)
	if !ok || raw.Type() != cty.String {
		return nil
	}
	parsed, diags, err := boundedhcl.ParseTemplate(raw.AsString())
	if err != nil || diags.HasErrors() {
		return nil
	}
	return parsed
}

// texts returns what an expression can be as a text, with anyText in place of each part
// that depends on values, or of which too little is known. It leaves nothing out that the
// expression can be.
func (p *patterns) texts(expr hclsyntax.Expression, depth int) []string {
	if p.steps--; p.steps < 0 || depth == 0 {
		return []string{anyText}
	}
	var texts []string
	switch expr := expr.(type) {
	case *hclsyntax.LiteralValueExpr:
		texts = literalTexts(expr.Val)
	case *hclsyntax.ParenthesesExpr:
		return p.texts(expr.Expression, depth-1)
	case *hclsyntax.TemplateWrapExpr:
		return p.texts(expr.Wrapped, depth-1)
	case *hclsyntax.TemplateExpr:
		texts = p.joined(expr.Parts, depth)
	case *hclsyntax.ConditionalExpr:
		texts = p.either(depth, expr.TrueResult, expr.FalseResult)
	case *hclsyntax.FunctionCallExpr:
		texts = p.formatted(expr, depth)
	case *hclsyntax.ScopeTraversalExpr:
		texts = p.referred(expr.Traversal, depth)
	case *hclsyntax.IndexExpr:
		texts = p.indexed(expr, depth)
	}
	p.steps -= len(texts)
	if len(texts) == 0 || len(texts) > maxTexts || slices.ContainsFunc(texts, func(text string) bool { return len(text) > maxPattern }) {
		return []string{anyText}
	}
	return texts
}

func literalTexts(v cty.Value) []string {
	text, err := convert.Convert(v, cty.String)
	if err != nil || text.IsNull() || !text.IsKnown() {
		return nil
	}
	return []string{text.AsString()}
}

// joined are the texts of expressions one after the other.
func (p *patterns) joined(parts []hclsyntax.Expression, depth int) []string {
	texts := []string{""}
	for _, part := range parts {
		ends := p.texts(part, depth-1)
		if len(texts)*len(ends) > maxTexts {
			ends = []string{anyText}
		}
		var next []string
		for _, start := range texts {
			if len(start) > maxPattern {
				return nil
			}
			for _, end := range ends {
				next = append(next, start+end)
			}
		}
		p.steps -= len(next)
		texts = next
	}
	return texts
}

// either are the texts of several expressions of which one counts.
func (p *patterns) either(depth int, exprs ...hclsyntax.Expression) []string {
	var texts []string
	for _, expr := range exprs {
		for _, text := range p.texts(expr, depth-1) {
			if !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
		if len(texts) > maxTexts {
			return nil
		}
	}
	return texts
}

// formatted are the texts of the function format, where it puts texts one after the other.
// Nothing is known of what other functions make.
func (p *patterns) formatted(call *hclsyntax.FunctionCallExpr, depth int) []string {
	if call.Name != "format" || len(call.Args) == 0 || call.ExpandFinal {
		return nil
	}
	layout := p.texts(call.Args[0], depth-1)
	if len(layout) != 1 || strings.Contains(layout[0], anyText) || strings.Contains(layout[0], "%%") {
		return nil
	}
	var parts []hclsyntax.Expression
	args := call.Args[1:]
	for i, text := range strings.Split(layout[0], "%") {
		if i > 0 {
			if len(args) == 0 || text == "" || !strings.Contains("sdv", text[:1]) {
				return nil
			}
			parts, args, text = append(parts, args[0]), args[1:], text[1:]
		}
		parts = append(parts, &hclsyntax.LiteralValueExpr{Val: cty.StringVal(text)})
	}
	return p.joined(parts, depth)
}

// referred are the texts of what a source refers to.
func (p *patterns) referred(to hcl.Traversal, depth int) []string {
	root, name := rootOf(to)
	switch {
	case root == "path" && name == "module":
		return []string{"."}
	case root != "local" || p.locals[name] == nil:
		return nil
	case len(to) == 2:
		return p.local(name, depth)
	}
	within := p.written(name)
	for _, step := range to[2:] {
		key, ok := keyOf(step)
		if !ok {
			return nil
		}
		within = p.member(within, key)
	}
	return p.texts(within, depth-1)
}

// rootOf returns what a reference begins with, such as local and its name; empty if it has no
// name.
func rootOf(to hcl.Traversal) (root, name string) {
	if len(to) < 2 {
		return "", ""
	}
	attr, _ := to[1].(hcl.TraverseAttr)
	return to.RootName(), attr.Name
}

// local are the texts of a local.
func (p *patterns) local(name string, depth int) []string {
	texts, ok := p.known[name]
	if !ok {
		p.known[name] = []string{anyText} // and if it refers to itself
		texts = p.texts(p.written(name), depth-1)
		p.known[name] = texts
	}
	return texts
}

// written returns how a local is written.
func (p *patterns) written(name string) hclsyntax.Expression {
	expr, ok := p.native[name]
	if !ok {
		expr = nativeOf(p.locals[name])
		p.native[name] = expr
	}
	return expr
}

// keyOf returns the name that a step of a traversal leads to.
func keyOf(step hcl.Traverser) (string, bool) {
	switch step := step.(type) {
	case hcl.TraverseAttr:
		return step.Name, true
	case hcl.TraverseIndex:
		if step.Key.Type() == cty.String {
			return step.Key.AsString(), true
		}
	}
	return "", false
}

// member returns what an object that is written out has below a key; nil if that is not
// known.
func (p *patterns) member(expr hclsyntax.Expression, key string) hclsyntax.Expression {
	object, ok := expr.(*hclsyntax.ObjectConsExpr)
	if !ok {
		return nil
	}
	var found hclsyntax.Expression
	for _, item := range object.Items {
		if p.steps--; p.steps < 0 {
			return nil
		}
		name, ok := nameOf(item.KeyExpr)
		if !ok {
			return nil
		}
		if name == key { // the last one counts
			found = item.ValueExpr
		}
	}
	return found
}

// nameOf returns the key of an object where it is a word or a text without expressions.
func nameOf(key hclsyntax.Expression) (string, bool) {
	if word := hcl.ExprAsKeyword(key); word != "" {
		return word, true
	}
	if wrapped, ok := key.(*hclsyntax.ObjectConsKeyExpr); ok {
		key = wrapped.Wrapped
	}
	if text, ok := key.(*hclsyntax.TemplateExpr); ok && text.IsStringLiteral() {
		v, _ := text.Value(nil)
		return v.AsString(), true
	}
	return "", false
}

// indexed are the texts of all that a local has which is a list or an object, as what is
// taken of it depends on values.
func (p *patterns) indexed(expr *hclsyntax.IndexExpr, depth int) []string {
	local, ok := expr.Collection.(*hclsyntax.ScopeTraversalExpr)
	if !ok || len(local.Traversal) != 2 {
		return nil
	}
	root, name := rootOf(local.Traversal)
	if root != "local" || p.locals[name] == nil {
		return nil
	}
	switch all := p.written(name).(type) {
	case *hclsyntax.ObjectConsExpr:
		var values []hclsyntax.Expression
		for _, item := range all.Items {
			values = append(values, item.ValueExpr)
		}
		return p.either(depth, values...)
	case *hclsyntax.TupleConsExpr:
		return p.either(depth, all.Exprs...)
	default:
		return nil
	}
}
