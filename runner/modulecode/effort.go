package modulecode

import (
	"errors"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

const (
	// maxExprDepth bounds expressions within expressions: whoever walks through them
	// calls itself for each. Brackets are bounded before they are parsed; "1+1+1" and
	// "a[0][0]" are not.
	maxExprDepth = 40_000
	// maxEffort bounds the steps that an evaluation takes, as loops multiply them.
	maxEffort = 10_000_000
)

// effort walks through code and adds up the steps of its evaluation. It stops at a
// bound by a panic, as nothing else ends a walk.
type effort struct {
	times []int // how often each of the nodes around is evaluated
	steps int
	most  int // steps; zero: any number
}

// tooMuch is what a walk stops with.
type tooMuch struct{}

// Enter implements hclsyntax.Walker.
func (e *effort) Enter(node hclsyntax.Node) hcl.Diagnostics {
	times := 1
	if n := len(e.times); n > 0 {
		times = e.times[n-1]
	}
	e.steps += times
	if len(e.times) == maxExprDepth || e.most > 0 && e.steps > e.most {
		panic(tooMuch{})
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

// exceeds reports whether code is nested more deeply than it can be walked through,
// or takes more steps than most to evaluate.
func exceeds(node hclsyntax.Node, most int) (exceeded bool) {
	defer func() {
		switch stopped := recover().(type) {
		case nil:
		case tooMuch:
			exceeded = true
		default:
			panic(stopped)
		}
	}()
	_ = hclsyntax.Walk(node, &effort{most: most})
	return false
}

// Constant evaluates an expression that refers to nothing. ErrTooDeep says that it
// is nested too deeply, or takes too many steps.
func Constant(expr hcl.Expression) (cty.Value, error) {
	if native, ok := expr.(hclsyntax.Expression); ok && exceeds(native, maxEffort) {
		return cty.NilVal, ErrTooDeep
	}
	value, diags := expr.Value(nil)
	if diags.HasErrors() {
		return cty.NilVal, fmt.Errorf("it is not a constant: %s", diags[0].Summary)
	}
	return value, nil
}

// Safe is ErrTooDeep if a file cannot be parsed, or one of these attributes of it
// not be evaluated, by somebody who knows no bounds.
func Safe(path string, attributes ...string) error {
	file, err := Parse(path)
	if file == nil || file.Body == nil {
		return err
	}
	schema := &hcl.BodySchema{}
	for _, name := range attributes {
		schema.Attributes = append(schema.Attributes, hcl.AttributeSchema{Name: name})
	}
	content, _, _ := file.Body.PartialContent(schema)
	if content == nil {
		return err
	}
	for _, attribute := range content.Attributes {
		if _, failed := Constant(attribute.Expr); errors.Is(failed, ErrTooDeep) {
			return failed
		}
	}
	return err
}
