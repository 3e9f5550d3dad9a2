package tfschema

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/holdfast-dev/holdfast/internal/nearest"
)

// scope is what the names mean that its own place has: each, count, self, iterators,
// the variables of a for.
type scope struct {
	parent *scope
	names  map[string]cty.Value
	item   *hclsyntax.AnonSymbolExpr // of a splat
	value  cty.Value
}

func (s *scope) with(names map[string]cty.Value) *scope { return &scope{parent: s, names: names} }

func (s *scope) lookup(name string) (cty.Value, bool) {
	for ; s != nil; s = s.parent {
		if v, ok := s.names[name]; ok {
			return v, true
		}
	}
	return cty.NilVal, false
}

// infer returns the value of an expression as far as it can be told: literals
// are known, all else is unknown and of the right type. Faults are noted in
// every part of it, also in branches that would not be taken.
func (c *checker) infer(expr hclsyntax.Expression, s *scope) cty.Value {
	switch e := expr.(type) {
	case *hclsyntax.LiteralValueExpr:
		return e.Val
	case *hclsyntax.ParenthesesExpr:
		return c.infer(e.Expression, s)
	case *hclsyntax.TemplateWrapExpr:
		return c.infer(e.Wrapped, s)
	case *hclsyntax.TemplateExpr:
		return c.inferTemplate(e, s)
	case *hclsyntax.TemplateJoinExpr:
		c.infer(e.Tuple, s)
		return cty.UnknownVal(cty.String)
	case *hclsyntax.TupleConsExpr:
		values := make([]cty.Value, len(e.Exprs))
		for i, inner := range e.Exprs {
			values[i] = c.infer(inner, s)
		}
		return cty.TupleVal(values)
	case *hclsyntax.ObjectConsExpr:
		return c.inferObject(e, s)
	case *hclsyntax.FunctionCallExpr:
		return c.inferCall(e, s)
	case *hclsyntax.ConditionalExpr:
		return c.inferConditional(e, s)
	case *hclsyntax.ScopeTraversalExpr:
		return c.traverse(e.Traversal, s)
	case *hclsyntax.RelativeTraversalExpr:
		return c.follow(c.infer(e.Source, s), e.Traversal)
	case *hclsyntax.IndexExpr:
		value, diags := hcl.Index(c.infer(e.Collection, s), c.infer(e.Key, s), &e.BracketRange)
		c.diagnostics(diags, e.BracketRange)
		return value
	case *hclsyntax.SplatExpr:
		return c.inferSplat(e, s)
	case *hclsyntax.AnonSymbolExpr:
		for ; s != nil; s = s.parent {
			if s.item == e {
				return s.value
			}
		}
		return cty.DynamicVal
	case *hclsyntax.ForExpr:
		return c.inferFor(e, s)
	case *hclsyntax.BinaryOpExpr:
		params := e.Op.Impl.Params()
		c.operand(e.LHS, params[0].Type, s)
		c.operand(e.RHS, params[1].Type, s)
		return cty.UnknownVal(e.Op.Type)
	case *hclsyntax.UnaryOpExpr:
		c.operand(e.Val, e.Op.Impl.Params()[0].Type, s)
		if value, diags := expr.Value(nil); !diags.HasErrors() {
			return value // a negative number
		}
		return cty.UnknownVal(e.Op.Type)
	case *hclsyntax.ObjectConsKeyExpr:
		return c.infer(e.Wrapped, s)
	}
	c.fault(expr.Range(), "an expression of a kind that the checker does not know: %T", expr)
	return cty.DynamicVal
}

func (c *checker) operand(expr hclsyntax.Expression, want cty.Type, s *scope) {
	if _, err := convert.Convert(c.infer(expr, s), want); err != nil {
		c.fault(expr.Range(), "wrong operand: %s", err)
	}
}

func (c *checker) inferTemplate(e *hclsyntax.TemplateExpr, s *scope) cty.Value {
	text := ""
	known := true
	for _, part := range e.Parts {
		value, err := convert.Convert(c.infer(part, s), cty.String)
		switch {
		case err != nil:
			c.fault(part.Range(), "cannot stand in a string: %s", err)
			known = false
		case !value.IsKnown():
			known = false
		case value.IsNull():
			c.fault(part.Range(), "null cannot stand in a string")
			known = false
		default:
			text += value.AsString()
		}
	}
	if !known {
		return cty.UnknownVal(cty.String)
	}
	return cty.StringVal(text)
}

func (c *checker) inferObject(e *hclsyntax.ObjectConsExpr, s *scope) cty.Value {
	attrs := map[string]cty.Value{}
	var types []cty.Type
	known := true
	for _, item := range e.Items {
		value := c.infer(item.ValueExpr, s)
		types = append(types, value.Type())
		name, ok := c.objectKey(item.KeyExpr, s)
		if !ok {
			known = false
			continue
		}
		if _, twice := attrs[name]; twice {
			c.fault(item.KeyExpr.Range(), "the key %q is given twice", name)
		}
		attrs[name] = value
	}
	if known {
		return cty.ObjectVal(attrs)
	}
	return unknownOf(cty.Map, unify(types))
}

// objectKey returns the key of an item if it can be told.
func (c *checker) objectKey(key hclsyntax.Expression, s *scope) (string, bool) {
	if k, ok := key.(*hclsyntax.ObjectConsKeyExpr); ok && !k.ForceNonLiteral {
		if word := hcl.ExprAsKeyword(k.Wrapped); word != "" {
			return word, true
		}
	}
	value, err := convert.Convert(c.infer(key, s), cty.String)
	if err != nil {
		c.fault(key.Range(), "cannot be a key: %s", err)
		return "", false
	}
	if !value.IsKnown() || value.IsNull() {
		return "", false
	}
	return value.AsString(), true
}

func (c *checker) inferConditional(e *hclsyntax.ConditionalExpr, s *scope) cty.Value {
	c.operand(e.Condition, cty.Bool, s)
	yes, no := c.infer(e.TrueResult, s), c.infer(e.FalseResult, s)
	switch {
	case isNull(yes):
		return cty.UnknownVal(no.Type())
	case isNull(no):
		return cty.UnknownVal(yes.Type())
	case yes.Type() == cty.DynamicPseudoType || no.Type() == cty.DynamicPseudoType:
		return cty.DynamicVal
	}
	typ, _ := convert.UnifyUnsafe([]cty.Type{yes.Type(), no.Type()})
	if typ == cty.NilType {
		c.fault(e.SrcRange, "the two results of the condition have no type in common: %s and %s",
			yes.Type().FriendlyName(), no.Type().FriendlyName())
		return cty.DynamicVal
	}
	return cty.UnknownVal(typ)
}

func isNull(v cty.Value) bool { return v.Type() == cty.DynamicPseudoType && v.IsKnown() && v.IsNull() }

func (c *checker) inferSplat(e *hclsyntax.SplatExpr, s *scope) cty.Value {
	source := c.infer(e.Source, s)
	typ := source.Type()
	each := func(elem cty.Value) cty.Value {
		return c.infer(e.Each, &scope{parent: s, item: e.Item, value: elem})
	}
	switch {
	case typ == cty.DynamicPseudoType:
		return cty.DynamicVal
	case typ.IsListType(), typ.IsSetType():
		return unknownOf(cty.List, each(cty.UnknownVal(typ.ElementType())).Type())
	case typ.IsTupleType():
		var values []cty.Value
		for i, elem := range typ.TupleElementTypes() {
			value := cty.UnknownVal(elem)
			if source.IsKnown() && !source.IsNull() {
				value = source.Index(cty.NumberIntVal(int64(i)))
			}
			values = append(values, each(value))
		}
		return cty.TupleVal(values)
	}
	return unknownOf(cty.List, each(source).Type())
}

func (c *checker) inferFor(e *hclsyntax.ForExpr, s *scope) cty.Value {
	coll := c.infer(e.CollExpr, s)
	key, elem, ok := elements(coll)
	if !ok {
		c.fault(e.CollExpr.Range(), "for goes over a list, a set, a map or an object, not %s", coll.Type().FriendlyName())
	}
	names := map[string]cty.Value{e.ValVar: elem}
	if e.KeyVar != "" {
		names[e.KeyVar] = key
	}
	inner := s.with(names)
	if e.CondExpr != nil {
		c.operand(e.CondExpr, cty.Bool, inner)
	}
	value := c.infer(e.ValExpr, inner).Type()
	if e.KeyExpr == nil {
		return unknownOf(cty.List, value)
	}
	c.operand(e.KeyExpr, cty.String, inner)
	if e.Group {
		value = unknownOf(cty.List, value).Type()
	}
	return unknownOf(cty.Map, value)
}

// elements returns what keys and values of a collection are.
func elements(coll cty.Value) (key, elem cty.Value, ok bool) {
	typ := coll.Type()
	switch {
	case typ == cty.DynamicPseudoType:
		return cty.DynamicVal, cty.DynamicVal, true
	case typ.IsListType():
		return cty.UnknownVal(cty.Number), cty.UnknownVal(typ.ElementType()), true
	case typ.IsSetType():
		return cty.UnknownVal(typ.ElementType()), cty.UnknownVal(typ.ElementType()), true
	case typ.IsMapType():
		return cty.UnknownVal(cty.String), cty.UnknownVal(typ.ElementType()), true
	case typ.IsTupleType():
		return cty.UnknownVal(cty.Number), cty.UnknownVal(unify(typ.TupleElementTypes())), true
	case typ.IsObjectType():
		return cty.UnknownVal(cty.String), cty.UnknownVal(unify(slices.Collect(maps.Values(typ.AttributeTypes())))), true
	}
	return cty.DynamicVal, cty.DynamicVal, false
}

// unify is the type that all of them can be, or any.
func unify(types []cty.Type) cty.Type {
	if len(types) == 0 {
		return cty.DynamicPseudoType
	}
	if typ, _ := convert.UnifyUnsafe(types); typ != cty.NilType {
		return typ
	}
	return cty.DynamicPseudoType
}

func unknownOf(coll func(cty.Type) cty.Type, elem cty.Type) cty.Value {
	if elem == cty.DynamicPseudoType {
		return cty.DynamicVal
	}
	return cty.UnknownVal(coll(elem))
}

func (c *checker) inferCall(e *hclsyntax.FunctionCallExpr, s *scope) cty.Value {
	var args []cty.Value
	var at []hcl.Range
	for _, arg := range e.Args {
		args, at = append(args, c.infer(arg, s)), append(at, arg.Range())
	}
	if e.ExpandFinal && len(args) > 0 {
		args, at = expand(args, at)
	}
	switch e.Name {
	case "try":
		var types []cty.Type
		for _, arg := range args {
			if !isNull(arg) {
				types = append(types, arg.Type())
			}
		}
		return cty.UnknownVal(unify(types))
	case "can":
		return cty.UnknownVal(cty.Bool)
	}
	f, ok := functions[e.Name]
	if !ok {
		c.fault(e.NameRange, "there is no function %q%s", e.Name, didYouMean(e.Name, functions))
		return cty.DynamicVal
	}
	params, rest := f.Params(), f.VarParam()
	if len(args) < len(params) || len(args) > len(params) && rest == nil {
		c.fault(e.NameRange, "%s takes %d arguments, not %d", e.Name, len(params), len(args))
		return cty.DynamicVal
	}
	for i := range args {
		param := rest
		if i < len(params) {
			param = &params[i]
		}
		value, err := convert.Convert(args[i], param.Type)
		if err != nil {
			c.fault(at[i], "wrong argument of %s: %s", e.Name, err)
			return cty.DynamicVal
		}
		args[i] = value
	}
	value, err := f.Call(args)
	if err != nil {
		where := e.NameRange
		var arg function.ArgError
		if errors.As(err, &arg) && arg.Index < len(at) {
			where = at[arg.Index]
		}
		c.fault(where, "%s: %s", e.Name, err)
		return cty.DynamicVal
	}
	return value
}

// expand puts the elements of the last argument in its place. Of a list of
// unknown length one stands for all.
func expand(args []cty.Value, at []hcl.Range) ([]cty.Value, []hcl.Range) {
	last := len(args) - 1
	final, place := args[last], at[last]
	args, at = args[:last:last], at[:last:last]
	if final.Type().IsTupleType() && final.IsKnown() && !final.IsNull() {
		for _, value := range final.AsValueSlice() {
			args, at = append(args, value), append(at, place)
		}
		return args, at
	}
	_, elem, _ := elements(final)
	return append(args, elem), append(at, place)
}

// traverse resolves a reference.
func (c *checker) traverse(t hcl.Traversal, s *scope) cty.Value {
	root := t.RootName()
	if value, ok := s.lookup(root); ok {
		return c.follow(value, t[1:])
	}
	at := t.SourceRange()
	switch root {
	case "var", "local", "module", "path", "terraform", "data":
	case "each", "count", "self":
		c.fault(at, "%s means nothing here", root)
		return cty.DynamicVal
	default:
		return c.traverseObject(t, root, 0)
	}
	name, ok := attrStep(t, 1)
	if !ok {
		c.fault(at, "%s needs a name after it", root)
		return cty.DynamicVal
	}
	switch root {
	case "var":
		return c.follow(c.variable(name, at), t[2:])
	case "local":
		return c.follow(c.local(name, at), t[2:])
	case "module":
		return c.follow(c.call(name, at), t[2:])
	case "data":
		return c.traverseObject(t, "data."+name, 1)
	case "path":
		return c.follow(cty.ObjectVal(map[string]cty.Value{
			"module": cty.UnknownVal(cty.String), "root": cty.UnknownVal(cty.String), "cwd": cty.UnknownVal(cty.String),
		}), t[1:])
	}
	return c.follow(cty.ObjectVal(map[string]cty.Value{"workspace": cty.UnknownVal(cty.String)}), t[1:])
}

func (c *checker) traverseObject(t hcl.Traversal, key string, skip int) cty.Value {
	at := t.SourceRange()
	name, ok := attrStep(t, skip+1)
	if !ok {
		c.fault(at, "%q is not known here", key)
		return cty.DynamicVal
	}
	o, ok := c.objects[key][name]
	if !ok {
		c.fault(at, "%s.%s is not declared%s", key, name, didYouMean(name, c.objects[key]))
		return cty.DynamicVal
	}
	return c.follow(o.value, t[skip+2:])
}

func attrStep(t hcl.Traversal, i int) (string, bool) {
	if len(t) <= i {
		return "", false
	}
	step, ok := t[i].(hcl.TraverseAttr)
	return step.Name, ok
}

func (c *checker) follow(value cty.Value, rest hcl.Traversal) cty.Value {
	for i, step := range rest {
		next, diags := hcl.Traversal{step}.TraverseRel(value)
		if diags.HasErrors() {
			hint := ""
			if attr, ok := step.(hcl.TraverseAttr); ok && value.Type().IsObjectType() {
				hint = didYouMean(attr.Name, value.Type().AttributeTypes())
				c.fault(rest[i].SourceRange(), "there is no attribute %q%s", attr.Name, hint)
			} else {
				c.diagnostics(diags, rest[i].SourceRange())
			}
			return cty.DynamicVal
		}
		value = next
	}
	return value
}

func (c *checker) variable(name string, at hcl.Range) cty.Value {
	v, ok := c.module.Variables[name]
	if !ok {
		c.fault(at, "variable %q is not declared%s", name, didYouMean(name, c.module.Variables))
		return cty.DynamicVal
	}
	if c.within != name {
		v.Used = true
	}
	return cty.UnknownVal(v.Type.WithoutOptionalAttributesDeep())
}

func (c *checker) local(name string, at hcl.Range) cty.Value {
	l, ok := c.locals[name]
	if !ok {
		c.fault(at, "local value %q is not declared%s", name, didYouMean(name, c.locals))
		return cty.DynamicVal
	}
	l.used = true
	if l.running {
		c.fault(at, "local value %q refers to itself", name)
		return cty.DynamicVal
	}
	return c.inferLocal(l)
}

func (c *checker) inferLocal(l *local) cty.Value {
	if !l.inferred {
		l.running = true
		l.value = c.infer(l.attr.Expr, nil)
		l.running, l.inferred = false, true
	}
	return l.value
}

// didYouMean is the end of a message when one of the names is near.
func didYouMean[V any](word string, names map[string]V) string {
	if near := nearest.Of(word, slices.Collect(maps.Keys(names))); near != "" {
		return fmt.Sprintf(", did you mean %q?", near)
	}
	return ""
}
