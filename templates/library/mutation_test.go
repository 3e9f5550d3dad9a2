package library_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/holdfast-dev/holdfast/internal/testenv/tfschema"
)

// mutation is a mistake that is planted in a copy of a module.
type mutation struct {
	kind       string
	file       string
	start, end int    // bytes that are replaced
	text       string // by this
	line       int    // where the fault must be told
	want       string // what it must say
}

// TestPlantedMistakesAreFound plants every mistake of each kind at every place
// of every module where it can be made, one at a time, and wants the checker to
// name it at its line: so every argument, block and reference of the library
// really is held to the facts.
func TestPlantedMistakesAreFound(t *testing.T) {
	t.Parallel()

	known := facts(t)
	whole := library(t)
	for _, dir := range modules(t, whole) {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			kinds := map[string]int{}
			for _, m := range mutations(t, whole, dir, known) {
				kinds[m.kind]++
				copied := maps.Clone(whole)
				data := whole[m.file].Data
				copied[m.file] = &fstest.MapFile{Data: slices.Concat(data[:m.start], []byte(m.text), data[m.end:])}
				_, faults := tfschema.Check(copied, dir, known)
				if !slices.ContainsFunc(faults, func(f tfschema.Fault) bool {
					return f.File == m.file && f.Line == m.line && strings.Contains(f.Message, m.want)
				}) {
					t.Errorf("%s:%d: %s (%q for %q) is not found, want %q; got %v",
						m.file, m.line, m.kind, m.text, data[m.start:m.end], m.want, faults)
				}
			}
			t.Logf("planted %v", kinds)
			for _, kind := range []string{unknownArgument, unknownBlock, badReference, wrongType} {
				if kind == wrongType && strings.Contains(dir, "/local/") {
					continue // what terraform_data takes is of any type
				}
				if kinds[kind] == 0 {
					t.Errorf("%s was planted nowhere", kind)
				}
			}
		})
	}
}

const (
	unknownArgument = "an unknown argument"
	unknownBlock    = "an unknown block"
	missingArgument = "a missing argument"
	wrongType       = "a value of a wrong type"
	badReference    = "a bad reference"
)

// library is a copy of the modules in memory.
func library(t *testing.T) fstest.MapFS {
	t.Helper()
	fsys := fstest.MapFS{}
	disk := os.DirFS(".")
	for _, dir := range modules(t, disk) {
		names, err := fs.Glob(disk, path.Join(dir, "*.tf"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			data, err := fs.ReadFile(disk, name)
			if err != nil {
				t.Fatal(err)
			}
			fsys[name] = &fstest.MapFile{Data: data}
		}
	}
	return fsys
}

// mutations returns all mistakes that can be made in a module.
func mutations(t *testing.T, fsys fstest.MapFS, dir string, known tfschema.Facts) []mutation {
	t.Helper()
	var all []mutation
	for _, name := range slices.Sorted(maps.Keys(fsys)) {
		if path.Dir(name) != dir {
			continue
		}
		file, diags := hclsyntax.ParseConfig(fsys[name].Data, name, hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		body := file.Body.(*hclsyntax.Body)
		all = append(all, references(body, name)...)
		for _, block := range body.Blocks {
			if block.Type != "resource" && block.Type != "data" {
				continue
			}
			provider := known[strings.Split(block.Labels[0], "_")[0]]
			if provider == nil {
				t.Fatalf("%s: no facts about %s", name, block.Labels[0])
			}
			types := provider.Resources
			if block.Type == "data" {
				types = provider.DataSources
			}
			if facts := types[block.Labels[0]]; facts != nil {
				all = append(all, inBody(block, facts, name)...)
			}
		}
	}
	return all
}

// inBody returns the mistakes in a block whose arguments are known, and in
// those within it.
func inBody(block *hclsyntax.Block, facts *tfschema.Body, name string) []mutation {
	open := block.OpenBraceRange.End
	all := []mutation{
		{unknownArgument, name, open.Byte, open.Byte, "\nno_such_argument = 1\n", open.Line + 1, `unknown argument "no_such_argument"`},
		{unknownBlock, name, open.Byte, open.Byte, "\nno_such_block {}\n", open.Line + 1, `unknown block "no_such_block"`},
		{unknownBlock, name, open.Byte, open.Byte, "\ndynamic \"no_such_block\" {\nfor_each = []\ncontent {}\n}\n", open.Line + 1, `unknown block "no_such_block"`},
	}
	for _, attr := range block.Body.Attributes {
		known, ok := facts.Attributes[attr.Name]
		if !ok {
			continue // count, for_each, depends_on
		}
		if known.Required {
			all = append(all, mutation{
				missingArgument, name, attr.SrcRange.Start.Byte, attr.SrcRange.End.Byte, "",
				block.TypeRange.Start.Line, fmt.Sprintf("the required argument %q is missing", attr.Name),
			})
		}
		if known.Type != cty.DynamicPseudoType {
			r := attr.Expr.Range()
			all = append(all, mutation{wrongType, name, r.Start.Byte, r.End.Byte, wrong(known.Type), r.Start.Line, "wrong type"})
		}
	}
	for _, inner := range block.Body.Blocks {
		label := inner.Type
		if inner.Type == "dynamic" && len(inner.Labels) == 1 {
			label = inner.Labels[0]
			i := slices.IndexFunc(inner.Body.Blocks, func(b *hclsyntax.Block) bool { return b.Type == "content" })
			inner = inner.Body.Blocks[i]
		}
		if known, ok := facts.Blocks[label]; ok {
			all = append(all, inBody(inner, &known.Body, name)...)
		}
	}
	return all
}

// wrong is a literal that is not of the type.
func wrong(typ cty.Type) string {
	if typ == cty.String {
		return `["wrong"]`
	}
	return `"wrong"`
}

// references returns a mistake for every reference to a variable, a local
// value, a resource or a data source.
func references(body *hclsyntax.Body, name string) []mutation {
	var all []mutation
	add := func(step hcl.Traverser) {
		attr, ok := step.(hcl.TraverseAttr)
		if !ok {
			return
		}
		end := attr.SrcRange.End
		all = append(all, mutation{badReference, name, end.Byte, end.Byte, "_wrong", attr.SrcRange.Start.Line, attr.Name + "_wrong"})
	}
	_ = hclsyntax.VisitAll(body, func(node hclsyntax.Node) hcl.Diagnostics {
		expr, ok := node.(*hclsyntax.ScopeTraversalExpr)
		if !ok || len(expr.Traversal) < 2 {
			return nil
		}
		t := expr.Traversal
		switch root := t.RootName(); {
		case root == "var" || root == "local":
			add(t[1])
		case root == "data":
			if len(t) > 2 {
				add(t[2])
				attribute(t[3:], add)
			}
		case strings.Contains(root, "_"):
			add(t[1])
			if root != "terraform_data" {
				attribute(t[2:], add)
			}
		}
		return nil
	})
	return all
}

// attribute adds a mistake to the first attribute after an index.
func attribute(t hcl.Traversal, add func(hcl.Traverser)) {
	for _, step := range t {
		if _, ok := step.(hcl.TraverseAttr); ok {
			add(step)
			return
		}
	}
}
