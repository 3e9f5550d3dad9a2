// Package tfschema holds Terraform modules to what their providers' schemas
// say, without the providers: every argument, nested block, type and reference
// is checked against facts that were taken from the schemas beforehand.
//
// It knows what `terraform validate` knows, and says it at file, line and
// column. What only a provider can tell (values that it refuses, arguments that
// exclude one another) it does not know.
package tfschema

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Facts are the schemas of some providers, by the name that starts the types of
// their resources. They are read only, and safe for concurrent use.
type Facts map[string]*Provider

// Provider is what is known of one provider.
type Provider struct {
	Package     string           `json:"package"` // that the facts were taken from
	Name        string           `json:"provider"`
	Source      string           `json:"source"` // hashicorp/aws
	Version     string           `json:"version"`
	Config      *Body            `json:"config"` // what a provider block takes
	Resources   map[string]*Body `json:"resources"`
	DataSources map[string]*Body `json:"data_sources"`
}

// Body is what may stand between the braces of a resource, a data source or a
// nested block, and what can be read of it.
type Body struct {
	Attributes map[string]Attribute `json:"attributes"`
	Blocks     map[string]*Block    `json:"blocks"`

	value cty.Type // of what can be read
}

// Attribute is an argument, or something that only the provider sets. In JSON
// it is a string such as "required list(string)".
type Attribute struct {
	Required bool
	Computed bool // set by the provider alone
	Type     cty.Type
}

// Block is a nested block.
type Block struct {
	Nesting string `json:"nesting"` // single, list, set or map
	Min     int    `json:"min"`
	Max     int    `json:"max"` // zero means any number
	Body
}

// UnmarshalJSON reads "required|optional|computed TYPE", the type as Terraform
// writes it.
func (a *Attribute) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	mode, typ, _ := strings.Cut(text, " ")
	switch mode {
	case "required":
		a.Required = true
	case "computed":
		a.Computed = true
	case "optional":
	default:
		return fmt.Errorf("read attribute %q: it starts with required, optional or computed", text)
	}
	expr, diags := hclsyntax.ParseExpression([]byte(typ), "", hcl.InitialPos)
	if diags.HasErrors() {
		return fmt.Errorf("read attribute %q: %w", text, diags)
	}
	a.Type, _, diags = typeexpr.TypeConstraintWithDefaults(expr)
	if diags.HasErrors() {
		return fmt.Errorf("read attribute %q: %w", text, diags)
	}
	return nil
}

// Load reads the facts of each provider from the JSON files of a folder.
func Load(fsys fs.FS, dir string) (Facts, error) {
	names, err := fs.Glob(fsys, path.Join(dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("load facts: %w", err)
	}
	facts := Facts{"terraform": builtin()}
	for _, name := range names {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("load facts: %w", err)
		}
		var p Provider
		if err := json.Unmarshal(data, &p); err != nil {
			return nil, fmt.Errorf("load facts %s: %w", name, err)
		}
		facts[p.Name] = &p
	}
	for _, p := range facts {
		for _, types := range []map[string]*Body{p.Resources, p.DataSources} {
			for _, body := range types {
				body.value = body.valueType()
			}
		}
	}
	return facts, nil
}

// builtin is the provider that is part of the engine.
func builtin() *Provider {
	return &Provider{
		Name:   "terraform",
		Source: "terraform.io/builtin/terraform",
		Resources: map[string]*Body{"terraform_data": {Attributes: map[string]Attribute{
			"id":               {Computed: true, Type: cty.String},
			"input":            {Type: cty.DynamicPseudoType},
			"output":           {Computed: true, Type: cty.DynamicPseudoType},
			"triggers_replace": {Type: cty.DynamicPseudoType},
		}}},
	}
}

// valueType is the type of what can be read of the body.
func (b *Body) valueType() cty.Type {
	attrs := map[string]cty.Type{}
	for name, a := range b.Attributes {
		attrs[name] = a.Type.WithoutOptionalAttributesDeep()
	}
	for name, block := range b.Blocks {
		inner := block.valueType()
		switch block.Nesting {
		case "list":
			inner = cty.List(inner)
		case "set":
			inner = cty.Set(inner)
		case "map":
			inner = cty.Map(inner)
		}
		attrs[name] = inner
	}
	return cty.Object(attrs)
}
