// Which files expressions read by their names.

package modulecode

import (
	"encoding/json"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/holdfast-dev/holdfast/runner/jsontree"
)

// readsFile are the functions whose first argument is the name of a file or folder.
var readsFile = []string{ //nolint:gochecknoglobals // a constant list
	"file", "filebase64", "filebase64sha256", "filebase64sha512", "fileexists", "filemd5",
	"filesha1", "filesha256", "filesha512", "fileset", "templatefile",
}

// maxTemplate bounds a text of JSON code that is read as a template.
const maxTemplate = 16 << 10

// FilesRead returns the names of files that the code of the module in dir reads by
// functions such as file, where they are constant. dir is where the module is below
// the root module, as the engine names it: it stands in for path.module.
func FilesRead(folder, dir string) []string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	where := &hcl.EvalContext{Variables: map[string]cty.Value{"path": cty.ObjectVal(map[string]cty.Value{
		"module": cty.StringVal(dir), "root": cty.StringVal("."),
	})}}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() || strings.HasPrefix(entry.Name(), ".") || !IsFile(entry.Name()) {
			continue
		}
		file, _ := Parse(path.Join(folder, entry.Name()))
		if file == nil {
			continue
		}
		if body, native := file.Body.(*hclsyntax.Body); native {
			names = append(names, filesIn(body, where)...)
			continue
		}
		names = append(names, filesInJSON(file.Bytes, where)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func filesIn(node hclsyntax.Node, where *hcl.EvalContext) (names []string) {
	_ = hclsyntax.VisitAll(node, func(node hclsyntax.Node) hcl.Diagnostics {
		call, ok := node.(*hclsyntax.FunctionCallExpr)
		if !ok || len(call.Args) == 0 || !slices.Contains(readsFile, strings.TrimPrefix(call.Name, "core::")) {
			return nil
		}
		if _, nested := call.Args[0].(*hclsyntax.FunctionCallExpr); nested {
			return nil // no function is known here
		}
		name, diags := call.Args[0].Value(where)
		if !diags.HasErrors() && name.Type() == cty.String && name.IsWhollyKnown() && !name.IsNull() {
			names = append(names, name.AsString())
		}
		return nil
	})
	return names
}

// filesInJSON looks through the texts of JSON code, each of which is a template.
func filesInJSON(code []byte, where *hcl.EvalContext) (names []string) {
	var value any
	if json.Unmarshal(code, &value) != nil {
		return nil
	}
	for _, text := range jsontree.AppendStrings(nil, value) {
		if !strings.Contains(text, "file") || len(text) > maxTemplate || TooDeep([]byte("x = <<E\n"+text+"\nE\n")) {
			continue
		}
		template, _ := hclsyntax.ParseTemplate([]byte(text), "", hcl.InitialPos)
		if template != nil {
			names = append(names, filesIn(template, where)...)
		}
	}
	return names
}
