package modules

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/holdfast-dev/holdfast/internal/boundedhcl"
)

// constant evaluates an expression that refers to nothing, or to what is in scope.
// It reports false for any other, and for one that would take too much.
func constant(expr hcl.Expression, scope *hcl.EvalContext) (cty.Value, bool) {
	v, err := boundedhcl.Evaluate(expr, scope)
	if err != nil || v.IsNull() || !v.IsWhollyKnown() {
		return cty.NilVal, false
	}
	return v, true
}
