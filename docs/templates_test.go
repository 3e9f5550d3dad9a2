package docs_test

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/gitsource"
	"github.com/holdfast-dev/holdfast/rootmodule"
	"github.com/holdfast-dev/holdfast/templates/authoring"
	"github.com/holdfast-dev/holdfast/templates/document"
	"github.com/holdfast-dev/holdfast/templates/semver"
)

// templatePlaces are the tables of keys, and where such a key stands: %s is the
// key.
func templatePlaces() map[string][]string {
	return map[string][]string{
		"Key of `metadata`": {"metadata", "%s"},
		"Key of `spec`":     {"spec", "%s"},
		"Key of a provider": {"spec", "providers", "local", "%s"},
		"Key of a module":   {"spec", "providers", "local", "modules", "0", "%s"},
		"Key of an entry":   {"spec", "providers", "local", "configure", "0", "%s"},
		"Key of a block":    {"spec", "providers", "local", "configure", "0", "blocks", "0", "%s"},
		"Key of a rule":     {"spec", "rules", "0", "%s"},
		"Key of an output":  {"spec", "outputs", "id", "%s"},
	}
}

const wholeTemplate = `apiVersion: holdfast.dev/v1
kind: Template
metadata: {name: web}
spec:
  providers:
    local:
      configure: [{name: aws, source: hashicorp/aws, blocks: [{type: x}]}]
      modules: [{name: m, source: ./m}]
  rules: [{rule: "true", message: m}]
  outputs: {id: {value: a}}
`

// A key of templates is in the tables if the code reads it, and stands where the
// tables say.
func TestTemplateKeys(t *testing.T) {
	t.Parallel()
	page := read(t, "templates.md")
	var documented []string
	for header, place := range templatePlaces() {
		for _, key := range append(firstCells(table(t, page, header)), "no-such-key") {
			unknown := strings.Contains(faultsOf(t, with(t, wholeTemplate, place, key)), fmt.Sprintf("unknown key %q", key))
			if unknown != (key == "no-such-key") {
				t.Errorf("%s: %s is unknown: %t", header, key, unknown)
			}
			if key != "no-such-key" {
				documented = append(documented, key)
			}
		}
	}
	if diff := cmp.Diff(templateKeys(t), union(documented)); diff != "" {
		t.Errorf("the tables have other keys than the code reads (-code +page):\n%s", diff)
	}
}

// with adds a key without a value to a document.
func with(t *testing.T, document string, place []string, key string) string {
	t.Helper()
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(document), &root); err != nil {
		t.Fatal(err)
	}
	at := root.Content[0]
	for _, word := range place[:len(place)-1] {
		if at.Kind == yaml.SequenceNode {
			at = at.Content[0]
			continue
		}
		i := slices.IndexFunc(at.Content, func(n *yaml.Node) bool { return n.Value == word })
		at = at.Content[i+1]
	}
	if !slices.ContainsFunc(at.Content, func(n *yaml.Node) bool { return n.Value == key }) {
		at.Content = append(at.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"})
	}
	out, err := yaml.Marshal(&root)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// templateKeys are the keys that the code asks documents of templates for.
func templateKeys(t *testing.T) []string {
	t.Helper()
	readers := []string{"Get", "Text", "Required", "Child", "Items", "Strings", "Bool", "Choice", "Name", "ExactVersion"}
	keys := map[string]bool{}
	eachFile(t, "../templates", func(file *ast.File) {
		ast.Inspect(file, func(node ast.Node) bool {
			method, ok := node.(*ast.FuncDecl)
			if ok && (method.Recv == nil || len(method.Recv.List) != 1 || !strings.Contains(typeName(method.Recv.List[0].Type), "templateLoader")) {
				return false
			}
			call, ok := node.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			selector, ok := call.Fun.(*ast.SelectorExpr)
			if key, isText := stringOf(call.Args[0]); ok && isText && slices.Contains(readers, selector.Sel.Name) {
				keys[key] = true
			}
			return true
		})
	})
	for _, key := range []string{"apiVersion", "kind", "metadata", "spec"} {
		delete(keys, key)
	}
	var out []string
	for key := range keys {
		out = append(out, key)
	}
	return union(out)
}

func typeName(e ast.Expr) string {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// folderOf is a tree of files.
func folderOf(t *testing.T, files map[string]string) *draftFolder {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &draftFolder{t, dir}
}

type draftFolder struct {
	t   *testing.T
	dir string
}

// open opens the template in the folder.
func (f *draftFolder) open() (*authoring.Draft, []string) {
	f.t.Helper()
	tree, err := gitsource.Dir(f.dir)
	if err != nil {
		f.t.Fatal(err)
	}
	d, faults, err := authoring.Open(f.t.Context(), tree, ".")
	if err != nil {
		f.t.Fatal(err)
	}
	var said []string
	for _, fault := range faults {
		said = append(said, fault.Error())
	}
	return d, said
}

func faultsOf(t *testing.T, template string) string {
	t.Helper()
	_, faults := folderOf(t, map[string]string{"template.yaml": template, "m/main.tf": ""}).open()
	return strings.Join(faults, "\n")
}

// stubs are modules with the inputs and outputs that a template wants of them.
func stubs(t *testing.T, template string) map[string]string {
	t.Helper()
	var doc struct {
		Spec struct {
			Providers map[string]struct {
				Modules []struct {
					Name, Source string
					Inputs       map[string]any
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(template), &doc); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{"template.yaml": template}
	for _, p := range doc.Spec.Providers {
		for _, m := range p.Modules {
			code := "# stub\n"
			for name := range m.Inputs {
				code += fmt.Sprintf("variable %q {}\n", name)
			}
			outputs := map[string]bool{}
			for _, ref := range regexp.MustCompile(`\$\{module\.`+m.Name+`\.([a-z_]+)`).FindAllStringSubmatch(template, -1) {
				outputs[ref[1]] = true
			}
			for name := range outputs {
				code += fmt.Sprintf("output %q {\n  value = \"\"\n}\n", name)
			}
			out[filepath.Join(m.Source, "main.tf")] = code
		}
	}
	return out
}

// The templates that pages show are valid.
func TestTemplateExamples(t *testing.T) {
	t.Parallel()
	found := 0
	for _, page := range pages(t) {
		for _, block := range blocks(page.text, "yaml") {
			if strings.Contains(block, "kind: Template") {
				found++
				if _, faults := folderOf(t, stubs(t, block)).open(); len(faults) > 0 {
					t.Errorf("%s: a template is not valid:\n%s", page.path, strings.Join(faults, "\n"))
				}
			}
		}
	}
	if found == 0 {
		t.Error("no page shows a template")
	}
}

// isTemplatePart reports whether a block is a part of a template, of its tests
// or of a cluster's document.
func isTemplatePart(parts map[string]any) bool {
	for _, key := range []string{"rules", "configure", "variables", "outputs", "cases"} {
		if _, ok := parts[key]; ok && len(parts) == 1 {
			return true
		}
	}
	return false
}

const aroundParts = `apiVersion: holdfast.dev/v1
kind: Template
metadata: {name: kubernetes}
spec:
  providers:
    aws:
      CONFIGURE
      modules: [{name: kubernetes, source: ./kubernetes}]
  VARIABLES
  RULES
  outputs:
    a: "${module.kubernetes.endpoint}"
    b: "${module.kubernetes.node_count}"
    c: "${module.kubernetes.kubeconfig}"
    d: "${module.kubernetes.token}"
`

const partVariables = `variables:
    required: [node_count]
    properties:
      node_count: {type: integer}
      high_availability: {type: boolean, default: false}
      pools: {type: array, items: {type: object, properties: {min: {type: integer}, max: {type: integer}}}}
      tags: {type: object, additionalProperties: {type: string}, default: {}}`

// The parts of templates that the page shows are valid at their places.
func TestTemplateParts(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for _, block := range blocks(read(t, "templates.md"), "yaml") {
		var parts map[string]any
		if err := yaml.Unmarshal([]byte(block), &parts); err != nil {
			t.Fatal(err)
		}
		if !isTemplatePart(parts) {
			continue
		}
		variables, _ := parts["variables"].(map[string]any)
		switch _, isSchema := variables["properties"]; {
		case isSchema:
			seen["schema"]++
			validAround(t, map[string]string{"VARIABLES": block})
		case variables != nil:
			seen["variables"]++
			referencesAreValid(t, variables)
		case parts["cases"] != nil:
			seen["cases"]++
			if suite, faults := authoring.ParseSuite("tests/a.yaml", ".", []byte(block)); len(faults) > 0 || len(suite.Cases) == 0 {
				t.Errorf("cases are not valid: %v", faults)
			}
		case parts["rules"] != nil:
			seen["rules"]++
			validAround(t, map[string]string{"VARIABLES": partVariables, "RULES": block})
		case parts["configure"] != nil:
			seen["configure"]++
			validAround(t, map[string]string{"VARIABLES": partVariables, "CONFIGURE": block})
		}
	}
	if len(seen) != 5 {
		t.Errorf("the page shows only %v", seen)
	}
}

func validAround(t *testing.T, parts map[string]string) {
	t.Helper()
	text := aroundParts
	for _, name := range []string{"CONFIGURE", "VARIABLES", "RULES"} {
		line := regexp.MustCompile(`(?m)^( *)` + name + "\n").FindStringSubmatch(text)
		part := strings.TrimSpace(parts[name])
		if part != "" && name != "VARIABLES" || strings.Contains(part, "\n  type: object") {
			part = strings.ReplaceAll(part, "\n", "\n"+line[1])
		}
		if part != "" {
			part = line[1] + part + "\n"
		}
		text = strings.Replace(text, line[0], part, 1)
	}
	if _, faults := folderOf(t, stubs(t, text)).open(); len(faults) > 0 {
		t.Errorf("a part is not valid:\n%s\n%s", strings.Join(faults, "\n"), text)
	}
}

// referencesAreValid holds the ways to say where a secret is to the code.
func referencesAreValid(t *testing.T, variables map[string]any) {
	t.Helper()
	var names bytes.Buffer
	for name := range variables {
		fmt.Fprintf(&names, "      %s: {type: string, writeOnly: true}\n", name)
	}
	template := strings.NewReplacer("      CONFIGURE\n", "", "  RULES\n", "", "VARIABLES", "variables:\n    properties:\n"+names.String()).Replace(aroundParts)
	text, err := yaml.Marshal(variables)
	if err != nil {
		t.Fatal(err)
	}
	if said := resolveWith(t, template, "    "+strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n    ")); said != "" {
		t.Errorf("references to secrets are not valid: %s", said)
	}
}

// resolveWith returns what is wrong with a cluster that has those variables.
func resolveWith(t *testing.T, template, variables string) string {
	t.Helper()
	d, faults := folderOf(t, stubs(t, template)).open()
	if len(faults) > 0 {
		t.Fatalf("the template is not valid:\n%s\n%s", strings.Join(faults, "\n"), template)
	}
	docs, found := document.ParseClusters("a.yaml", []byte(`apiVersion: holdfast.dev/v1
kind: Cluster
metadata: {name: a}
spec:
  project: p
  environment: e
  template: {path: .}
  variables:
`+variables+"\n"))
	if len(found) > 0 {
		t.Fatal(found)
	}
	_, found, err := d.ResolveAs(context.WithoutCancel(t.Context()), docs[0])
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, fault := range found {
		fault.File, fault.Line = "", 0
		said = append(said, strings.TrimPrefix(fault.Error(), ": "))
	}
	return strings.Join(said, "\n")
}

// What the page says that people read is what they read.
func TestTemplateMessages(t *testing.T) {
	t.Parallel()
	for _, row := range table(t, read(t, "templates.md"), "Schema of the variable") {
		schema, written, want := unquote(row[0]), unquote(row[1]), row[2]
		t.Run(schema, func(t *testing.T) {
			t.Parallel()
			types := ""
			if strings.Contains(schema, "instance-type") {
				types = "\n      instanceTypes: [\"m7i.*\", t3.medium]"
			}
			template := "apiVersion: holdfast.dev/v1\nkind: Template\nmetadata: {name: web}\nspec:\n  providers:\n    local:" + types +
				"\n      modules: [{name: m, source: ./m}]\n  variables: {properties: {x: " + schema + "}}\n"
			if got := resolveWith(t, template, "    x: "+written); got != want {
				t.Errorf("said is\n  %s\nand not\n  %s", got, want)
			}
		})
	}
}

// The versions in the table are allowed, or not, as it says; they continue from 1.4.2.
func TestUpgradeConstraints(t *testing.T) {
	t.Parallel()
	for _, row := range table(t, read(t, "templates.md"), "`upgrades`") {
		constraint := strings.Trim(unquote(row[0]), `"`)
		for _, word := range strings.Split(row[1], ", ") {
			version, no := strings.CutPrefix(word, "not ")
			if got := semver.Next("1.4.2", constraint, []string{version}); (got == version) == no {
				t.Errorf("%s allows %q of %s", constraint, got, version)
			}
		}
	}
}

// The other words of the page are those of the code.
func TestTemplateWords(t *testing.T) {
	t.Parallel()
	page := read(t, "templates.md")
	means := constantsOf(t, "..", func(name string) bool { return strings.HasPrefix(name, "OutputRole") }, "")
	if diff := cmp.Diff(means, firstCells(table(t, page, "Means"))); diff != "" {
		t.Errorf("the table of means is not that of template.go (-code +page):\n%s", diff)
	}
	source := ""
	for _, file := range []string{"../report/impact_comment.go", "../report/impact_refused.go"} {
		source += read(t, file)
	}
	for _, row := range table(t, page, "In the comment") {
		for _, words := range strings.Split(row[0], "VERSION") {
			if words = strings.TrimSpace(words); !strings.Contains(source, words) {
				t.Errorf("comments do not say %q", words)
			}
		}
	}
	files := constantsOf(t, "../templates", func(name string) bool { return strings.HasSuffix(name, "File") }, "")
	for _, name := range firstCells(table(t, page, "File")) {
		if !slices.Contains(files, name) && name != rootmodule.VariablesFile && name != "holdfast_secrets.json" {
			t.Errorf("there is no file %s in the root module", name)
		}
	}
	for _, key := range firstCells(table(t, page, "Key of a case")) {
		suite := "cases: [{name: a, cluster: {}, " + key + ": null}]"
		_, faults := authoring.ParseSuite("tests/a.yaml", ".", []byte(suite))
		if slices.ContainsFunc(faults, func(f holdfast.Fault) bool { return strings.Contains(f.Message, "unknown") }) {
			t.Errorf("%s is not a key of a case", key)
		}
	}
}

// Every command of templates that a page names exists.
func TestTemplateCommands(t *testing.T) {
	t.Parallel()
	source := ""
	files, err := filepath.Glob("../cmd/holdfast/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source += read(t, file)
	}
	for _, page := range pages(t) {
		for _, m := range regexp.MustCompile("holdfast template ([a-z]+)").FindAllStringSubmatch(page.text, -1) {
			if !regexp.MustCompile(`Use: +"` + m[1] + `[" ]`).MatchString(source) {
				t.Errorf("%s names %s, which does not exist", page.path, m[0])
			}
		}
	}
}

// The library that the page names is there.
func TestLibraryIsThere(t *testing.T) {
	t.Parallel()
	for _, m := range regexp.MustCompile("`(templates/library/[a-z]+)`").FindAllStringSubmatch(read(t, "templates.md"), -1) {
		if _, err := fs.Stat(os.DirFS(".."), filepath.Join(m[1], "template.yaml")); err != nil {
			t.Errorf("the page names %s: %v", m[1], err)
		}
	}
}
