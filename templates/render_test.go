package templates_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"

	"github.com/holdfast-dev/holdfast/rootmodule"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// literalTemplate has a text in every place where a template can have one: %[1]s
// is it, quoted; %[2]s with its "${" escaped; %[3]s as a key; %[4]s between
// references.
const literalTemplate = `apiVersion: holdfast.dev/v1
kind: Template
metadata: {name: t, description: %[1]s}
spec:
  providers:
    p:
      defaults: {from_provider: %[1]s}
      configure:
        - name: e
          source: a/e
          arguments: {alone: %[2]s, nested: [{%[3]s: %[2]s}], mixed: %[4]s}
          blocks: [{type: b, arguments: {inner: %[2]s}}]
      modules:
        - name: m
          source: ./m
          inputs: {alone: %[2]s, nested: [{%[3]s: %[2]s}], mixed: %[4]s, region: "${cluster.region}"}
  variables:
    properties:
      v: {type: string, description: %[1]s, default: %[1]s}
      listed: {type: array, items: {type: string}, default: [%[1]s]}
      tags: {type: object, additionalProperties: {type: string}, default: {%[3]s: %[1]s}}
      from_provider: {type: string}
      given: {}
      password: {type: string, writeOnly: true}
  outputs: {o: {value: %[2]s, description: %[1]s}}
`

func quote(t testing.TB, s string) string {
	t.Helper()
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// rendered makes a root module with text in every place. It reports false if the
// text cannot be written there.
func rendered(t testing.TB, text string) (*templates.Root, bool) {
	t.Helper()
	plain := strings.ReplaceAll(text, "${", "$${")
	files := map[string]string{
		"template.yaml": fmt.Sprintf(literalTemplate, quote(t, text), quote(t, plain), quote(t, text+"k"), quote(t, "${var.v}"+plain+"${var.v}")),
		"m/main.tf":     "variable \"alone\" {}\nvariable \"nested\" {}\nvariable \"mixed\" {}\nvariable \"region\" {}\n",
	}
	key := quote(t, text+"k")
	quoted := quote(t, text)
	docs, faults := document.ParseClusters("c.yaml", []byte(short("template: {path: .}", "region: "+quoted,
		"state: {type: s3, bucket: "+quoted+", endpoints: {"+key+": "+quoted+"}}",
		"variables: {given: {"+key+": ["+quoted+"]}, password: {secret: {store: vault, key: prod/db}}}")))
	if len(faults) > 0 || len(docs) != 1 {
		return nil, false
	}
	root, faults, err := templates.NewResolver(nil).Resolve(t.Context(), tree(files), docs[0])
	if err != nil {
		t.Fatal(err)
	}
	return root, len(faults) == 0
}

// valuesOf evaluates all attributes of a file as the engine does, by their path
// of blocks.
func valuesOf(t testing.TB, name string, data string) map[string]cty.Value {
	t.Helper()
	file, diags := hclsyntax.ParseConfig([]byte(data), name, hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatalf("rendered HCL cannot be read: %v\n%s", diags, data)
	}
	scope := &hcl.EvalContext{Variables: map[string]cty.Value{
		"var":   cty.ObjectVal(map[string]cty.Value{"v": cty.StringVal("|")}),
		"local": cty.ObjectVal(map[string]cty.Value{"cluster": cty.ObjectVal(map[string]cty.Value{"region": cty.StringVal("r")})}),
	}}
	values := map[string]cty.Value{}
	var read func(path string, body *hclsyntax.Body)
	read = func(path string, body *hclsyntax.Body) {
		for name, attr := range body.Attributes {
			if name == "type" {
				continue
			}
			v, diags := attr.Expr.Value(scope)
			if diags.HasErrors() {
				t.Fatalf("rendered HCL cannot be evaluated: %v\n%s", diags, data)
			}
			values[path+name] = v
		}
		for _, block := range body.Blocks {
			read(path+strings.Join(append([]string{block.Type}, block.Labels...), ".")+".", block.Body)
		}
	}
	read("", file.Body.(*hclsyntax.Body))
	return values
}

// literalValues are the attributes that there must be, and no others.
func literalValues(text string) map[string]map[string]cty.Value {
	is := cty.StringVal(text)
	object := func(key string, v cty.Value) cty.Value { return cty.ObjectVal(map[string]cty.Value{key: v}) }
	nested := cty.TupleVal([]cty.Value{object(text+"k", is)})
	mixed := cty.StringVal("|" + text + "|")
	null := cty.NullVal(cty.DynamicPseudoType)
	return map[string]map[string]cty.Value{
		"main.tf": {
			"variable.v.description": is, "variable.v.default": is,
			"variable.listed.default":        cty.TupleVal([]cty.Value{is}),
			"variable.tags.default":          object(text+"k", is),
			"variable.from_provider.default": null, "variable.given.default": null,
			"variable.password.default": null, "variable.password.sensitive": cty.True,
			"module.m.source": cty.StringVal("../template/m"), "module.m.alone": is, "module.m.nested": nested, "module.m.mixed": mixed,
			"module.m.region": cty.StringVal("r"),
			"output.o.value":  is, "output.o.description": is,
		},
		"providers.tf": {
			"terraform.required_providers.e": object("source", cty.StringVal("a/e")),
			"provider.e.alone":               is, "provider.e.nested": nested, "provider.e.mixed": mixed, "provider.e.b.inner": is,
		},
		"cluster.tf": {
			"terraform.backend.s3.bucket":    is,
			"terraform.backend.s3.endpoints": object(text+"k", is),
			"terraform.backend.s3.key":       cty.StringVal("a/terraform.tfstate"),
			"locals.cluster":                 object("region", is),
		},
	}
}

func checkLiteral(t testing.TB, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		return
	}
	root, ok := rendered(t, text)
	if !ok {
		return
	}
	files := filesOf(root)
	for name, want := range literalValues(text) {
		got := valuesOf(t, name, files[name])
		if strings.HasSuffix(text, "$") { // before a reference this is the escape of a literal ${
			delete(want, "module.m.mixed")
			delete(got, "module.m.mixed")
			delete(want, "provider.e.mixed")
			delete(got, "provider.e.mixed")
		}
		if text == "" {
			delete(want, "output.o.description") // left out
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
			t.Errorf("%s of %q has other attributes:\n%s\n%s", name, text, diff, files[name])
		}
		for at, v := range want {
			if !got[at].RawEquals(v) {
				t.Errorf("%s in %s of %q is %#v", at, name, text, got[at])
			}
		}
	}
	checkLiteralJSON(t, text, root, files)
}

func checkLiteralJSON(t testing.TB, text string, root *templates.Root, files map[string]string) {
	t.Helper()
	const name = "holdfast.auto.tfvars.json"
	file, diags := hcljson.Parse([]byte(files[name]), name)
	if diags.HasErrors() {
		t.Fatalf("%s cannot be read: %v\n%s", name, diags, files[name])
	}
	attrs, _ := file.Body.JustAttributes()
	given, _ := attrs["given"].Expr.Value(nil)
	want := cty.ObjectVal(map[string]cty.Value{text + "k": cty.TupleVal([]cty.Value{cty.StringVal(text)})})
	fromProvider, _ := attrs["from_provider"].Expr.Value(nil)
	if len(attrs) != 2 || !given.RawEquals(want) || !fromProvider.RawEquals(cty.StringVal(text)) {
		t.Errorf("%s of %q is %s", name, text, files[name])
	}
	refs := map[string]rootmodule.SecretRef{"password": {Store: "vault", Key: "prod/db"}}
	var written map[string]rootmodule.SecretRef
	if err := json.Unmarshal([]byte(files[rootmodule.SecretFile]), &written); err != nil || !maps.Equal(written, refs) || !maps.Equal(root.Secrets, refs) {
		t.Errorf("%s of %q is %s", rootmodule.SecretFile, text, files[rootmodule.SecretFile])
	}
}

func TestRenderLiterals(t *testing.T) {
	t.Parallel()

	for _, text := range []string{
		"plain", `"`, `\`, `\"`, "a\nb\tc\r", "${x}", "$${x}", "$$${x}", "$$$${x}", "%{if true}", "%%{x}", "%%%{x}", "$%{x}", "%${x}",
		"$", "$$", "%", "x$", "x%", "{", "${", "%{", "$${", `${file("/etc/passwd")}`, "%{ for x in y }", "\x00\x01", "é", "日本", "😀", "\ufeff",
		"<<EOT", "EOT", "// no comment", "# none", "/*", "${\"${x}\"}", `${"$"}`, "\\${x}", "\\u0024{x}", "}", "~}", "${~x~}",
		"e\u0301", "\u0301e", "\u06dd", "\u200d", "\U0001F3FB", "\U000110BD", "\u0d4e", "\uff9e", "ᆨ", "🇩🇪", "\u2028", "\u200b", "true", "null", "1e3", "a\"\n}\nresource \"x\" \"y\" {\n",
	} {
		if _, ok := rendered(t, text); !ok {
			t.Errorf("%q cannot be written in a template", text)
		}
		checkLiteral(t, text)
	}
}

func FuzzRender(f *testing.F) {
	f.Add("${x}$${y}%{z}")
	f.Add("$$%%{\"\\")
	f.Add("a\"\n}\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) < 2000 {
			checkLiteral(t, text)
		}
	})
}
