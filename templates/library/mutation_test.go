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
			kinds := []string{unknownArgument, unknownBlock, badReference}
			if !strings.Contains(dir, "/local/") { // what terraform_data takes is of any type
				kinds = append(kinds, wrongType)
			}
			mutate(t, whole, dir, known, kinds)
		})
	}
}

// TestPlantedMistakesInRootsAreFound does the same in the root module of every
// advanced example: in the provider blocks, the calls of modules and the outputs.
func TestPlantedMistakesInRootsAreFound(t *testing.T) {
	t.Parallel()

	known := facts(t)
	tree := diskTree{os.DirFS("kubernetes")}
	for name, doc := range examples(t, tree) {
		cloud, kind, _ := strings.Cut(name, "-")
		if kind != "advanced" {
			continue
		}
		t.Run(cloud, func(t *testing.T) {
			t.Parallel()
			root := resolve(t, tree, doc)
			kinds := []string{unknownArgument, missingArgument, badReference, wrongType}
			if cloud != "local" { // it has no provider to configure
				kinds = append(kinds, unknownBlock)
			}
			mutate(t, unpack(t, root), root.Dir, known, kinds)
		})
	}
}

// mutate plants all mistakes in a module, wants each to be found, and some of
// each kind.
func mutate(t *testing.T, whole fstest.MapFS, dir string, known tfschema.Facts, want []string) {
	t.Helper()
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
	for _, kind := range want {
		if kinds[kind] == 0 {
			t.Errorf("no %s was planted", kind)
		}
	}
	t.Logf("planted %v", kinds)
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
		if path.Dir(name) != dir || path.Ext(name) != ".tf" {
			continue
		}
		file, diags := hclsyntax.ParseConfig(fsys[name].Data, name, hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		body := file.Body.(*hclsyntax.Body)
		all = append(all, references(body, name)...)
		for _, block := range body.Blocks {
			switch block.Type {
			case "module":
				callee, _ := tfschema.Check(fsys, path.Join(dir, source(t, block)), known)
				all = append(all, inCall(block, callee, name)...)
			case "resource", "data", "provider":
				if facts := factsOf(t, block, known); facts != nil {
					all = append(all, inBody(block, facts, name)...)
				}
			}
		}
	}
	return all
}

// factsOf returns what is known of a resource, a data source or a provider.
func factsOf(t *testing.T, block *hclsyntax.Block, known tfschema.Facts) *tfschema.Body {
	t.Helper()
	provider := known[strings.Split(block.Labels[0], "_")[0]]
	if provider == nil {
		t.Fatalf("no facts about %s", block.Labels[0])
	}
	switch block.Type {
	case "provider":
		return provider.Config
	case "data":
		return provider.DataSources[block.Labels[0]]
	}
	return provider.Resources[block.Labels[0]]
}

// source is where a called module is.
func source(t *testing.T, block *hclsyntax.Block) string {
	t.Helper()
	value, diags := block.Body.Attributes["source"].Expr.Value(nil)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return value.AsString()
}

// inCall returns the mistakes in a call of a module.
func inCall(block *hclsyntax.Block, callee *tfschema.Module, name string) []mutation {
	open := block.OpenBraceRange.End.Byte
	all := []mutation{
		{unknownArgument, name, open, open, "\nno_such_input = 1\n", inText, `the module has no variable "no_such_input"`, "unknown"},
	}
	for _, attr := range block.Body.Attributes {
		v, ok := callee.Variables[attr.Name]
		if !ok {
			continue // source, depends_on
		}
		if v.Required {
			all = append(all, mutation{
				missingArgument, name, attr.SrcRange.Start.Byte, attr.SrcRange.End.Byte, "",
				block.TypeRange.Start.Byte, fmt.Sprintf("the module needs the input %q", attr.Name), "missing",
			})
		}
		r := attr.Expr.Range()
		all = append(all, mutation{wrongType, name, r.Start.Byte, r.End.Byte, wrong(v.Type), inText, "wrong type", "type"})
	}
	return all
}

// inObject returns the mistakes in the names of an object, and of those within
// it, where an argument takes an object of certain names.
func inObject(expr hclsyntax.Expression, typ cty.Type, name string) []mutation {
	object, ok := expr.(*hclsyntax.ObjectConsExpr)
	if !ok || !typ.IsObjectType() {
		return nil
	}
	open := object.OpenRange.End.Byte
	all := []mutation{{unknownArgument, name, open, open, "\nno_such_name = 1\n", inText, `unknown attribute "no_such_name"`, "unknown"}}
	for _, item := range object.Items {
		key, ok := item.KeyExpr.(*hclsyntax.ObjectConsKeyExpr)
		if !ok {
			continue
		}
		word := hcl.ExprAsKeyword(key.Wrapped)
		if value, diags := key.Wrapped.Value(nil); word == "" && !diags.HasErrors() && value.Type() == cty.String {
			word = value.AsString()
		}
		if typ.HasAttribute(word) {
			all = append(all, inObject(item.ValueExpr, typ.AttributeType(word), name)...)
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
			all = append(all, inObject(attr.Expr, known.Type, name)...)
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
	known := root == "data" || root == "var" || root == "local" || root == "module"
	if len(t) < 2 || !known && !strings.Contains(root, "_") {
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
