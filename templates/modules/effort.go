package modules

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

const (
	// maxExprDepth bounds expressions within expressions: whoever walks through them
	// calls itself for each, and a stack that overflows ends the process. Brackets are
	// bounded before they are parsed; "1+1+1" and "a[0][0]" are not.
	maxExprDepth = 40_000
	// maxEffort bounds the steps that an evaluation takes, as loops multiply them.
	maxEffort = 1_000_000
)

// effort walks through code and adds up the steps of its evaluation. It stops at a
// bound by a panic, as nothing else ends a walk.
type effort struct {
	times []int // how often each of the nodes around is evaluated
	steps int
	most  int // steps; zero: any number
}

// tooMuch is what a walk stops with.
type tooMuch struct{ line int }

// Enter implements hclsyntax.Walker.
func (e *effort) Enter(node hclsyntax.Node) hcl.Diagnostics {
	times := 1
	if n := len(e.times); n > 0 {
		times = e.times[n-1]
	}
	e.steps += times
	if len(e.times) == maxExprDepth || e.most > 0 && e.steps > e.most {
		panic(tooMuch{node.Range().Start.Line})
	}
	if loop, ok := node.(*hclsyntax.ForExpr); ok {
		times = min(times*max(1, itemsOf(loop.CollExpr)), maxEffort+1)
	}
	e.times = append(e.times, times)
	return nil
}

// itemsOf bounds how many items a list or object has without being evaluated.
func itemsOf(expr hclsyntax.Expression) int {
	switch expr := expr.(type) {
	case *hclsyntax.TupleConsExpr:
		return len(expr.Exprs)
	case *hclsyntax.ObjectConsExpr:
		return len(expr.Items)
	default: // it has fewer than it is written with characters
		span := expr.Range()
		return span.End.Byte - span.Start.Byte
	}
}

// Exit implements hclsyntax.Walker.
func (e *effort) Exit(hclsyntax.Node) hcl.Diagnostics {
	e.times = e.times[:len(e.times)-1]
	return nil
}

// exceeds returns the line where code is nested more deeply than it can be walked
// through, or takes more steps than most to evaluate; zero if it does neither.
func exceeds(node hclsyntax.Node, most int) (line int) {
	defer func() {
		switch stopped := recover().(type) {
		case nil:
		case tooMuch:
			line = max(1, stopped.line)
		default:
			panic(stopped)
		}
	}()
	_ = hclsyntax.Walk(node, &effort{most: most})
	return 0
}

// constant evaluates an expression that refers to nothing, or to what is in scope.
// It reports false for any other, and for one that would take long.
func constant(expr hcl.Expression, scope *hcl.EvalContext) (cty.Value, bool) {
	native, ok := expr.(hclsyntax.Expression)
	if ok && exceeds(native, maxEffort) > 0 {
		return cty.NilVal, false
	}
	if !ok {
		scope = nil // the texts of JSON are taken as they are
	}
	v, diags := expr.Value(scope)
	if diags.HasErrors() || v.IsNull() || !v.IsWhollyKnown() {
		return cty.NilVal, false
	}
	return v, true
}
