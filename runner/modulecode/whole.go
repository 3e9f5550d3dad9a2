// When the result of init depends on more of the bundle than Root.Needs says.

package modulecode

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// lists reports whether a schema lists all blocks and arguments of a body. What it
// does not list can be anything: OpenTofu's init executes the program of a key
// provider in an encryption block. rest is what the schema leaves of a body of JSON.
func lists(schema *hcl.BodySchema, body, rest hcl.Body) bool {
	native, ok := body.(*hclsyntax.Body)
	if !ok {
		attributes, diags := rest.JustAttributes()
		return len(attributes) == 0 && !diags.HasErrors()
	}
	for _, block := range native.Blocks {
		if !slices.ContainsFunc(schema.Blocks, func(h hcl.BlockHeaderSchema) bool { return h.Type == block.Type }) {
			return false
		}
	}
	for name := range native.Attributes {
		if !slices.ContainsFunc(schema.Attributes, func(a hcl.AttributeSchema) bool { return a.Name == name }) {
			return false
		}
	}
	return true
}

// exists reports whether there is a file or folder.
func exists(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}
