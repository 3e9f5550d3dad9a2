package modulecode

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// stateBlock is a block in the root module's code that says where its state is.
type stateBlock struct {
	file string // its name
	kind string // of a backend; "cloud" or "state_store"
	bare bool   // it has no arguments
	text string // kind and arguments; empty if not all of them are constants
}

// newBackend reads a block in a file.
func newBackend(file string, block *hcl.Block) stateBlock {
	attributes, _ := block.Body.JustAttributes()
	b := stateBlock{file: file, kind: block.Labels[0], bare: len(attributes) == 0}
	var text strings.Builder
	text.WriteString(b.kind + "\n")
	if writeConstants(&text, block.Body) {
		b.text = text.String()
	}
	return b
}

// writeConstants writes the arguments and blocks in a body, and reports whether all of it
// is constant. Order and layout of the code do not matter.
func writeConstants(to *strings.Builder, body hcl.Body) bool {
	attributes, _ := body.JustAttributes() // and an error if there are blocks
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		value, diags := literal(attributes[name].Expr)
		if diags.HasErrors() || !value.IsWhollyKnown() {
			return false
		}
		data, err := ctyjson.Marshal(value, cty.DynamicPseudoType)
		if err != nil || bytes.Contains(data, []byte("${")) || bytes.Contains(data, []byte("%{")) { // a template in JSON
			return false
		}
		fmt.Fprintf(to, "%q %s\n", name, data)
	}
	native, ok := body.(*hclsyntax.Body)
	if !ok {
		return true
	}
	for _, block := range native.Blocks {
		fmt.Fprintf(to, "%q %q {\n", block.Type, block.Labels)
		if !writeConstants(to, block.Body) {
			return false
		}
		to.WriteString("}\n")
	}
	return true
}

// stateBlockFor returns the block that an engine uses, by the engines' rules: of files
// that override others the last one in the order of their names wins, and replaces the
// block of the others as a whole. OpenTofu reads x.tofu in place of x.tf; Terraform
// reads no .tofu. An empty engine is the one that would be chosen for the code.
func (m *Root) stateBlockFor(engine string) stateBlock {
	tofu := engine == Tofu || engine == "" && m.Tofu != ""
	var primary, override stateBlock
	for _, b := range m.blocks {
		switch {
		case !tofu && isTofuCode(b.file), tofu && shadowed(b.file, m.Files):
		case !overrides(b.file):
			primary = b
		case override.file <= b.file:
			override = b
		}
	}
	if override.kind != "" {
		return override
	}
	return primary
}

// shadowed reports whether OpenTofu reads another file of its folder in place of
// this one.
func shadowed(file string, files []string) bool {
	for _, ext := range []string{".tf", ".tf.json"} {
		if stem, ok := strings.CutSuffix(file, ext); ok {
			return slices.Contains(files, stem+strings.Replace(ext, ".tf", ".tofu", 1))
		}
	}
	return false
}

func isTofuCode(file string) bool {
	return strings.HasSuffix(file, ".tofu") || strings.HasSuffix(file, ".tofu.json")
}

// overrides reports whether a file of that name overrides the others.
func overrides(file string) bool {
	for _, ext := range []string{".tf.json", ".tf", ".tofu.json", ".tofu"} {
		if stem, ok := strings.CutSuffix(filepath.Base(file), ext); ok {
			return stem == "override" || strings.HasSuffix(stem, "_override")
		}
	}
	return false
}

// HeldTo is an error if the engine that was chosen would keep the state elsewhere than
// the server derived from the same code, or than it has the attempt keep it.
func (m *Root) HeldTo(engine, wished string, own bool) error {
	here := m.stateBlockFor(engine)
	switch {
	case here != m.stateBlockFor(wished):
		return errors.New("the code keeps the state elsewhere with " + engine + " than with the engine that it was read for: name the engine (spec.engine.name)")
	case own && here.kind != "" && (here.kind != "http" || !here.bare):
		return errors.New("the code in " + here.file + " keeps the state elsewhere than the assignment says")
	}
	return nil
}
