// What the result of init depends on: Root.Needs, and when on more of the bundle.

package modulecode

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

var checkSchema = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "data", LabelNames: []string{"type", "name"}}}}

// place is where code is.
type place struct {
	dir, file string // folder and name of the file
	path      string // names of the calls that lead to the module
}

// need notes what code asks for. In which module counts, as the names of providers
// are a module's own, and so does the file where it overrides others.
func (r *moduleReader) need(at place, what, text string) {
	parts := []string{what, text}
	if at.path != "" {
		dir, _ := filepath.Rel(r.root, at.dir)
		parts = append(parts, at.path, dir)
	}
	if overrides(at.file) {
		parts = append(parts, at.file)
	}
	r.needs[strings.Join(parts, "\x00")] = true
}

// provider notes the provider that a block needs: the one that it names, otherwise the
// one that the type of the resource begins with.
func (r *moduleReader) provider(file *hcl.File, block *hcl.Block, at place) {
	named := writtenAs(file, block.Body, "provider")
	switch kind := block.Type; {
	case kind == "provider":
		r.need(at, "provider "+block.Labels[0], writtenAs(file, block.Body, "version"))
	case named != "":
		r.need(at, "provider "+named, "")
	case kind == "resource", kind == "data", kind == "ephemeral", kind == "action":
		prefix, _, _ := strings.Cut(block.Labels[0], "_")
		r.need(at, "provider "+prefix, "")
	case kind == "import":
		r.need(at, "import", writtenAs(file, block.Body, "to"))
	}
}

// writtenAs returns an attribute as it is written, empty if there is none.
func writtenAs(file *hcl.File, body hcl.Body, name string) string {
	content, _, _ := body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: name}}})
	if content == nil || content.Attributes[name] == nil {
		return ""
	}
	return written(content.Attributes[name].Expr.Range().SliceBytes(file.Bytes))
}

// textOf returns the constant text of an attribute, empty if there is none; false, and
// how it is written, if the engine has to evaluate it.
func textOf(file *hcl.File, body hcl.Body, name string) (string, bool) {
	content, _, _ := body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: name}}})
	if content == nil || content.Attributes[name] == nil {
		return "", true
	}
	expr := content.Attributes[name].Expr
	value, diags := literal(expr)
	if diags.HasErrors() || value.IsNull() || !value.IsKnown() || value.Type() != cty.String {
		return written(expr.Range().SliceBytes(file.Bytes)), false
	}
	text := value.AsString()
	if _, native := expr.(hclsyntax.Expression); !native && (strings.Contains(text, "${") || strings.Contains(text, "%{")) {
		return text, false // a template in JSON
	}
	return text, true
}

// written returns code without comments and layout, as far as these mean nothing.
func written(code []byte) string {
	tokens, _ := hclsyntax.LexExpression(code, "", hcl.InitialPos)
	var text strings.Builder
	for _, token := range tokens {
		switch {
		case token.Type == hclsyntax.TokenNewline,
			token.Type == hclsyntax.TokenComment && strings.HasSuffix(string(token.Bytes), "\n"):
			text.WriteByte('\n')
		case token.Type != hclsyntax.TokenComment:
			text.Write(token.Bytes)
			text.WriteByte(' ')
		}
	}
	return text.String()
}

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

// readsMore reports whether init finds something in the root module, or in the folders of
// the bundle around it, that is not code: tests that call modules or have providers, a
// state with its own providers, and repositories, whose settings the git and hg that
// fetch modules obey. They can name programs.
func (r *moduleReader) readsMore() bool {
	for _, name := range []string{"terraform.tfstate", "terraform.tfstate.d"} {
		if exists(r.root, name) {
			return true
		}
	}
	for dir := r.root; ; dir = filepath.Dir(dir) {
		for _, name := range []string{".git", ".hg", "HEAD"} { // HEAD: the folder is a repository itself
			if exists(dir, name) {
				return true
			}
		}
		if rest, err := filepath.Rel(r.bundle, dir); err != nil || rest == "." || !filepath.IsLocal(rest) {
			break
		}
	}
	return testsNeed(r.ctx, r.root) || testsNeed(r.ctx, filepath.Join(r.root, "tests"))
}

// testsNeed reports whether the tests in a folder may call modules or have providers,
// which init installs.
func testsNeed(ctx context.Context, dir string) bool {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		name := entry.Name()
		if !isTest(name) {
			continue
		}
		if ctx.Err() != nil {
			return true
		}
		file, err := parse(ctx, filepath.Join(dir, name))
		if err != nil {
			return true
		}
		content, rest, _ := file.Body.PartialContent(testSchema)
		if content == nil || !lists(testSchema, file.Body, rest) {
			return true
		}
		for _, run := range content.Blocks.OfType("run") {
			if content, _, _ := run.Body.PartialContent(runSchema); content == nil || len(content.Blocks) > 0 {
				return true
			}
		}
	}
	return false
}

func isTest(name string) bool {
	return slices.ContainsFunc([]string{".tftest.hcl", ".tofutest.hcl", ".tftest.json", ".tofutest.json"}, func(suffix string) bool {
		return strings.HasSuffix(name, suffix)
	})
}

var (
	testSchema = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
		{Type: "run", LabelNames: []string{"name"}},
		{Type: "variables"},
		{Type: "test"},
		{Type: "override_resource"},
		{Type: "override_data"},
		{Type: "override_module"},
	}}
	runSchema = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "module"}}}
)
