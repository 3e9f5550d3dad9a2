package tfschema

import (
	"path"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// check goes through all that the module declares.
func (c *checker) check() {
	for name, v := range c.module.Variables {
		c.checkVariable(name, v)
	}
	for _, l := range c.locals {
		c.inferLocal(l)
	}
	for _, named := range c.objects {
		for _, o := range named {
			c.checkObject(o)
		}
	}
	for name, block := range c.calls {
		c.checkCall(name, block)
	}
	for _, o := range c.module.Outputs {
		c.checkOutput(o)
	}
	for _, block := range c.configs {
		c.checkConfig(block)
	}
	c.checkProviders()
	if c.blind {
		return
	}
	for name, l := range c.locals {
		if !l.used {
			c.fault(l.attr.NameRange, "local value %q is not used", name)
		}
	}
}

// settings are the arguments of blocks that belong to the language; true for
// those that must be there.
type settings map[string]bool

func (c *checker) known(block *hclsyntax.Block, args settings, blocks ...string) {
	for name, attr := range block.Body.Attributes {
		if _, ok := args[name]; !ok {
			c.fault(attr.NameRange, "a %s block has no argument %q%s", block.Type, name, didYouMean(name, args))
		}
	}
	for name, required := range args {
		if required && block.Body.Attributes[name] == nil {
			c.fault(block.DefRange(), "this %s block needs the argument %q", block.Type, name)
		}
	}
inner:
	for _, nested := range block.Body.Blocks {
		for _, name := range blocks {
			if nested.Type == name {
				continue inner
			}
		}
		c.fault(nested.TypeRange, "a %s block has no block %q", block.Type, nested.Type)
	}
}

func (c *checker) checkVariable(name string, v *Variable) {
	c.known(v.block, settings{"type": false, "default": false, "description": false, "sensitive": false, "nullable": false, "ephemeral": false}, "validation")
	c.within = name
	for _, inner := range v.block.Body.Blocks {
		c.checkCondition(inner, nil)
	}
	c.within = ""
}

// checkCondition checks a validation, a precondition or a postcondition.
func (c *checker) checkCondition(block *hclsyntax.Block, s *scope) {
	c.known(block, settings{"condition": true, "error_message": true})
	for name, want := range map[string]cty.Type{"condition": cty.Bool, "error_message": cty.String} {
		if attr := block.Body.Attributes[name]; attr != nil {
			c.assign(attr.Expr, want, s)
		}
	}
}

func (c *checker) checkOutput(o *Output) {
	c.known(o.block, settings{"value": true, "description": false, "sensitive": false, "ephemeral": false, "depends_on": false}, "precondition")
	if attr := o.block.Body.Attributes["value"]; attr != nil {
		o.Type = c.infer(attr.Expr, nil).Type()
	}
	c.dependsOn(o.block)
	for _, inner := range o.block.Body.Blocks {
		c.checkCondition(inner, nil)
	}
}

func (c *checker) dependsOn(block *hclsyntax.Block) {
	attr := block.Body.Attributes["depends_on"]
	if attr == nil {
		return
	}
	list, ok := attr.Expr.(*hclsyntax.TupleConsExpr)
	if !ok {
		c.fault(attr.Expr.Range(), "depends_on is a list of references")
		return
	}
	for _, item := range list.Exprs {
		if _, ok := item.(*hclsyntax.ScopeTraversalExpr); !ok {
			c.fault(item.Range(), "depends_on is a list of references")
			continue
		}
		c.infer(item, nil)
	}
}

// factsOf returns what is known about a resource or data source, or notes that
// nothing is.
func (c *checker) factsOf(o *object) *Body {
	name, _, _ := strings.Cut(o.typ, "_")
	at := o.block.LabelRanges[0]
	p, ok := c.facts[name]
	if !ok {
		c.blind = true
		c.fault(at, "nothing is known about the provider %q%s", name, didYouMean(name, c.facts))
		return nil
	}
	types, kind := p.Resources, "resource"
	if o.kind == "data" {
		types, kind = p.DataSources, "data source"
	}
	facts, ok := types[o.typ]
	if !ok {
		c.blind = true
		c.fault(at, "nothing is known about the %s %q%s (if it is a new one, generate the facts anew)", kind, o.typ, didYouMean(o.typ, types))
		return nil
	}
	return facts
}

func (c *checker) checkObject(o *object) {
	body := o.block.Body
	if o.facts == nil {
		return
	}
	s := c.repetition(body, o.block.DefRange())
	self := s.with(map[string]cty.Value{"self": cty.UnknownVal(o.facts.value)})
	meta := map[string]bool{"count": true, "for_each": true, "provider": true, "depends_on": true}
	metaBlocks := map[string]bool{"lifecycle": true, "provisioner": o.kind == "resource", "connection": o.kind == "resource"}
	c.dependsOn(o.block)
	for _, inner := range body.Blocks {
		switch {
		case inner.Type == "lifecycle":
			c.checkLifecycle(inner, o, self)
		case metaBlocks[inner.Type]:
			c.free(inner.Body, self)
		}
	}
	c.checkBody(body, o.facts, s, o.block.DefRange(), meta, metaBlocks)
}

// repetition checks count and for_each, and returns what they mean inside.
func (c *checker) repetition(body *hclsyntax.Body, at hcl.Range) *scope {
	count, each := body.Attributes["count"], body.Attributes["for_each"]
	switch {
	case count != nil && each != nil:
		c.fault(at, "count and for_each exclude one another")
	case count != nil:
		c.assign(count.Expr, cty.Number, nil)
		return (*scope)(nil).with(map[string]cty.Value{"count": cty.ObjectVal(map[string]cty.Value{"index": cty.UnknownVal(cty.Number)})})
	case each != nil:
		coll := c.infer(each.Expr, nil)
		key, elem, _ := elements(coll)
		if typ := coll.Type(); typ.IsListType() || typ.IsTupleType() || typ.IsPrimitiveType() ||
			typ.IsSetType() && typ.ElementType() != cty.String && typ.ElementType() != cty.DynamicPseudoType {
			c.fault(each.Expr.Range(), "for_each takes a map or a set of strings, not %s", typ.FriendlyName())
		}
		return (*scope)(nil).with(map[string]cty.Value{"each": cty.ObjectVal(map[string]cty.Value{"key": key, "value": elem})})
	}
	return nil
}

// free checks the references of a body whose arguments are not known.
func (c *checker) free(body *hclsyntax.Body, s *scope) {
	for _, attr := range body.Attributes {
		if hcl.ExprAsKeyword(attr.Expr) == "" { // when = destroy
			c.infer(attr.Expr, s)
		}
	}
	for _, inner := range body.Blocks {
		c.free(inner.Body, s)
	}
}

func (c *checker) checkLifecycle(block *hclsyntax.Block, o *object, self *scope) {
	c.known(block, settings{"create_before_destroy": false, "prevent_destroy": false, "ignore_changes": false, "replace_triggered_by": false}, "precondition", "postcondition")
	for _, inner := range block.Body.Blocks {
		c.checkCondition(inner, self)
	}
	if attr := block.Body.Attributes["replace_triggered_by"]; attr != nil {
		c.infer(attr.Expr, self)
	}
	for _, name := range []string{"create_before_destroy", "prevent_destroy"} {
		if attr := block.Body.Attributes[name]; attr != nil {
			c.assign(attr.Expr, cty.Bool, nil)
		}
	}
	attr := block.Body.Attributes["ignore_changes"]
	if attr == nil || hcl.ExprAsKeyword(attr.Expr) == "all" {
		return
	}
	items, diags := hcl.ExprList(attr.Expr)
	c.diagnostics(diags, attr.SrcRange)
	for _, item := range items {
		t, diags := hcl.RelTraversalForExpr(item)
		c.diagnostics(diags, item.Range())
		if diags.HasErrors() {
			continue
		}
		if name, ok := attrStep(t, 0); ok && o.facts.Attributes[name].Computed {
			c.fault(item.Range(), "%q is set by the provider alone: there is no change to ignore", name)
			continue
		}
		c.follow(cty.UnknownVal(o.facts.value), t)
	}
}

// checkBody holds a body to its facts. Names in meta and metaBlocks belong to the language.
func (c *checker) checkBody(body *hclsyntax.Body, facts *Body, s *scope, at hcl.Range, meta, metaBlocks map[string]bool) {
	for name, attr := range body.Attributes {
		if !meta[name] {
			c.checkArgument(attr, facts, s)
		}
	}
	for name, a := range facts.Attributes {
		if a.Required && body.Attributes[name] == nil {
			c.fault(at, "the required argument %q is missing", name)
		}
	}
	count, dynamic := map[string]int{}, map[string]bool{}
	for _, block := range body.Blocks {
		switch {
		case metaBlocks[block.Type]:
		case block.Type == "dynamic" && len(block.Labels) == 1:
			dynamic[block.Labels[0]] = true
			c.checkDynamic(block, facts, s)
		default:
			count[block.Type]++
			c.checkBlock(block, block.Type, block.TypeRange, facts, s)
		}
	}
	for name, block := range facts.Blocks {
		if count[name] < block.Min && !dynamic[name] {
			c.fault(at, "the required block %q is missing", name)
		}
		if block.Max > 0 && count[name] > block.Max || block.Nesting == "single" && count[name] > 1 {
			c.fault(at, "the block %q may stand here once, not %d times", name, count[name])
		}
	}
}

func (c *checker) checkArgument(attr *hclsyntax.Attribute, facts *Body, s *scope) {
	a, ok := facts.Attributes[attr.Name]
	switch {
	case ok && a.Computed:
		c.fault(attr.NameRange, "the argument %q cannot be set: the provider sets it", attr.Name)
		c.infer(attr.Expr, s)
	case ok:
		value := c.assign(attr.Expr, a.Type, s)
		if a.Required && isNull(value) {
			c.fault(attr.Expr.Range(), "the required argument %q is null", attr.Name)
		}
	case facts.Blocks[attr.Name] != nil:
		c.fault(attr.NameRange, "%q is a block, not an argument: no \"=\" before its brace", attr.Name)
		c.infer(attr.Expr, s)
	default:
		c.fault(attr.NameRange, "unknown argument %q%s", attr.Name, didYouMean(attr.Name, facts.Attributes))
		c.infer(attr.Expr, s)
	}
}

func (c *checker) checkBlock(block *hclsyntax.Block, name string, at hcl.Range, facts *Body, s *scope) {
	inner, ok := facts.Blocks[name]
	if !ok {
		if _, argument := facts.Attributes[name]; argument {
			c.fault(at, "%q is an argument, not a block: write %s = ...", name, name)
		} else {
			c.fault(at, "unknown block %q%s", name, didYouMean(name, facts.Blocks))
		}
		c.free(block.Body, s)
		return
	}
	c.checkBody(block.Body, &inner.Body, s, block.DefRange(), nil, nil)
}

func (c *checker) checkDynamic(block *hclsyntax.Block, facts *Body, s *scope) {
	c.known(block, settings{"for_each": true, "iterator": false, "labels": false}, "content")
	name := block.Labels[0]
	iterator := name
	if attr := block.Body.Attributes["iterator"]; attr != nil {
		iterator = hcl.ExprAsKeyword(attr.Expr)
	}
	key, elem := cty.DynamicVal, cty.DynamicVal
	if attr := block.Body.Attributes["for_each"]; attr != nil {
		coll := c.infer(attr.Expr, s)
		var ok bool
		if key, elem, ok = elements(coll); !ok {
			c.fault(attr.Expr.Range(), "for_each takes a list, a set, a map or an object, not %s", coll.Type().FriendlyName())
		}
	}
	inner := s.with(map[string]cty.Value{iterator: cty.ObjectVal(map[string]cty.Value{"key": key, "value": elem})})
	content := false
	for _, nested := range block.Body.Blocks {
		if nested.Type == "content" {
			content = true
			c.checkBlock(nested, name, block.LabelRanges[0], facts, inner)
		}
	}
	if !content {
		c.fault(block.DefRange(), "a dynamic block needs a content block")
	}
}

// assign checks that an expression can be given to something of the type.
func (c *checker) assign(expr hclsyntax.Expression, want cty.Type, s *scope) cty.Value {
	value := c.infer(expr, s)
	if _, err := convert.Convert(value, want); err != nil {
		c.fault(expr.Range(), "wrong type: %s", err)
		return value
	}
	c.shape(expr, want)
	return value
}

// shape finds names in object literals that their type does not have: a
// conversion would drop them in silence.
func (c *checker) shape(expr hclsyntax.Expression, want cty.Type) {
	switch e := expr.(type) {
	case *hclsyntax.ParenthesesExpr:
		c.shape(e.Expression, want)
	case *hclsyntax.ConditionalExpr:
		c.shape(e.TrueResult, want)
		c.shape(e.FalseResult, want)
	case *hclsyntax.ForExpr:
		if want.IsCollectionType() {
			c.shape(e.ValExpr, want.ElementType())
		}
	case *hclsyntax.TupleConsExpr:
		if want.IsCollectionType() {
			for _, inner := range e.Exprs {
				c.shape(inner, want.ElementType())
			}
		}
	case *hclsyntax.ObjectConsExpr:
		for _, item := range e.Items {
			switch word := literalKey(item.KeyExpr); {
			case want.IsMapType():
				c.shape(item.ValueExpr, want.ElementType())
			case want.IsObjectType() && word != "" && want.HasAttribute(word):
				c.shape(item.ValueExpr, want.AttributeType(word))
			case want.IsObjectType() && word != "":
				c.fault(item.KeyExpr.Range(), "unknown attribute %q%s", word, didYouMean(word, want.AttributeTypes()))
			}
		}
	}
}

// call returns the outputs of a module that this one calls, as an object.
func (c *checker) call(name string, at hcl.Range) cty.Value {
	block, ok := c.calls[name]
	if !ok {
		c.fault(at, "module %q is not declared%s", name, didYouMean(name, c.calls))
		return cty.DynamicVal
	}
	if value, ok := c.outputs[name]; ok {
		return value
	}
	c.outputs[name] = cty.DynamicVal
	callee := c.callee(block)
	if callee == nil {
		return cty.DynamicVal
	}
	attrs := map[string]cty.Type{}
	for output, o := range callee.Outputs {
		attrs[output] = o.Type
	}
	typ := cty.Object(attrs)
	switch {
	case block.Body.Attributes["count"] != nil:
		typ = cty.List(typ)
	case block.Body.Attributes["for_each"] != nil:
		typ = cty.Map(typ)
	}
	c.outputs[name] = cty.UnknownVal(typ)
	return c.outputs[name]
}

// callee reads a module in a folder near by, or returns nil. Its own faults are
// told when it is checked itself.
func (c *checker) callee(block *hclsyntax.Block) *Module {
	source := literalString(block, "source")
	if !strings.HasPrefix(source, "./") && !strings.HasPrefix(source, "../") {
		return nil
	}
	m, _ := Check(c.fsys, path.Join(c.dir, source), c.facts)
	return m
}

func (c *checker) checkCall(name string, block *hclsyntax.Block) {
	s := c.repetition(block.Body, block.DefRange())
	c.dependsOn(block)
	c.call(name, block.DefRange())
	callee := c.callee(block)
	meta := map[string]bool{"source": true, "version": true, "count": true, "for_each": true, "providers": true, "depends_on": true}
	for arg, attr := range block.Body.Attributes {
		switch {
		case meta[arg]:
		case callee == nil:
			c.infer(attr.Expr, s)
		case callee.Variables[arg] == nil:
			c.fault(attr.NameRange, "the module has no variable %q%s", arg, didYouMean(arg, callee.Variables))
			c.infer(attr.Expr, s)
		default:
			c.assign(attr.Expr, callee.Variables[arg].Type, s)
		}
	}
	if callee == nil {
		return
	}
	for arg, v := range callee.Variables {
		if v.Required && block.Body.Attributes[arg] == nil {
			c.fault(block.DefRange(), "the module needs the input %q", arg)
		}
	}
}

// literalKey is the key of an item that is a word or a string without references;
// otherwise it is empty.
func literalKey(key hclsyntax.Expression) string {
	k, ok := key.(*hclsyntax.ObjectConsKeyExpr)
	if !ok {
		return ""
	}
	if word := hcl.ExprAsKeyword(k.Wrapped); word != "" {
		return word
	}
	value, diags := k.Wrapped.Value(nil)
	if diags.HasErrors() || value.IsNull() || value.Type() != cty.String {
		return ""
	}
	return value.AsString()
}
