package boundedhcl

import (
	"fmt"
	"maps"
	"math/big"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Bounds of what is evaluated, each to be added to a multiple of what is written: without
// loops an expression takes as many steps as it has parts.
const (
	freeSteps = 2_000
	freeBytes = 1 << 20
	maxDigits = 4_000 // of a number on the way
	unbounded = 1 << 40
)

const endless = "expression takes too much to evaluate"

// Evaluate evaluates an expression, native or of JSON, whose file was parsed here. It
// knows what is in scope, and no functions. An Excess says that it would take too long, or
// make too much; other errors, that it is not a constant.
func Evaluate(expr hcl.Expression, scope *hcl.EvalContext) (cty.Value, error) {
	if native, ok := expr.(hclsyntax.Expression); !ok {
		scope = nil // the texts of JSON are taken as they are
	} else if err := Measure(native, scope); err != nil {
		return cty.NilVal, err
	}
	value, diags := expr.Value(scope)
	if diags.HasErrors() {
		return cty.NilVal, fmt.Errorf("it is not a constant: %s", diags[0].Summary)
	}
	return value, nil
}

// Measure returns an Excess if it would take too much to evaluate an expression.
func Measure(expr hclsyntax.Expression, scope *hcl.EvalContext) error {
	known := map[string]extent{}
	if scope != nil {
		for name, value := range scope.Variables {
			known[name] = extentOf(value)
		}
	}
	e := bound(expr, known)
	span := expr.Range()
	written := span.End.Byte - span.Start.Byte
	if e.steps > freeSteps+4*written || e.made > freeBytes+4*written || e.digits > maxDigits {
		return &Excess{Line: span.Start.Line, What: endless}
	}
	return nil
}

// extent bounds a value, and what it takes to make it.
type extent struct {
	digits int  // of the largest number in it, on either side of the point
	bytes  int  // of all that is in it, as texts
	items  int  // of the largest list in it
	text   bool // there may be a text in it
	steps  int  // of the evaluation
	made   int  // bytes that the evaluation makes
}

// extentOf bounds a value that is known, such as path.module.
func extentOf(value cty.Value) extent {
	e := extent{digits: 1}
	_ = cty.Walk(value, func(_ cty.Path, v cty.Value) (bool, error) {
		switch {
		case !v.IsKnown() || v.IsNull():
		case v.Type() == cty.String:
			e.text = true
			e.bytes += len(v.AsString())
		case v.Type() == cty.Number:
			e.digits = max(e.digits, digitsOf(v.AsBigFloat()))
			e.bytes += e.digits
		case v.CanIterateElements():
			e.items = max(e.items, v.LengthInt())
		default:
			e.bytes += len("false")
		}
		return true, nil
	})
	return e
}

// digitsOf bounds the digits of a number that is written without an exponent.
func digitsOf(f *big.Float) int {
	const precision = 160 // decimal digits, of 512 bits
	exponent := f.MantExp(nil)
	if exponent < 0 {
		exponent = -exponent
	}
	if f.IsInt() && exponent < 64 {
		return exponent/3 + 2
	}
	return exponent/3 + precision
}

func plus(a, b int) int { return min(a+b, unbounded) }

func times(a, b int) int {
	if a > 0 && b > unbounded/a {
		return unbounded
	}
	return a * b
}

// with adds what it takes to make another value, and keeps the larger of both.
func (e extent) with(other extent) extent {
	return extent{
		digits: max(e.digits, other.digits), bytes: plus(e.bytes, other.bytes), items: max(e.items, other.items),
		text: e.text || other.text, steps: plus(e.steps, other.steps), made: plus(e.made, other.made),
	}
}

// repeated is a value that is made for each of a number of items.
func (e extent) repeated(n int) extent {
	e.bytes, e.steps, e.made = times(e.bytes, n), times(e.steps, n), times(e.made, n)
	e.items = max(e.items, n)
	return e
}

// bound bounds what an expression can be when the values of names are known. What is not
// known in it ends an evaluation.
func bound(expr hclsyntax.Expression, known map[string]extent) extent {
	e := extent{digits: 1}
	switch expr := expr.(type) {
	case *hclsyntax.LiteralValueExpr:
		e = extentOf(expr.Val)
	case *hclsyntax.ScopeTraversalExpr:
		e = known[expr.Traversal.RootName()]
		e.steps, e.made = 0, 0
	case *hclsyntax.AnonSymbolExpr:
		e = known[anonymous]
		e.steps, e.made = 0, 0
	case *hclsyntax.ParenthesesExpr:
		e = bound(expr.Expression, known)
	case *hclsyntax.TemplateWrapExpr:
		e = bound(expr.Wrapped, known)
	case *hclsyntax.TemplateJoinExpr:
		e = bound(expr.Tuple, known)
		e.text = true
	case *hclsyntax.TemplateExpr:
		e = boundAll(known, expr.Parts...)
		e.text = true
	case *hclsyntax.TupleConsExpr:
		e = boundAll(known, expr.Exprs...)
		e.items = max(e.items, len(expr.Exprs))
	case *hclsyntax.ObjectConsExpr:
		for _, item := range expr.Items {
			e = e.with(boundAll(known, item.KeyExpr, item.ValueExpr))
		}
		e.text, e.items = true, max(e.items, len(expr.Items))
	case *hclsyntax.ObjectConsKeyExpr:
		if e = (extent{bytes: 64, text: true}); expr.ForceNonLiteral || hcl.ExprAsKeyword(expr.Wrapped) == "" {
			e = bound(expr.Wrapped, known)
		}
	case *hclsyntax.ConditionalExpr:
		e = boundAll(known, expr.Condition, expr.TrueResult, expr.FalseResult)
	case *hclsyntax.IndexExpr:
		e = boundAll(known, expr.Collection, expr.Key)
	case *hclsyntax.RelativeTraversalExpr:
		e = bound(expr.Source, known)
	case *hclsyntax.UnaryOpExpr:
		e = computed(expr.Op, bound(expr.Val, known))
	case *hclsyntax.BinaryOpExpr:
		e = computed(expr.Op, bound(expr.LHS, known), bound(expr.RHS, known))
	case *hclsyntax.ForExpr:
		e = boundLoop(expr, known)
	case *hclsyntax.SplatExpr:
		source := bound(expr.Source, known)
		e = source.with(bound(expr.Each, knowing(known, source, anonymous)).repeated(max(1, source.items)))
	case *hclsyntax.FunctionCallExpr: // none is known, but types are written as such
		e = boundAll(known, expr.Args...)
	default: // what was not parsed
	}
	if e.steps = plus(e.steps, 1); makes(expr, e) {
		e.made = plus(e.made, e.bytes)
	}
	return e
}

// makes reports whether an expression makes texts, of others or of numbers. Lists and
// objects refer to what is in them, and a number is not large until it is a text.
func makes(expr hclsyntax.Expression, e extent) bool {
	switch expr.(type) {
	case *hclsyntax.TemplateExpr, *hclsyntax.TemplateJoinExpr:
		return true
	case *hclsyntax.ConditionalExpr, *hclsyntax.ForExpr, *hclsyntax.ObjectConsKeyExpr: // which convert numbers to texts
		return e.text && e.digits > 1
	default:
		return false
	}
}

// anonymous is the item that what follows a splat is applied to. No name is written so.
const anonymous = "*"

func knowing(known map[string]extent, e extent, names ...string) map[string]extent {
	known = maps.Clone(known)
	for _, name := range names {
		known[name] = e
	}
	return known
}

func boundAll(known map[string]extent, exprs ...hclsyntax.Expression) extent {
	e := extent{digits: 1}
	for _, expr := range exprs {
		if expr != nil {
			e = e.with(bound(expr, known))
		}
	}
	return e
}

// boundLoop bounds a loop. Its keys become texts.
func boundLoop(loop *hclsyntax.ForExpr, known map[string]extent) extent {
	all := bound(loop.CollExpr, known)
	key := extent{digits: 10, bytes: plus(all.bytes, 10), text: true}
	inner := knowing(known, all, loop.ValVar)
	if loop.KeyVar != "" {
		inner[loop.KeyVar] = key
	}
	e := boundAll(inner, loop.ValExpr, loop.KeyExpr, loop.CondExpr).repeated(max(1, all.items))
	e.text = e.text || loop.KeyExpr != nil
	return e.with(extent{steps: all.steps, made: all.made})
}

// computed bounds the result of an operator. Numbers that are multiplied have the digits
// of both; a text that is computed with becomes a number of any size.
func computed(op *hclsyntax.Operation, operands ...extent) extent {
	e, digits := extent{digits: 1}, 0
	for _, operand := range operands {
		e = e.with(operand)
		digits = plus(digits, operand.digits)
	}
	switch op {
	case hclsyntax.OpAdd, hclsyntax.OpSubtract, hclsyntax.OpMultiply, hclsyntax.OpDivide, hclsyntax.OpModulo, hclsyntax.OpNegate:
		if e.digits = plus(digits, 1); e.text {
			e.digits = unbounded
		}
		e.bytes, e.items, e.text = e.digits, 0, false
	default: // a truth
		e.digits, e.bytes, e.items, e.text = 1, 5, 0, false
	}
	return e
}
