// Command terraform-provider-facts stands in for a cloud's provider in tests: it has
// the schemas of the facts, and a cloud that does whatever it is asked to. So an engine
// can validate, plan and apply modules for clouds that cannot be reached. It is a
// separate module, so that the product does not depend on what only providers need.
//
// FACTS is the folder of the facts. The name of the command says which provider
// it is: terraform-provider-aws or terraform-provider-aws_v6.25.0.
//
// What the provider would set is unknown in a plan. Afterwards it is made up:
// strings are base64 (certificates are decoded), versions are versions, and
// lists have three strings or one object. Data sources say that the region is
// that of the variable FACTS_REGION.
//
// FACTS_NEEDS says what a provider's configuration must have, as a list such as
// "aws.region,helm.kubernetes": real ones refuse to work without, and their
// schemas do not tell.
//
// FACTS_EMPTY is a list of data sources that find nothing.
//
// FACTS_REPLACES is a file of the arguments whose change replaces a resource,
// which schemas do not tell either: {"aws_vpc": {"cidr_block": "where it is said"}}.
// An argument of a block is named with its place: "default_node_pool.0.name".
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
)

func main() {
	name, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(os.Args[0]), "terraform-provider-"), "_v")
	data, err := os.ReadFile(filepath.Join(os.Getenv("FACTS"), name+".json"))
	if err != nil {
		log.Fatal(err)
	}
	s := &server{}
	if err := json.Unmarshal(data, &s.facts); err != nil {
		log.Fatal(err)
	}
	if name := os.Getenv("FACTS_REPLACES"); name != "" {
		s.replaces = readReplaces(name)
	}
	address := "registry.terraform.io/" + s.facts.Source
	if err := tf6server.Serve(address, func() tfprotov6.ProviderServer { return s }); err != nil {
		log.Fatal(err)
	}
}

type facts struct {
	Name        string           `json:"provider"`
	Source      string           `json:"source"`
	Config      body             `json:"config"`
	Resources   map[string]*body `json:"resources"`
	DataSources map[string]*body `json:"data_sources"`
}

type body struct {
	Attributes map[string]attribute `json:"attributes"`
	Blocks     map[string]*block    `json:"blocks"`
}

type block struct {
	Nesting string `json:"nesting"`
	Min     int64  `json:"min"`
	Max     int64  `json:"max"`
	body
}

// attribute is "required|optional|computed TYPE" in JSON.
type attribute struct {
	mode string
	typ  cty.Type
}

func (a *attribute) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	mode, typ, _ := strings.Cut(text, " ")
	expr, diags := hclsyntax.ParseExpression([]byte(typ), "", hcl.InitialPos)
	if diags.HasErrors() {
		return fmt.Errorf("read attribute %q: %w", text, diags)
	}
	a.mode = mode
	a.typ, _, diags = typeexpr.TypeConstraintWithDefaults(expr)
	if diags.HasErrors() {
		return fmt.Errorf("read attribute %q: %w", text, diags)
	}
	return nil
}

func (b *body) schema() *tfprotov6.SchemaBlock {
	out := &tfprotov6.SchemaBlock{}
	for name, a := range b.Attributes {
		out.Attributes = append(out.Attributes, a.schema(name))
	}
	for name, inner := range b.Blocks {
		nesting := map[string]tfprotov6.SchemaNestedBlockNestingMode{
			"single": tfprotov6.SchemaNestedBlockNestingModeSingle, "list": tfprotov6.SchemaNestedBlockNestingModeList,
			"set": tfprotov6.SchemaNestedBlockNestingModeSet, "map": tfprotov6.SchemaNestedBlockNestingModeMap,
		}[inner.Nesting]
		out.BlockTypes = append(out.BlockTypes, &tfprotov6.SchemaNestedBlock{
			TypeName: name, Block: inner.schema(), Nesting: nesting, MinItems: inner.Min, MaxItems: inner.Max,
		})
	}
	return out
}

// secret are the attributes that are sensitive to their providers. The facts do
// not tell: this is what the library reads of them.
var secret = map[string]bool{"kube_config": true, "kube_config_raw": true, "kubeconfig": true}

// schema gives an attribute whose objects may leave something out attributes of
// its own; of others the type is enough.
func (a attribute) schema(name string) *tfprotov6.SchemaAttribute {
	out := &tfprotov6.SchemaAttribute{
		Name: name, Required: a.mode == "required", Optional: a.mode == "optional", Computed: a.mode == "computed",
		Sensitive: secret[name],
	}
	object, nesting := a.typ, tfprotov6.SchemaObjectNestingModeSingle
	switch {
	case a.typ.IsListType():
		object, nesting = a.typ.ElementType(), tfprotov6.SchemaObjectNestingModeList
	case a.typ.IsSetType():
		object, nesting = a.typ.ElementType(), tfprotov6.SchemaObjectNestingModeSet
	case a.typ.IsMapType():
		object, nesting = a.typ.ElementType(), tfprotov6.SchemaObjectNestingModeMap
	}
	if !object.IsObjectType() || a.mode == "computed" {
		out.Type = typeOf(a.typ)
		return out
	}
	out.NestedType = &tfprotov6.SchemaObject{Nesting: nesting}
	for inner, typ := range object.AttributeTypes() {
		mode := "required"
		if object.AttributeOptional(inner) {
			mode = "optional"
		}
		out.NestedType.Attributes = append(out.NestedType.Attributes, attribute{mode: mode, typ: typ}.schema(inner))
	}
	return out
}

func typeOf(typ cty.Type) tftypes.Type {
	data, err := json.Marshal(typ.WithoutOptionalAttributesDeep())
	if err != nil {
		log.Fatal(err)
	}
	out, err := tftypes.ParseJSONType(data)
	if err != nil {
		log.Fatal(err)
	}
	return out
}
