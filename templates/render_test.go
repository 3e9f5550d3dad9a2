package templates_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/holdfast-dev/holdfast/templates"
)

// inputs resolves a template whose only module takes text as it is, in a list
// as a value and a key, and between two references, and returns the module's
// attributes as the engine evaluates them. It reports false if the text cannot
// be written in a template.
func inputs(t testing.TB, text string) (map[string]cty.Value, bool) {
	t.Helper()
	plain := strings.ReplaceAll(text, "${", "$${")
	quote := func(s string) string {
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	files := map[string]string{
		"template.yaml": fmt.Sprintf(`apiVersion: holdfast.dev/v1
kind: Template
metadata: {name: t}
spec:
  providers:
    p:
      modules:
        - name: m
          source: ./m
          inputs: {alone: %s, nested: [{%s: %s}], mixed: %s}
  variables: {properties: {v: {type: string, description: %s, default: %s}}}
  outputs: {o: {value: %s, description: %s}}
`, quote(plain), quote(text+"k"), quote(plain), quote("${var.v}"+plain+"${var.v}"), quote(text), quote(text), quote(plain), quote(text)),
		"m/main.tf": "variable \"alone\" {}\nvariable \"nested\" {}\nvariable \"mixed\" {}\n",
	}
	doc := document(t, "c.yaml", short("template: {path: .}"))
	root, faults, err := templates.NewResolver(nil).Resolve(t.Context(), tree(files), doc)
	if err != nil {
		t.Fatal(err)
	}
	if len(faults) > 0 {
		return nil, false
	}
	var main []byte
	for _, f := range root.Files() {
		if f.Name == "main.tf" {
			main = f.Data
		}
	}
	file, diags := hclsyntax.ParseConfig(main, "main.tf", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatalf("rendered HCL cannot be read: %v\n%s", diags, main)
	}
	scope := &hcl.EvalContext{Variables: map[string]cty.Value{
		"var": cty.ObjectVal(map[string]cty.Value{"v": cty.StringVal("|")}),
	}}
	values := map[string]cty.Value{}
	for _, block := range file.Body.(*hclsyntax.Body).Blocks {
		for name, attr := range block.Body.Attributes {
			if name == "type" {
				continue
			}
			v, diags := attr.Expr.Value(scope)
			if diags.HasErrors() {
				t.Fatalf("rendered HCL cannot be evaluated: %v\n%s", diags, main)
			}
			values[block.Type+"."+name] = v
		}
	}
	return values, true
}

func checkInputs(t testing.TB, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		return
	}
	values, ok := inputs(t, text)
	if !ok {
		return
	}
	want := cty.StringVal(text)
	for name, want := range map[string]cty.Value{
		"module.alone":         want,
		"module.nested":        cty.TupleVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{want.AsString() + "k": want})}),
		"module.mixed":         cty.StringVal("|" + text + "|"),
		"variable.default":     want,
		"variable.description": want,
		"output.value":         want,
		"output.description":   want,
	} {
		if name == "module.mixed" && strings.HasSuffix(text, "$") {
			continue // before a reference this is the escape of a literal ${
		}
		if name == "output.description" && text == "" {
			continue // left out
		}
		if got := values[name]; !got.RawEquals(want) {
			t.Errorf("%s of %q is %#v", name, text, got)
		}
	}
}

func TestRenderLiterals(t *testing.T) {
	t.Parallel()

	for _, text := range []string{
		"", "plain", `"`, `\`, `\"`, "a\nb\tc\r", "${x}", "$${x}", "$$${x}", "$$$${x}", "%{if true}", "%%{x}", "%%%{x}", "$%{x}", "%${x}",
		"$", "$$", "%", "x$", "x%", "{", "${", "%{", "$${", `${file("/etc/passwd")}`, "%{ for x in y }", "\x00\x01", "é", "日本", "😀", "\ufeff",
		"<<EOT", "EOT", "// no comment", "# none", "/*", "${\"${x}\"}", `${"$"}`, "\\${x}", "\\u0024{x}", "}", "~}", "${~x~}",
	} {
		if _, ok := inputs(t, text); !ok {
			t.Errorf("%q cannot be written in a template", text)
		}
		checkInputs(t, text)
	}
}

func FuzzRender(f *testing.F) {
	f.Add("${x}$${y}%{z}")
	f.Add("$$%%{\"\\")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) < 2000 {
			checkInputs(t, text)
		}
	})
}
