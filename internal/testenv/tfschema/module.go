package tfschema

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// Fault is something wrong in a module.
type Fault struct {
	File         string
	Line, Column int
	Message      string
}

func (f Fault) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Message)
}

// Module is what others see of a module.
type Module struct {
	Variables map[string]*Variable
	Outputs   map[string]*Output
	Providers map[string]Requirement // by local name
}

// Variable is an input of a module.
type Variable struct {
	Type        cty.Type // any if it has none
	Description string
	Required    bool // has no default
	Default     cty.Value
	Sensitive   bool
	Validations int
	Used        bool // outside of its own validations
	At          hcl.Range

	block *hclsyntax.Block
}

// Output is what a module gives.
type Output struct {
	Description string
	Sensitive   bool
	Type        cty.Type // as far as it can be told; any where not
	At          hcl.Range

	block *hclsyntax.Block
}

// Requirement is an entry of required_providers.
type Requirement struct {
	Source, Version string
	At              hcl.Range
}

// object is a resource or a data source.
type object struct {
	kind  string // resource or data
	typ   string
	block *hclsyntax.Block
	facts *Body
	value cty.Value
}

// local is an entry of a locals block. Its value is inferred when it is first
// asked for.
type local struct {
	attr     *hclsyntax.Attribute
	value    cty.Value
	inferred bool
	running  bool
	used     bool
}

// checker checks one module.
type checker struct {
	fsys    fs.FS
	dir     string
	facts   Facts
	faults  []Fault
	module  *Module
	locals  map[string]*local
	objects map[string]map[string]*object // by "type" or "data.type", then by name
	calls   map[string]*hclsyntax.Block   // of modules, by name
	configs []*hclsyntax.Block            // of providers
	outputs map[string]cty.Value          // of called modules, by name of the call
	within  string                        // the variable whose validation is being read
	bodies  []*hclsyntax.Body
	blind   bool // something could not be checked, so what is used cannot be told
}

// Check reads the module in a folder and returns all that is wrong with it,
// sorted by place.
func Check(fsys fs.FS, dir string, facts Facts) (*Module, []Fault) {
	c := &checker{
		fsys:    fsys,
		dir:     dir,
		facts:   facts,
		module:  &Module{Variables: map[string]*Variable{}, Outputs: map[string]*Output{}, Providers: map[string]Requirement{}},
		locals:  map[string]*local{},
		objects: map[string]map[string]*object{},
		calls:   map[string]*hclsyntax.Block{},
		outputs: map[string]cty.Value{},
	}
	if c.parse() {
		c.declare()
		c.check()
	}
	slices.SortFunc(c.faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Message, b.Message))
	})
	return c.module, slices.Compact(c.faults)
}

func (c *checker) fault(at hcl.Range, format string, args ...any) {
	c.faults = append(c.faults, Fault{File: at.Filename, Line: at.Start.Line, Column: at.Start.Column, Message: fmt.Sprintf(format, args...)})
}

func (c *checker) diagnostics(diags hcl.Diagnostics, otherwise hcl.Range) {
	for _, d := range diags {
		if d.Severity != hcl.DiagError {
			continue
		}
		at := otherwise
		if d.Subject != nil && d.Subject.Filename != "" {
			at = *d.Subject
		}
		c.fault(at, "%s: %s", d.Summary, d.Detail)
	}
}

// parse reads the files. It reports whether there is anything to check.
func (c *checker) parse() bool {
	names, err := fs.Glob(c.fsys, path.Join(c.dir, "*.tf"))
	if err != nil || len(names) == 0 {
		c.fault(hcl.Range{Filename: c.dir}, "there is no module: no file ends in .tf")
		return false
	}
	for _, name := range names {
		data, err := fs.ReadFile(c.fsys, name)
		if err != nil {
			c.fault(hcl.Range{Filename: name}, "%s", err)
			continue
		}
		file, diags := hclsyntax.ParseConfig(data, name, hcl.InitialPos)
		c.diagnostics(diags, hcl.Range{Filename: name})
		if body, ok := file.Body.(*hclsyntax.Body); ok && !diags.HasErrors() {
			c.bodies = append(c.bodies, body)
		}
	}
	return len(c.bodies) > 0
}

// topLevel are the blocks of a module, and how many labels each has.
var topLevel = map[string]int{
	"terraform": 0, "variable": 1, "locals": 0, "output": 1, "resource": 2, "data": 2,
	"module": 1, "moved": 0, "removed": 0, "check": 1, "import": 0, "provider": 1,
}

// declare notes what the module has, so that references find it wherever it stands.
func (c *checker) declare() {
	for _, body := range c.bodies {
		for _, attr := range body.Attributes {
			c.fault(attr.NameRange, "unexpected argument %q: only blocks stand here", attr.Name)
		}
		for _, block := range body.Blocks {
			labels, known := topLevel[block.Type]
			switch {
			case !known:
				c.fault(block.TypeRange, "unknown block %q%s", block.Type, didYouMean(block.Type, topLevel))
			case len(block.Labels) != labels:
				c.fault(block.TypeRange, "a %s block has %d labels, not %d", block.Type, labels, len(block.Labels))
			default:
				c.declareBlock(block)
			}
		}
	}
}

func (c *checker) declareBlock(block *hclsyntax.Block) {
	switch block.Type {
	case "variable":
		c.declareVariable(block)
	case "output":
		name := block.Labels[0]
		if _, twice := c.module.Outputs[name]; twice {
			c.fault(block.TypeRange, "output %q is declared twice", name)
		}
		c.module.Outputs[name] = &Output{
			Description: literalString(block, "description"), Sensitive: literalTrue(block, "sensitive"),
			Type: cty.DynamicPseudoType, At: block.DefRange(), block: block,
		}
	case "locals":
		for name, attr := range block.Body.Attributes {
			if _, twice := c.locals[name]; twice {
				c.fault(attr.NameRange, "local value %q is declared twice", name)
			}
			c.locals[name] = &local{attr: attr, value: cty.DynamicVal}
		}
	case "resource", "data":
		c.declareObject(block)
	case "module":
		c.calls[block.Labels[0]] = block
	case "provider":
		c.configs = append(c.configs, block)
	case "terraform":
		c.declareTerraform(block)
	}
}

func (c *checker) declareVariable(block *hclsyntax.Block) {
	name := block.Labels[0]
	if _, twice := c.module.Variables[name]; twice {
		c.fault(block.TypeRange, "variable %q is declared twice", name)
	}
	v := &Variable{
		Type: cty.DynamicPseudoType, Description: literalString(block, "description"), Required: true,
		Sensitive: literalTrue(block, "sensitive"), At: block.DefRange(), block: block,
	}
	c.module.Variables[name] = v
	var defaults *typeexpr.Defaults
	if attr, ok := block.Body.Attributes["type"]; ok {
		var diags hcl.Diagnostics
		v.Type, defaults, diags = typeexpr.TypeConstraintWithDefaults(attr.Expr)
		c.diagnostics(diags, attr.SrcRange)
	}
	for _, inner := range block.Body.Blocks {
		if inner.Type == "validation" {
			v.Validations++
		}
	}
	attr, ok := block.Body.Attributes["default"]
	if !ok {
		return
	}
	v.Required = false
	value, diags := attr.Expr.Value(nil)
	c.diagnostics(diags, attr.SrcRange)
	if diags.HasErrors() {
		return
	}
	c.shape(attr.Expr, v.Type)
	if defaults != nil && !value.IsNull() {
		value = defaults.Apply(value)
	}
	converted, err := convert.Convert(value, v.Type)
	if err != nil {
		c.fault(attr.Expr.Range(), "the default of variable %q is not of its type: %s", name, err)
		return
	}
	v.Default = converted
}

func (c *checker) declareObject(block *hclsyntax.Block) {
	o := &object{kind: block.Type, typ: block.Labels[0], block: block, value: cty.DynamicVal}
	key := o.typ
	if o.kind == "data" {
		key = "data." + key
	}
	if c.objects[key] == nil {
		c.objects[key] = map[string]*object{}
	}
	name := block.Labels[1]
	if _, twice := c.objects[key][name]; twice {
		c.fault(block.TypeRange, "%s.%s is declared twice", key, name)
	}
	c.objects[key][name] = o
	o.facts = c.factsOf(o)
	if o.facts == nil {
		return
	}
	typ := o.facts.value
	switch {
	case block.Body.Attributes["count"] != nil:
		typ = cty.List(typ)
	case block.Body.Attributes["for_each"] != nil:
		typ = cty.Map(typ)
	}
	o.value = cty.UnknownVal(typ)
}

func (c *checker) declareTerraform(block *hclsyntax.Block) {
	for _, inner := range block.Body.Blocks {
		if inner.Type != "required_providers" {
			continue
		}
		for name, attr := range inner.Body.Attributes {
			value, diags := attr.Expr.Value(nil)
			c.diagnostics(diags, attr.SrcRange)
			if diags.HasErrors() {
				continue
			}
			text := func(key string) string {
				if !value.Type().IsObjectType() || !value.Type().HasAttribute(key) || value.GetAttr(key).Type() != cty.String {
					return ""
				}
				return value.GetAttr(key).AsString()
			}
			c.module.Providers[name] = Requirement{Source: text("source"), Version: text("version"), At: attr.NameRange}
		}
	}
}

func literalString(block *hclsyntax.Block, name string) string {
	attr, ok := block.Body.Attributes[name]
	if !ok {
		return ""
	}
	value, diags := attr.Expr.Value(nil)
	if diags.HasErrors() || value.IsNull() || value.Type() != cty.String {
		return ""
	}
	return value.AsString()
}

func literalTrue(block *hclsyntax.Block, name string) bool {
	attr, ok := block.Body.Attributes[name]
	if !ok {
		return false
	}
	value, diags := attr.Expr.Value(nil)
	return !diags.HasErrors() && !value.IsNull() && value.Type() == cty.Bool && value.True()
}
