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
	at         int    // byte at which the fault must be told; inText: where the text begins
	want       string // what the fault must say
	group      string // of mistakes that do not hide one another, and are planted together
}

const inText = -1

const (
	unknownArgument = "unknown argument"
	unknownBlock    = "unknown block"
	missingArgument = "missing argument"
	wrongType       = "value of a wrong type"
	badReference    = "bad reference"
)

// TestPlantedMistakesAreFound plants mistakes of each kind at every place of
// every module where they can be made, and wants the checker to name each at its
// line: so every argument, block and reference of the library really is held to
// the facts.
func TestPlantedMistakesAreFound(t *testing.T) {
	t.Parallel()

	known := facts(t)
	whole := library(t)
	for _, dir := range modules(t, whole) {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			kinds := map[string]int{}
			groups := map[string][]mutation{}
			for _, m := range mutations(t, whole, dir, known) {
				kinds[m.kind]++
				groups[m.group] = append(groups[m.group], m)
			}
			for _, group := range groups {
				mutated, lines := plant(whole, group)
				_, faults := tfschema.Check(mutated, dir, known)
				for i, m := range group {
					if !slices.ContainsFunc(faults, func(f tfschema.Fault) bool {
						return f.File == m.file && f.Line == lines[i] && strings.Contains(f.Message, m.want)
					}) {
						t.Errorf("%s: at line %d a %s (%q for %q) is not found, want %q; got %v",
							m.file, lines[i], m.kind, m.text, whole[m.file].Data[m.start:m.end], m.want, faults)
					}
				}
			}
			for _, kind := range []string{unknownArgument, unknownBlock, badReference, wrongType} {
				if kind == wrongType && strings.Contains(dir, "/local/") {
					continue // what terraform_data takes is of any type
				}
				if kinds[kind] == 0 {
					t.Errorf("no %s was planted", kind)
				}
			}
			t.Logf("planted %v", kinds)
		})
	}
}

// plant returns a copy with the mistakes in it, and the line of each.
func plant(fsys fstest.MapFS, all []mutation) (fstest.MapFS, []int) {
	out := maps.Clone(fsys)
	lines := make([]int, len(all))
	byFile := map[string][]int{}
	for i, m := range all {
		byFile[m.file] = append(byFile[m.file], i)
	}
	for file, indexes := range byFile {
		slices.SortStableFunc(indexes, func(a, b int) int { return all[a].start - all[b].start })
		old := fsys[file].Data
		var data []byte
		moved := func(at int) int { // where a byte before all later mistakes is now
			n := at
			for _, i := range indexes {
				if all[i].end <= at {
					n += len(all[i].text) - (all[i].end - all[i].start)
				}
			}
			return n
		}
		begin, last := map[int]int{}, 0
		for _, i := range indexes {
			data = append(data, old[last:all[i].start]...)
			begin[i] = len(data) + len(all[i].text) - len(strings.TrimLeft(all[i].text, "\n"))
			data = append(data, all[i].text...)
			last = all[i].end
		}
		data = append(data, old[last:]...)
		for _, i := range indexes {
			at := begin[i]
			if all[i].at != inText {
				at = moved(all[i].at)
			}
			lines[i] = 1 + strings.Count(string(data[:at]), "\n")
		}
		out[file] = &fstest.MapFile{Data: data}
	}
	return out, lines
}

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
	open := block.OpenBraceRange.End.Byte
	all := []mutation{
		{unknownArgument, name, open, open, "\nno_such_argument = 1\n", inText, `unknown argument "no_such_argument"`, "unknown"},
		{unknownBlock, name, open, open, "\nno_such_block {}\n", inText, `unknown block "no_such_block"`, "unknown"},
		{unknownBlock, name, open, open, "\ndynamic \"no_such_block\" {\nfor_each = []\ncontent {}\n}\n", inText, `unknown block "no_such_block"`, "unknown"},
	}
	for _, attr := range block.Body.Attributes {
		known, ok := facts.Attributes[attr.Name]
		if !ok {
			continue // count, for_each, depends_on
		}
		if known.Required {
			all = append(all, mutation{
				missingArgument, name, attr.SrcRange.Start.Byte, attr.SrcRange.End.Byte, "",
				block.TypeRange.Start.Byte, fmt.Sprintf("the required argument %q is missing", attr.Name), "missing",
			})
		}
		if known.Type != cty.DynamicPseudoType {
			r := attr.Expr.Range()
			all = append(all, mutation{wrongType, name, r.Start.Byte, r.End.Byte, wrong(known.Type), inText, "wrong type", "type"})
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

// references returns mistakes for every reference to a variable, a local value,
// a resource or a data source: in its name, and in the attribute after it.
func references(body *hclsyntax.Body, name string) []mutation {
	var all []mutation
	for _, block := range body.Blocks {
		add := func(step hcl.Traverser, group string) {
			attr, ok := step.(hcl.TraverseAttr)
			if !ok {
				return
			}
			if block.Type == "locals" { // others depend on it
				group = fmt.Sprint(group, name, attr.SrcRange)
			}
			end := attr.SrcRange.End.Byte
			all = append(all, mutation{badReference, name, end, end, "_wrong", inText, attr.Name + "_wrong", group})
		}
		_ = hclsyntax.VisitAll(block.Body, func(node hclsyntax.Node) hcl.Diagnostics {
			if expr, ok := node.(*hclsyntax.ScopeTraversalExpr); ok {
				reference(expr.Traversal, add)
			}
			return nil
		})
	}
	return all
}

func reference(t hcl.Traversal, add func(step hcl.Traverser, group string)) {
	root := t.RootName()
	if root == "data" && len(t) > 2 {
		t = t[1:]
	}
	if len(t) < 2 || root != "data" && root != "var" && root != "local" && !strings.Contains(root, "_") {
		return
	}
	add(t[1], "names")
	if root == "var" || root == "local" || root == "terraform_data" {
		return // what comes after may be of any type
	}
	for _, step := range t[2:] {
		if _, ok := step.(hcl.TraverseAttr); ok {
			add(step, "attributes")
			return
		}
	}
}
