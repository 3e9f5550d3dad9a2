package authoring_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast/templates/authoring"
	"github.com/holdfast-dev/holdfast/templates/decode"
	"github.com/holdfast-dev/holdfast/templates/diff"
	"github.com/holdfast-dev/holdfast/templates/document"
)

func editorSchema(t testing.TB, drafts ...*authoring.Draft) (map[string]any, *jsonschema.Schema) {
	t.Helper()
	data, err := authoring.EditorSchema(drafts)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("holdfast.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("holdfast.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return doc.(map[string]any), schema
}

// instance reads a document as an editor does.
func instance(t testing.TB, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	v, err = jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// mappings are where a cluster's document has mappings with keys that are known:
// each with what else its object must have to be read.
func mappings() map[string]string {
	return map[string]string{
		"":                     "{KEYS, apiVersion: holdfast.dev/v1, kind: Cluster, metadata: {name: a}, spec: {}}",
		"metadata":             "{apiVersion: holdfast.dev/v1, kind: Cluster, metadata: {KEYS}, spec: {}}",
		"spec":                 "{apiVersion: holdfast.dev/v1, kind: Cluster, metadata: {name: a}, spec: {KEYS}}",
		"spec.template":        spec("template: {KEYS}"),
		"spec.module":          spec("module: {KEYS}"),
		"spec.engine":          spec("engine: {KEYS}"),
		"spec.drift":           spec("drift: {KEYS}"),
		"spec.drift.ignore.0":  spec("drift: {ignore: [{KEYS}]}"),
		"spec.apply":           spec("apply: {KEYS}"),
		"spec.apply.windows.0": spec("apply: {windows: [{KEYS}]}"),
		"spec.deletion":        spec("deletion: {KEYS}"),
		"spec.limits":          spec("limits: {KEYS}"),
	}
}

func spec(text string) string {
	return "{apiVersion: holdfast.dev/v1, kind: Cluster, metadata: {name: a}, spec: {" + text + "}}"
}

var (
	unknownKey = regexp.MustCompile(`^unknown key "(.*)" in `)
	counted    = regexp.MustCompile(`\((\d+) in all\)`)
)

// unknown returns the keys that Holdfast does not know in a document, with what
// it says that there are.
func unknown(text string) map[string]string {
	_, faults := document.ParseClusters("c.yaml", []byte(text))
	out := map[string]string{}
	for _, f := range faults {
		if m := unknownKey.FindStringSubmatch(f.Message); m != nil {
			out[m[1]] = f.Hint
		}
	}
	return out
}

// schemaAt is the schema of what stands at a path.
func schemaAt(root map[string]any, dotted string) map[string]any {
	at := root
	for word := range strings.SplitSeq(dotted, ".") {
		if word == "" {
			return at
		}
		if _, err := strconv.Atoi(word); err == nil {
			at, _ = at["items"].(map[string]any)
			continue
		}
		properties, _ := at["properties"].(map[string]any)
		at, _ = properties[word].(map[string]any)
	}
	return at
}

// The schema knows the keys that Holdfast knows, and no other.
func TestEditorSchemaKeys(t *testing.T) {
	t.Parallel()
	root, _ := editorSchema(t)
	const stranger = "qqqqqqqqqqqqqqqqqqqq"
	known := 0
	for at, document := range mappings() {
		schema := schemaAt(root, at)
		properties, _ := schema["properties"].(map[string]any)
		if schema["additionalProperties"] != false || len(properties) == 0 {
			t.Errorf("%q takes any key", at)
			continue
		}
		keys := slices.Sorted(maps.Keys(properties))
		known += len(keys)
		var pairs []string
		for _, key := range keys {
			if !slices.Contains([]string{"apiVersion", "kind", "metadata", "spec"}, key) || at != "" {
				pairs = append(pairs, key+": x")
			}
		}
		for key := range unknown(strings.Replace(document, "KEYS", strings.Join(append(pairs, "z: 1"), ", "), 1)) {
			if key != "z" {
				t.Errorf("Holdfast does not know %q in %q", key, at)
			}
		}
		hint := unknown(strings.Replace(document, "KEYS", stranger+": 1", 1))[stranger]
		switch m := counted.FindStringSubmatch(hint); {
		case m != nil: // it knows so many that it does not list all
			if m[1] != strconv.Itoa(len(keys)) {
				t.Errorf("%q: the schema has %d keys, Holdfast %s", at, len(keys), m[1])
			}
		case len(keys) == 1:
			if hint != "the only one is "+keys[0] {
				t.Errorf("%q: the schema has %v, Holdfast says %q", at, keys, hint)
			}
		default:
			if diff := cmp.Diff("one of "+strings.Join(keys, ", "), hint); diff != "" {
				t.Errorf("%q (-schema +Holdfast):\n%s", at, diff)
			}
		}
	}
	if known < 35 {
		t.Errorf("only %d keys were looked at", known)
	}
}

// Editors see nothing wrong with the examples of the library, of the project and
// of a new template.
func TestEditorSchemaTakesExamples(t *testing.T) {
	t.Parallel()
	library := open(t, diskTree(t, "../library/kubernetes"), ".")
	_, schema := editorSchema(t, library)
	checked := 0
	for _, e := range library.Examples {
		checked++
		text := strings.Replace(string(e.Text), "{path: ..}", "{name: kubernetes, version: 1.0.0}", 1)
		if err := schema.Validate(instance(t, text)); err != nil {
			t.Errorf("%s: %v", e.File, err)
		}
	}
	_, plain := editorSchema(t)
	for _, dir := range []string{"demo", "fleet", "module"} {
		tree := diskTree(t, "../../examples/"+dir)
		for name, file := range tree.MapFS {
			if !decode.IsCluster(name, file.Data) || path.Base(name) == "template.yaml" {
				continue
			}
			checked++
			if err := plain.Validate(instance(t, string(file.Data))); err != nil {
				t.Errorf("examples/%s/%s: %v", dir, name, err)
			}
		}
	}
	fresh := open(t, below("templates/web", scaffolded(t, "web", "aws", "local")), "templates/web")
	_, schema = editorSchema(t, fresh)
	for _, e := range fresh.Examples {
		checked++
		text := strings.Replace(string(e.Text), "{path: ..}", "{path: ../templates/web}", 1)
		if err := schema.Validate(instance(t, text)); err != nil {
			t.Errorf("%s: %v", e.File, err)
		}
	}
	if checked < 18 {
		t.Errorf("only %d examples were found", checked)
	}
}

const richTemplate = `apiVersion: holdfast.dev/v1
kind: Template
metadata: {name: rich, version: 1.0.0}
spec:
  providers:
    aws:
      regions: [eu-west-1]
      instanceTypes: ["m7i.*", t3.medium]
      defaults: {size: t3.medium}
      modules: [{name: m, source: ./m}]
    local:
      modules: [{name: m, source: ./m}]
  variables:
    type: object
    required: [size, number]
    properties:
      size: {type: string, format: instance-type}
      number: {type: integer, minimum: 1}
      password: {type: string, writeOnly: true, minLength: 12}
      pools: {type: array, items: {$ref: "#/$defs/pool", description: A pool.}}
      pair: {type: array, prefixItems: [{type: string}, {type: integer}], items: false}
      a: {type: string}
      b: {type: string}
    dependentRequired: {a: [b]}
    $defs:
      pool: {type: object, additionalProperties: false, required: [size], properties: {size: {type: string, format: instance-type}, next: {$ref: "#/$defs/pool"}}}
`

// What is wrong with the variables of a cluster is seen in the editor, for the
// template that it is made from.
func TestEditorSchemaOfTemplates(t *testing.T) {
	t.Parallel()
	rich := open(t, below("templates/rich", map[string][]byte{
		"template.yaml": []byte(richTemplate), "m/main.tf": []byte("# nothing\n"),
	}), "templates/rich")
	_, schema := editorSchema(t, rich, open(t, below("w", scaffolded(t, "web")), "w"))
	for name, tc := range map[string]struct {
		spec  string // after project and environment
		valid bool
	}{
		"by name":                         {"template: {name: rich, version: 1.0.0}, provider: local, variables: {number: 1, size: x}", true},
		"by path":                         {"template: {path: ../templates/rich/}, provider: local, variables: {number: 1, size: x}", true},
		"another template":                {"template: {name: other, version: 1.0.0}, variables: {anything: 1}", true},
		"a path that ends alike":          {"template: {path: ../templates/enrich}, variables: {anything: 1}", true},
		"a default of the provider":       {"template: {name: rich, version: 1.0.0}, provider: aws, region: eu-west-1, variables: {number: 1}", true},
		"no variables":                    {"template: {name: rich, version: 1.0.0}, provider: aws, region: eu-west-1", false},
		"no default":                      {"template: {name: rich, version: 1.0.0}, provider: local, variables: {number: 1}", false},
		"no provider":                     {"template: {name: rich, version: 1.0.0}, variables: {number: 1, size: x}", false},
		"an unknown provider":             {"template: {name: rich, version: 1.0.0}, provider: gcp, variables: {number: 1}", false},
		"an unknown region":               {"template: {name: rich, version: 1.0.0}, provider: aws, region: eu-west-2, variables: {number: 1}", false},
		"no region":                       {"template: {name: rich, version: 1.0.0}, provider: aws, variables: {number: 1}", false},
		"an unknown variable":             {"template: {path: x/rich}, provider: aws, region: eu-west-1, variables: {number: 1, nubmer: 2}", false},
		"a wrong type":                    {"template: {path: rich}, provider: aws, region: eu-west-1, variables: {number: one}", false},
		"a wrong value":                   {"template: {path: rich}, provider: aws, region: eu-west-1, variables: {number: 0}", false},
		"a machine in full":               {"template: {path: rich}, provider: aws, region: eu-west-1, variables: {number: 1, size: t3.medium}", true},
		"a machine of a family":           {"template: {path: rich}, provider: aws, region: eu-west-1, variables: {number: 1, size: m7i.large}", true},
		"an unknown machine":              {"template: {path: rich}, provider: aws, region: eu-west-1, variables: {number: 1, size: m7a.large}", false},
		"a machine behind a reference":    {"template: {path: rich}, provider: aws, region: eu-west-1, variables: {number: 1, pools: [{size: t3.medium, next: {size: m7i.x}}]}", true},
		"a wrong one there":               {"template: {path: rich}, provider: aws, region: eu-west-1, variables: {number: 1, pools: [{size: t3.medium, next: {size: huge}}]}", false},
		"any machine elsewhere":           {"template: {path: rich}, provider: local, variables: {number: 1, size: huge}", true},
		"a secret":                        {"template: {path: rich}, provider: local, variables: {number: 1, size: x, password: {secret: {env: PW}}}", true},
		"a secret in a store":             {"template: {path: rich}, provider: local, variables: {number: 1, size: x, password: {secret: {store: vault, key: a}}}", true},
		"a secret in two places":          {"template: {path: rich}, provider: local, variables: {number: 1, size: x, password: {secret: {env: PW, file: /x}}}", false},
		"a secret's value":                {"template: {path: rich}, provider: local, variables: {number: 1, size: x, password: a-long-password}", false},
		"a pair":                          {"template: {path: rich}, provider: local, variables: {number: 1, size: x, pair: [a, 1]}", true},
		"a pair the other way":            {"template: {path: rich}, provider: local, variables: {number: 1, size: x, pair: [1, a]}", false},
		"a pair of three":                 {"template: {path: rich}, provider: local, variables: {number: 1, size: x, pair: [a, 1, 2]}", false},
		"one without the other":           {"template: {path: rich}, provider: local, variables: {number: 1, size: x, a: x}", false},
		"one with the other":              {"template: {path: rich}, provider: local, variables: {number: 1, size: x, a: x, b: x}", true},
		"the only provider goes unsaid":   {"template: {name: web, version: 0.1.0}, variables: {node_count: 3}", true},
		"and its variables are looked at": {"template: {name: web, version: 0.1.0}, variables: {node_count: 300}", false},
		"a misspelt key":                  {"template: {name: web, version: 0.1.0}, dependOn: [x]", false},
		"template and module":             {"template: {name: other, version: 1.0.0}, module: {path: x}", false},
		"neither":                         {"provider: aws", false},
		"a version that is a constraint":  {`template: {name: other, version: "~> 1.0"}`, false},
		"a backend that lacks something":  {"module: {path: x}, state: {type: s3, key: k}", false},
		"a backend":                       {"module: {path: x}, state: {type: s3, bucket: b, key: k}", true},
	} {
		text := "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: a}\nspec: {project: p, environment: e, " + tc.spec + "}\n"
		if err := schema.Validate(instance(t, text)); (err == nil) != tc.valid {
			t.Errorf("%s: %v, want valid %v\n%s", name, err, tc.valid, text)
		}
		// Where the editor is content or not, Holdfast is, too.
		docs, faults := document.ParseClusters("c.yaml", []byte(text))
		if len(faults) == 0 && strings.Contains(tc.spec, "rich") && !strings.Contains(tc.spec, "enrich") {
			_, found, err := rich.ResolveAs(t.Context(), docs[0])
			if err != nil {
				t.Fatal(err)
			}
			faults = append(faults, found...)
			if (len(faults) == 0) != tc.valid {
				t.Errorf("%s: Holdfast says %v", name, faults)
			}
		}
	}
}

// The same drafts give the same bytes.
func TestEditorSchemaIsStable(t *testing.T) {
	t.Parallel()
	d := open(t, diskTree(t, "../library/kubernetes"), ".")
	if changes := diff.Templates(d.Blueprint, d.Blueprint); len(changes) > 0 {
		t.Errorf("the library differs from itself: %v", changes)
	}
	first, err := authoring.EditorSchema([]*authoring.Draft{d})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		again, err := authoring.EditorSchema([]*authoring.Draft{d})
		if err != nil || !bytes.Equal(first, again) {
			t.Fatal("two schemas of one template differ", err)
		}
	}
}

// TestEditorSchemaLeavesOutPatternsOfGo: an editor that cannot compile a regular
// expression refuses the whole schema.
func TestEditorSchemaLeavesOutPatternsOfGo(t *testing.T) {
	t.Parallel()
	var variables strings.Builder
	for i, pattern := range []string{`(?i)^goes$`, `\Agoes`, `goes\z`, `^[[:alpha:]]goes`, `\Qgoes\E`, `(?P<x>goes)`, `\x{61}goes`, `goes\_`, `goes\@`} {
		variables.WriteString("      v" + strconv.Itoa(i) + ": {type: string, pattern: '" + pattern + "'}\n")
	}
	d := open(t, below("web", map[string][]byte{
		"m/main.tf": []byte("# nothing\n"),
		"template.yaml": []byte("apiVersion: holdfast.dev/v1\nkind: Template\nmetadata: {name: web}\nspec:\n  providers: {local: {modules: [{name: m, source: ./m}]}}\n" +
			"  variables:\n    type: object\n    properties:\n" + variables.String() +
			"      stays: {type: string, pattern: '^stays\\.(?:a|b)\\d+[\\w-]\\$$'}\n" +
			"      keys: {type: object, additionalProperties: false, patternProperties: {'(?i)^goes': {type: string}, '^stays': {}}}\n"),
	}), "web")
	doc, schema := editorSchema(t, d)
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "goes") || !strings.Contains(string(text), `"^stays\\.(?:a|b)\\d+[\\w-]\\$$"`) || !strings.Contains(string(text), `"^stays":`) {
		t.Errorf("%s", text)
	}
	var cluster any
	if err := yaml.Unmarshal([]byte("apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: a}\nspec: {project: p, environment: e, template: {path: ../web}, variables: {keys: {Goes: a}}}\n"), &cluster); err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(cluster); err != nil {
		t.Errorf("what a pattern of Go allows is refused: %v", err)
	}
}
