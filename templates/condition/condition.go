package condition

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/holdfast-dev/holdfast/internal/nearest"
	"github.com/holdfast-dev/holdfast/templates/schema"
	"github.com/holdfast-dev/holdfast/templates/wording"
)

// Limits on expressions.
const (
	maxExpression      = 4_000   // characters
	maxExpressionDepth = 100     // of nesting
	maxExpressionCost  = 100_000 // about the steps of an evaluation
	MaxCost            = 500_000 // of all evaluations for a cluster
	maxExpressions     = 200     // in a template
)

// Names that no expression can write: they are the types of what it sees.
const (
	selfType    = "the variables"
	clusterType = "the cluster"
)

// Expression is a CEL expression that is true or false. It is immutable and safe
// for concurrent use.
type Expression struct {
	Text    string
	program cel.Program
	Asks    map[string]bool // variables that it looks for with has()
	Uses    map[string]bool // variables whose values it needs
}

// Scope is what expressions see of a cluster: its variables, by their names, and its
// fields. It is safe for concurrent use.
type Scope struct{ activation cel.Activation }

// NewScope returns a scope of variables, each as Value makes it or an error in its
// place, and of the cluster's fields (ClusterFields).
func NewScope(variables, cluster map[string]any) (Scope, error) {
	activation, err := cel.NewActivation(map[string]any{"self": variables, "cluster": cluster})
	if err != nil {
		return Scope{}, fmt.Errorf("set up expressions: %w", err)
	}
	return Scope{activation}, nil
}

// Dialect compiles the expressions of a template.
type Dialect struct {
	env    *cel.Env
	schema *schema.Schema
	fields []string // of all objects in it
	count  int
}

// NewDialect returns the dialect in which the variables of a schema are known, with
// their shapes, besides the fields of a cluster.
func NewDialect(s *schema.Schema) (*Dialect, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, fmt.Errorf("set up expressions: %w", err)
	}
	provider := &fieldTypes{Provider: registry, structs: map[string]map[string]*types.FieldType{}, names: map[*schema.Shape]string{}}
	provider.declareSelf(s)
	provider.declareCluster()
	env, err := cel.NewEnv(
		cel.CustomTypeAdapter(registry), cel.CustomTypeProvider(provider),
		cel.Variable("self", cel.ObjectType(selfType)), cel.Variable("cluster", cel.ObjectType(clusterType)),
		cel.CrossTypeNumericComparisons(true), cel.EnableIdentifierEscapeSyntax(),
		cel.ParserExpressionSizeLimit(maxExpression), cel.ParserRecursionLimit(maxExpressionDepth),
	)
	if err != nil {
		return nil, fmt.Errorf("set up expressions: %w", err)
	}
	d := &Dialect{env: env, schema: s}
	for _, fields := range provider.structs {
		d.fields = slices.AppendSeq(d.fields, maps.Keys(fields))
	}
	return d, nil
}

// Fault is what is wrong with an expression, and what to do about it.
type Fault struct{ Message, Hint string }

// Error is the message alone.
func (e *Fault) Error() string { return e.Message }

// Compile compiles an expression whose value is true or false. An error is an *Fault.
// It does not judge variables that may be absent.
func (d *Dialect) Compile(text string) (*Expression, error) {
	if d.count++; d.count > maxExpressions {
		return nil, &Fault{fmt.Sprintf("is one of more than %d expressions", maxExpressions), ""}
	}
	if len(text) > maxExpression {
		return nil, &Fault{fmt.Sprintf("has more than %d characters", maxExpression), ""}
	}
	parsed, issues := d.env.Parse(text)
	if err := d.issueFault(issues); err != nil {
		return nil, err
	}
	factory := ast.NewExprFactory()
	ast.PreOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) { selectByIndex(factory, e) }))
	e := &Expression{Text: text, Asks: map[string]bool{}, Uses: map[string]bool{}}
	// Before the types: our message for an unknown variable is better than the checker's.
	if err := d.selections(parsed.NativeRep(), e); err != nil {
		return nil, err
	}
	matches, ok := newMatching(parsed.NativeRep())
	if !ok {
		return nil, &Fault{"matches a pattern that is not written out", `write it as a text: self.x.matches("^[a-z]+$")`}
	}
	checked, issues := d.env.Check(parsed)
	if err := d.issueFault(issues); err != nil {
		return nil, err
	}
	if out := checked.OutputType(); !out.IsExactType(cel.BoolType) && !out.IsExactType(cel.DynType) {
		return nil, &Fault{fmt.Sprintf("is %s, not true or false", cel.FormatCELType(out)), "compare it with something"}
	}
	program, err := d.env.Program(checked, cel.CostLimit(maxExpressionCost), cel.CostTracking(matches), matches.options(),
		cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, &Fault{"cannot be used: " + wording.Clip(err.Error()), ""}
	}
	e.program = program
	return e, nil
}

// selectByIndex turns self["x"] into self.x, so that one is checked as the other.
func selectByIndex(factory ast.ExprFactory, e ast.Expr) {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operators.Index || len(e.AsCall().Args()) != 2 {
		return
	}
	of, by := e.AsCall().Args()[0], e.AsCall().Args()[1]
	if of.Kind() != ast.IdentKind || (of.AsIdent() != "self" && of.AsIdent() != "cluster") || by.Kind() != ast.LiteralKind {
		return
	}
	if name, ok := by.AsLiteral().(types.String); ok {
		e.SetKindCase(factory.NewSelect(e.ID(), factory.CopyExpr(of), string(name)))
	}
}

// selections notes which variables an expression asks for, and refuses unknown ones,
// the values of secrets, and self without a name.
func (d *Dialect) selections(tree *ast.AST, e *Expression) error {
	var fault *Fault
	named := map[int64]bool{} // self in self.x
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(at ast.Expr) {
		if fault != nil {
			return
		}
		switch at.Kind() {
		case ast.SelectKind:
			of, name := at.AsSelect().Operand(), at.AsSelect().FieldName()
			if of.Kind() != ast.IdentKind {
				return
			}
			switch of.AsIdent() {
			case "self":
				named[of.ID()] = true
				fault = d.selection(name, at.AsSelect().IsTestOnly(), e)
			case "cluster":
				named[of.ID()] = true
				if !slices.Contains(ClusterFields(), name) {
					fault = &Fault{fmt.Sprintf("names the unknown field cluster.%s", wording.Clip(name)), wording.DidYouMean(name, ClusterFields())}
				}
			}
		case ast.IdentKind:
			if name := at.AsIdent(); (name == "self" || name == "cluster") && !named[at.ID()] {
				fault = &Fault{fmt.Sprintf("uses %s without a name behind it", name), fmt.Sprintf("write %s.x or %s[\"x\"]", name, name)}
			}
		case ast.ComprehensionKind:
			c := at.AsComprehension()
			if slices.Contains([]string{"self", "cluster"}, c.IterVar()) || slices.Contains([]string{"self", "cluster"}, c.IterVar2()) {
				fault = &Fault{"gives self or cluster another meaning", "use another name for the item"}
			}
		default: // nothing else names a variable
		}
	}))
	if fault != nil {
		return fault
	}
	return nil
}

func (d *Dialect) selection(name string, test bool, e *Expression) *Fault {
	switch {
	case d.schema.Properties[name] == nil:
		return &Fault{fmt.Sprintf("names the unknown variable self.%s", wording.Clip(name)), wording.DidYouMean(name, d.schema.Names)}
	case test:
		e.Asks[name] = true
	case d.schema.Secrets[name]:
		return &Fault{fmt.Sprintf("asks for the value of %s, which is secret", name), fmt.Sprintf("has(self.%s) says whether it is given", name)}
	default:
		e.Uses[name] = true
	}
	return nil
}

// Absent returns a variable whose value the expression needs, which present
// does not say is always there, and for which the expression does not ask.
func (e *Expression) Absent(present func(string) bool) string {
	for _, name := range slices.Sorted(maps.Keys(e.Uses)) {
		if !e.Asks[name] && !present(name) {
			return name
		}
	}
	return ""
}

// Only reports whether known is true for all variables in the expression.
func (e *Expression) Only(known func(variable string) bool) bool {
	for _, names := range []map[string]bool{e.Uses, e.Asks} {
		for name := range names {
			if !known(name) {
				return false
			}
		}
	}
	return true
}

// Holds evaluates the expression, and subtracts its cost from left.
func (e *Expression) Holds(scope Scope, left *int) (bool, error) {
	if *left < 0 {
		return false, errors.New("the expressions before it have taken too many steps")
	}
	out, details, err := e.program.Eval(scope.activation)
	if details != nil && details.ActualCost() != nil {
		*left -= int(min(*details.ActualCost(), maxExpressionCost))
	}
	if err != nil {
		if strings.Contains(err.Error(), "cost limit exceeded") {
			*left -= maxExpressionCost
			return false, errors.New("it takes too many steps")
		}
		return false, errors.New(wording.Clip(err.Error()))
	}
	value, ok := out.Value().(bool)
	if !ok {
		return false, fmt.Errorf("it is %s, not true or false", out.Type().TypeName())
	}
	return value, nil
}

var (
	noOverload = regexp.MustCompile(`^found no matching overload for '_?([^'_]+)_?(?:_)?' applied to '(.*)'$`)
	undeclared = regexp.MustCompile(`^undeclared reference to '([^']*)'`)
	noField    = regexp.MustCompile(`^undefined field '([^']*)'`)
	syntax     = regexp.MustCompile(`^Syntax error: (.*?)(?: expecting .*)?$`)
)

// issueFault translates a message of CEL's checker into ours.
func (d *Dialect) issueFault(issues *cel.Issues) error {
	if issues == nil || issues.Err() == nil {
		return nil
	}
	first := issues.Errors()[0]
	at := ""
	if first.Location != nil && first.Location.Line() > 0 {
		at = fmt.Sprintf(" (at character %d)", first.Location.Column()+1)
		if first.Location.Line() > 1 {
			at = fmt.Sprintf(" (at line %d, character %d)", first.Location.Line(), first.Location.Column()+1)
		}
	}
	say := func(format string, args ...any) *Fault {
		return &Fault{Message: fmt.Sprintf(format, args...) + at}
	}
	if m := noOverload.FindStringSubmatch(first.Message); m != nil {
		fault := say("cannot be used: %s does not go with %s", m[1], m[2])
		if strings.Contains(m[2], "double") && strings.Contains(m[2], "int") {
			fault.Hint = "write 3.0 next to a number that may have a fraction"
		}
		return fault
	}
	if m := undeclared.FindStringSubmatch(first.Message); m != nil {
		fault := say("asks for %q, which is not there", wording.Clip(m[1]))
		if d.schema.Properties[m[1]] != nil {
			fault.Hint = fmt.Sprintf("did you mean self.%s?", m[1])
		}
		return fault
	}
	if m := noField.FindStringSubmatch(first.Message); m != nil {
		fault := say("asks for the field %q, which is not there", wording.Clip(m[1]))
		if near := nearest.Of(m[1], d.fields); near != "" {
			fault.Hint = wording.DidYouMean(m[1], []string{near})
		}
		return fault
	}
	if m := syntax.FindStringSubmatch(first.Message); m != nil {
		return say("is not valid CEL: %s", wording.Clip(m[1]))
	}
	return say("is not valid CEL: %s", wording.Clip(first.Message))
}

// fieldTypes adds the shapes of a template's variables to what CEL knows, so
// that expressions are checked against them when the template is read.
type fieldTypes struct {
	types.Provider
	structs map[string]map[string]*types.FieldType
	names   map[*schema.Shape]string
}

func (p *fieldTypes) declareSelf(s *schema.Schema) {
	fields := map[string]*types.FieldType{}
	p.structs[selfType] = fields
	for _, name := range s.Names {
		fields[name] = p.field(name, name, s.Shapes[name])
	}
}

func (p *fieldTypes) declareCluster() {
	fields := map[string]*types.FieldType{}
	p.structs[clusterType] = fields
	for _, name := range ClusterFields() {
		fields[name] = p.field(name, name, &schema.Shape{Kind: schema.String})
	}
}

// field is the field of an object; path is where it is, for people.
func (p *fieldTypes) field(name, path string, of *schema.Shape) *types.FieldType {
	return &types.FieldType{
		Type: p.typeOf(path, of),
		IsSet: func(target any) bool {
			object, _ := target.(map[string]any)
			_, ok := object[name]
			return ok
		},
		GetFrom: func(target any) (any, error) {
			object, _ := target.(map[string]any)
			value, ok := object[name]
			if !ok {
				return nil, fmt.Errorf("there is no %s", wording.Clip(name))
			}
			if err, ok := value.(error); ok {
				return nil, err
			}
			return value, nil
		},
	}
}

func (p *fieldTypes) typeOf(path string, of *schema.Shape) *types.Type {
	switch of.Kind {
	case schema.String:
		return types.StringType
	case schema.Integer:
		return types.IntType
	case schema.Number:
		return types.DoubleType
	case schema.Bool:
		return types.BoolType
	case schema.List:
		return types.NewListType(p.typeOf(path, of.Items))
	case schema.Mapping:
		return types.NewMapType(types.StringType, p.typeOf(path, of.Items))
	case schema.Object:
		if !of.Closed {
			return types.NewMapType(types.StringType, types.DynType)
		}
		name, known := p.names[of]
		if !known {
			name = "a mapping like " + path
			for p.structs[name] != nil {
				name += "'"
			}
			p.names[of] = name
			fields := map[string]*types.FieldType{}
			p.structs[name] = fields
			for _, inner := range slices.Sorted(maps.Keys(of.Fields)) {
				fields[inner] = p.field(inner, path+"."+inner, of.Fields[inner])
			}
		}
		return types.NewObjectType(name)
	case schema.Any:
	}
	return types.DynType
}

// FindStructType is part of types.Provider.
func (p *fieldTypes) FindStructType(name string) (*types.Type, bool) {
	if _, ok := p.structs[name]; ok {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return p.Provider.FindStructType(name)
}

// FindStructFieldNames is part of types.Provider.
func (p *fieldTypes) FindStructFieldNames(name string) ([]string, bool) {
	if fields, ok := p.structs[name]; ok {
		return slices.Sorted(maps.Keys(fields)), true
	}
	return p.Provider.FindStructFieldNames(name)
}

// FindStructFieldType is part of types.Provider.
func (p *fieldTypes) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	if fields, ok := p.structs[name]; ok {
		found, ok := fields[field]
		return found, ok
	}
	return p.Provider.FindStructFieldType(name, field)
}

// NewValue is part of types.Provider.
func (p *fieldTypes) NewValue(name string, fields map[string]ref.Val) ref.Val {
	return p.Provider.NewValue(name, fields)
}

// Value gives a value the type that its shape says: an integer that was
// written as 3.0 is 3, a number that was written as 3 is 3.0.
func Value(value any, of *schema.Shape) (any, error) {
	switch of.Kind {
	case schema.Integer:
		return celInteger(value)
	case schema.Number:
		switch n := value.(type) {
		case int64:
			return float64(n), nil
		case uint64:
			return float64(n), nil
		case json.Number:
			return n.Float64()
		}
	case schema.List:
		list, ok := value.([]any)
		if !ok {
			return value, nil
		}
		out := make([]any, len(list))
		for i, item := range list {
			var err error
			if out[i], err = Value(item, of.Items); err != nil {
				return nil, err
			}
		}
		return out, nil
	case schema.Mapping:
		return celMapping(value, func(string) *schema.Shape { return of.Items })
	case schema.Object:
		return celMapping(value, func(name string) *schema.Shape { return of.Fields[name] })
	case schema.String, schema.Bool, schema.Any:
	}
	if n, ok := value.(json.Number); ok {
		return n.Float64()
	}
	return value, nil
}

func celInteger(value any) (any, error) {
	switch n := value.(type) {
	case uint64:
		return nil, errors.New("a number is too large")
	case json.Number:
		return nil, errors.New("a number is too large")
	case float64:
		if n != math.Trunc(n) || math.Abs(n) > 1<<53 {
			return nil, errors.New("a number is too large")
		}
		return int64(n), nil
	}
	return value, nil
}

func celMapping(value any, of func(name string) *schema.Shape) (any, error) {
	mapping, ok := value.(map[string]any)
	if !ok {
		return value, nil
	}
	out := make(map[string]any, len(mapping))
	for name, item := range mapping {
		s := of(name)
		if s == nil {
			s = &schema.Shape{}
		}
		var err error
		if out[name], err = Value(item, s); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ClusterFields are what a template may say of a cluster.
func ClusterFields() []string {
	return []string{"environment", "name", "project", "provider", "region"}
}
