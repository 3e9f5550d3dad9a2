// What the expressions of a module refer to.

package modulecode

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/holdfast-dev/holdfast/runner/plan"
)

var givenSchema = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
	{Type: "locals"},
	{Type: "provider", LabelNames: []string{"name"}},
	{Type: "resource", LabelNames: []string{"type", "name"}},
	{Type: "removed"},
}}

var provisionerSchema = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "provisioner", LabelNames: []string{"type"}}}}

// ReadReferences reads the locals and connections of the module in dir, as code for an
// engine. The error names the file that cannot be read in full.
func ReadReferences(ctx context.Context, dir, engine string) (plan.ModuleCode, error) {
	code := plan.ModuleCode{Locals: map[string][]plan.Reference{}, Configures: map[string]bool{}}
	names, err := codeIn(dir, engine)
	if err != nil {
		return code, err
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return code, context.Cause(ctx)
		}
		file, err := parse(ctx, filepath.Join(dir, name))
		if err != nil {
			return code, fmt.Errorf("%s: %w", name, unnamed(err))
		}
		content, _, _ := file.Body.PartialContent(givenSchema)
		for _, block := range content.Blocks {
			switch block.Type {
			case "removed":
				inner, _, _ := block.Body.PartialContent(provisionerSchema)
				code.RemovedProvisioners = code.RemovedProvisioners || inner != nil && len(inner.Blocks) > 0
				continue
			case "resource":
				code.Connections = append(code.Connections, connectionsIn(block.Body)...)
				code.WriteOnly = append(code.WriteOnly, writeOnlyIn(block.Body)...)
				continue
			case "provider":
				code.Providers = append(code.Providers, referencesBelow(block.Body)...)
				attributes, _ := block.Body.JustAttributes()
				code.Configures[block.Labels[0]] = code.Configures[block.Labels[0]] || attributes["alias"] == nil
				continue
			}
			attributes, _ := block.Body.JustAttributes()
			for name, attribute := range attributes { // an override's are added to the others
				code.Locals[name] = append(code.Locals[name], referencesIn(attribute.Expr)...)
			}
		}
	}
	return code, nil
}

// connectionsIn returns what the connection blocks of a resource, and of its
// provisioners, refer to.
func connectionsIn(body hcl.Body) []plan.Reference {
	var all []plan.Reference
	content, _, _ := body.PartialContent(&hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{{Name: "for_each"}},
		Blocks:     []hcl.BlockHeaderSchema{{Type: "connection"}, {Type: "provisioner", LabelNames: []string{"type"}}},
	})
	if content == nil {
		return nil
	}
	for _, block := range content.Blocks {
		if block.Type == "provisioner" {
			all = append(all, connectionsIn(block.Body)...)
			continue
		}
		attributes, _ := block.Body.JustAttributes()
		for _, attribute := range attributes {
			all = append(all, referencesIn(attribute.Expr)...)
		}
	}
	if each := content.Attributes["for_each"]; each != nil && len(all) > 0 {
		all = append(all, referencesIn(each.Expr)...)
	}
	return all
}

// writeOnlyIn returns what write-only arguments in the dynamic blocks of a resource
// refer to: the engine's JSON has none of what is in such blocks. What a block is
// repeated for is a part of it.
func writeOnlyIn(body hcl.Body) []plan.Reference {
	var all []plan.Reference
	if native, ok := body.(*hclsyntax.Body); ok {
		all = dynamicIn(native)
	}
	attributes, _ := body.JustAttributes()
	if _, native := body.(*hclsyntax.Body); !native { // JSON, where blocks are values
		for name, attribute := range attributes {
			all = append(all, dynamicInJSON(name, attribute.Expr)...)
		}
	}
	repeated := func(r plan.Reference) bool { return len(r) > 0 && r[0] == "each" }
	if each := attributes["for_each"]; each != nil && slices.ContainsFunc(all, repeated) {
		all = append(all, referencesIn(each.Expr)...)
	}
	return all
}

func dynamicIn(body *hclsyntax.Body) []plan.Reference {
	var all []plan.Reference
	for _, block := range body.Blocks {
		if block.Type != "dynamic" {
			all = append(all, dynamicIn(block.Body)...)
		} else if hasWriteOnly(block.Body) {
			all = append(all, referencesBelow(block.Body)...)
		}
	}
	return all
}

// hasWriteOnly reports whether a block, or one in it, has an argument that providers
// call write-only by its name.
func hasWriteOnly(body *hclsyntax.Body) bool {
	for name := range body.Attributes {
		if plan.IsWriteOnly(name) {
			return true
		}
	}
	return slices.ContainsFunc(body.Blocks, func(block *hclsyntax.Block) bool { return hasWriteOnly(block.Body) })
}

func dynamicInJSON(name string, expression hcl.Expression) []plan.Reference {
	if name == "dynamic" {
		if keyIn(expression, plan.IsWriteOnly) {
			return referencesIn(expression)
		}
		return nil
	}
	var all []plan.Reference
	eachKey(expression, func(key string, value hcl.Expression) {
		all = append(all, dynamicInJSON(key, value)...)
	})
	return all
}

// keyIn reports whether an object, or one in it, has such a key.
func keyIn(expression hcl.Expression, such func(key string) bool) (found bool) {
	eachKey(expression, func(key string, value hcl.Expression) {
		found = found || such(key) || keyIn(value, such)
	})
	return found
}

// eachKey visits the keys of an object, or of those in a list.
func eachKey(expression hcl.Expression, visit func(key string, value hcl.Expression)) {
	if pairs, diags := hcl.ExprMap(expression); !diags.HasErrors() {
		for _, pair := range pairs {
			if key, diags := pair.Key.Value(nil); !diags.HasErrors() && key.Type() == cty.String && key.IsKnown() && !key.IsNull() {
				visit(key.AsString(), pair.Value)
			}
		}
		return
	}
	list, diags := hcl.ExprList(expression)
	if diags.HasErrors() {
		return
	}
	for _, item := range list {
		eachKey(item, visit)
	}
}

// referencesBelow returns what a block refers to, and the blocks in it.
func referencesBelow(body hcl.Body) []plan.Reference {
	var all []plan.Reference
	if native, ok := body.(*hclsyntax.Body); ok {
		_ = hclsyntax.VisitAll(native, func(node hclsyntax.Node) hcl.Diagnostics {
			if e, ok := node.(*hclsyntax.ScopeTraversalExpr); ok {
				all = append(all, referenceOf(e.Traversal))
			}
			return nil
		})
		return all
	}
	attributes, _ := body.JustAttributes() // of JSON, where blocks are values
	for _, attribute := range attributes {
		all = append(all, referencesIn(attribute.Expr)...)
	}
	return all
}

// referencesIn returns what an expression refers to.
func referencesIn(expression hcl.Expression) []plan.Reference {
	var all []plan.Reference
	for _, traversal := range expression.Variables() {
		all = append(all, referenceOf(traversal))
	}
	return all
}

func referenceOf(traversal hcl.Traversal) plan.Reference {
	var parts plan.Reference
	for _, step := range traversal {
		switch s := step.(type) {
		case hcl.TraverseRoot:
			parts = append(parts, s.Name)
		case hcl.TraverseAttr:
			parts = append(parts, s.Name)
		}
	}
	return parts
}
