package modulecode

import (
	"errors"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/holdfast-dev/holdfast/internal/boundedhcl"
)

// Constant evaluates an expression that refers to nothing. ErrTooDeep says that it
// would take too much.
func Constant(expr hcl.Expression) (cty.Value, error) { return boundedhcl.Evaluate(expr, nil) }

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
