package modules

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/holdfast-dev/holdfast"
)

// Backend is a block in a module's code that says where its state is.
type Backend struct {
	Kind       string            // of a backend; "cloud" or "state_store"
	Attributes map[string]any    // those that are literal: texts, otherwise as the code writes them
	Unread     map[string]string // the expressions of those that are not
	File       string
	Line       int
	Code       string // the block as it is written; empty: it is not in the engines' own language
}

// Backend returns the block that counts, as it does for the engines: of files that
// override others the last one in the order of their names wins, and replaces the
// block of the others as a whole.
func (m *Module) Backend() *Backend {
	var primary, override *Backend
	for _, b := range m.backends {
		switch {
		case !overrides(b.File):
			primary = b
		case override == nil || override.File <= b.File:
			override = b
		}
	}
	if override != nil {
		return override
	}
	return primary
}

// BackendFaults refuses what an engine would refuse, or what it is not known
// where the state would be.
func (m *Module) BackendFaults(dir string) holdfast.Faults {
	var faults holdfast.Faults
	var first *Backend
	for _, b := range m.backends {
		at := holdfast.Fault{File: path.Join(dir, b.File), Line: b.Line}
		switch {
		case b.Kind == "state_store":
			at.Message, at.Hint = "a state_store block is not supported", "use a backend, or none: the state is kept by Holdfast then"
			faults = append(faults, at)
		case overrides(b.File):
		case first != nil:
			at.Message = fmt.Sprintf("the %s is in addition to the %s in %s:%d", b.Words(), first.Words(), path.Join(dir, first.File), first.Line)
			at.Hint = "remove one of them"
			faults = append(faults, at)
		default:
			first = b
		}
	}
	return faults
}

// shadowed reports whether OpenTofu reads another file in place of this one.
func (m *Module) shadowed(file string) bool {
	for _, ext := range []string{".tf", ".tf.json"} {
		if stem, ok := strings.CutSuffix(file, ext); ok {
			return slices.Contains(m.names, stem+strings.Replace(ext, ".tf", ".tofu", 1))
		}
	}
	return false
}

func isTofu(file string) bool {
	return strings.HasSuffix(file, ".tofu") || strings.HasSuffix(file, ".tofu.json")
}

// overrides reports whether what is in a file of that name goes before what
// the others say.
func overrides(file string) bool {
	for _, ext := range []string{".tf.json", ".tf", ".tofu.json", ".tofu"} {
		if stem, ok := strings.CutSuffix(path.Base(file), ext); ok {
			return stem == "override" || strings.HasSuffix(stem, "_override")
		}
	}
	return false
}

// Words is how a fault names the block.
func (b *Backend) Words() string {
	if b.Kind == "cloud" {
		return "cloud block"
	}
	return fmt.Sprintf("backend %q", b.Kind)
}

// codeOf is a block as it is written.
func codeOf(block *hcl.Block, data []byte) string {
	body, ok := block.Body.(*hclsyntax.Body)
	if !ok || body.EndRange.End.Byte > len(data) {
		return ""
	}
	return string(data[block.DefRange.Start.Byte:body.EndRange.End.Byte])
}

func (b *Backend) read(body hcl.Body, kind string, code []byte) {
	var workspaces *hcl.BodyContent
	if kind == "cloud" || kind == "remote" {
		workspaces, body, _ = body.PartialContent(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "workspaces"}}})
	}
	attrs, _ := body.JustAttributes()
	b.literals("", attrs, code)
	if workspaces == nil {
		return
	}
	for _, block := range workspaces.Blocks {
		attrs, _ := block.Body.JustAttributes()
		b.literals("workspaces.", attrs, code)
	}
}

func (b *Backend) literals(prefix string, attrs hcl.Attributes, code []byte) {
	for name, attr := range attrs {
		if text, ok := literalText(attr); ok {
			b.Attributes[prefix+name] = text
		} else if pairs, diags := hcl.ExprMap(attr.Expr); !diags.HasErrors() {
			b.nested(prefix+name+".", pairs, code)
		} else if text := string(attr.Expr.Range().SliceBytes(code)); isConstant(attr.Expr) { // a number, a list
			b.Attributes[prefix+name] = text
		} else {
			b.Unread[prefix+name] = text
		}
	}
}

// nested adds the literal texts of an argument that is an object.
func (b *Backend) nested(prefix string, pairs []hcl.KeyValuePair, code []byte) {
	for _, pair := range pairs {
		name, text := hcl.ExprAsKeyword(pair.Key), ""
		if value, ok := constant(pair.Value, nil); ok && value.Type() == cty.String {
			text = value.AsString()
		}
		if key, ok := constant(pair.Key, nil); name == "" && ok && key.Type() == cty.String {
			name = key.AsString()
		}
		switch {
		case name != "" && text != "":
			b.Attributes[prefix+name] = text
		case name != "":
			b.Unread[prefix+name] = string(pair.Value.Range().SliceBytes(code))
		}
	}
}

func isConstant(expr hcl.Expression) bool {
	_, ok := constant(expr, nil)
	return ok
}
