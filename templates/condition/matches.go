package condition

import (
	"regexp"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/holdfast-dev/holdfast/templates/schema"
)

// matching bounds the cost of matches() in an expression. CEL knows the cost of a call
// only when it is over, and measures a pattern by its length. A matching has the sizes
// of the expression's patterns.
type matching map[string]int

// newMatching reads the patterns of an expression; ok is false if one is not
// written out, so that its size is known only when it is too late.
func newMatching(tree *ast.AST) (m matching, ok bool) {
	m, ok = matching{}, true
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != overloads.Matches || len(e.AsCall().Args()) == 0 {
			return
		}
		args := e.AsCall().Args()
		last := args[len(args)-1]
		if last.Kind() != ast.LiteralKind {
			ok = false
			return
		}
		if pattern, isText := last.AsLiteral().(types.String); isText {
			m[string(pattern)] = schema.PatternSize(string(pattern))
		}
	}))
	return m, ok
}

// options are those of a program with this matching.
func (m matching) options() cel.ProgramOption {
	var bounded []*interpreter.RegexOptimization
	for _, overload := range []string{overloads.Matches, overloads.MatchesString} {
		bounded = append(bounded, &interpreter.RegexOptimization{
			Function: overloads.Matches, OverloadID: overload, RegexIndex: 1, Factory: m.call,
		})
	}
	return cel.OptimizeRegex(bounded...)
}

// call is a call of matches with a pattern that is known.
func (m matching) call(call interpreter.InterpretableCall, pattern string) (interpreter.InterpretableCall, error) {
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(args ...ref.Val) ref.Val {
		text, ok := args[0].(types.String)
		switch {
		case !ok:
			return types.MaybeNoSuchOverloadErr(args[0])
		case m.steps(string(text), pattern) > maxExpressionCost:
			return types.NewErr("a text of %d bytes is too long for a pattern", len(text))
		}
		return types.Bool(compiled.MatchString(string(text)))
	}), nil
}

func (m matching) steps(text, pattern string) uint64 {
	return 1 + uint64(len(text))*uint64(m[pattern])/schema.PatternStep
}

// CallCost implements interpreter.ActualCostEstimator.
func (m matching) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	if function != overloads.Matches || len(args) != 2 {
		return nil
	}
	text, isText := args[0].(types.String)
	pattern, ok := args[1].(types.String)
	if !isText || !ok {
		return nil
	}
	cost := m.steps(string(text), string(pattern))
	return &cost
}
