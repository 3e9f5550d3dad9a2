package diff_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast/rollout"
	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/diff"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// schemaOf reads a schema from YAML.
func schemaOf(t testing.TB, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return out
}

func blueprintOf(schema map[string]any) templates.Blueprint {
	b := templates.Blueprint{Name: "t", Schema: schema, Providers: []templates.ProviderBlueprint{{Name: "local"}}}
	list, _ := schema["required"].([]any)
	for _, name := range list {
		b.Required = append(b.Required, name.(string))
	}
	return b
}

// lines are changes for people; the breaking ones begin with "!".
func lines(changes []rollout.TemplateChange) []string {
	var out []string
	for _, c := range changes {
		mark := ""
		if c.Breaking {
			mark = "! "
		}
		out = append(out, mark+c.About+" "+c.What)
	}
	return out
}

// accepts reports whether a template with that schema makes a root module of
// variables.
func accepts(t testing.TB, schema map[string]any, variables string) bool {
	t.Helper()
	text, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	tr := tree(map[string]string{
		"t/template.yaml": fmt.Sprintf("apiVersion: holdfast.dev/v1\nkind: Template\nmetadata: {name: t}\nspec:\n"+
			"  providers: {local: {modules: [{name: m, source: ./m}]}}\n  variables: %s\n", text),
		"t/m/main.tf": "",
	})
	docs, faults := document.ParseClusters("c.yaml", []byte("apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: c}\nspec:\n"+
		"  {project: p, environment: e, template: {path: t}, variables: "+variables+"}\n"))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	_, faults, err = templates.NewResolver(nil).Resolve(t.Context(), tr, docs[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		if !strings.HasPrefix(f.File, "c.yaml") {
			t.Fatalf("the template is at fault: %v", f)
		}
	}
	return len(faults) == 0
}

// Each change of the schema is told, and each that is told to be breaking has a
// document that shows it.
func TestDiffVariables(t *testing.T) {
	t.Parallel()
	x := func(property string) string {
		return "{type: object, additionalProperties: false, properties: {x: " + property + "}}"
	}
	for name, tc := range map[string]struct {
		from, to string
		want     []string
		broken   string // variables that only from accepts
		kept     string // variables that both accept
	}{
		"nothing":     {from: x("{type: string}"), to: x("{type: string}")},
		"description": {from: x("{type: string}"), to: x("{type: string, description: words}"), want: []string{"variable x has a new description"}},
		"default": {
			from: x("{type: string, default: a}"), to: x("{type: string, default: b}"),
			want: []string{`variable x now defaults to "b", not "a"`},
		},
		"variable removed": {
			from: x("{type: string}"), to: "{type: object, additionalProperties: false}",
			want: []string{"! variable x is gone"}, broken: "{x: a}",
		},
		"variable added": {
			from: "{type: object, additionalProperties: false}", to: x("{type: integer, default: 3}"),
			want: []string{"variable x is new, by default 3"},
		},
		"required variable added": {
			from: "{type: object, additionalProperties: false}", to: "{required: [x], properties: {x: {type: integer}}}",
			want: []string{"! variable x is new, and required"}, broken: "{}",
		},
		"required now": {
			from: "{properties: {x: {type: integer}}}", to: "{required: [x], properties: {x: {type: integer}}}",
			want: []string{"! variable x is now required"}, broken: "{}",
		},
		"required now, with a default, which JSON Schema does not fill in": {
			from: "{properties: {x: {type: integer, default: 1}}}", to: "{required: [x], properties: {x: {type: integer, default: 1}}}",
			want: []string{"! variable x is now required"}, broken: "{}",
		},
		"required, and new, and a secret that is somewhere": {
			from: "{properties: {y: {}}}", to: "{required: [x], properties: {y: {}, x: {type: string, writeOnly: true, default: {secret: {env: X}}}}}",
			want: []string{`variable x is new, by default {"secret":{"env":"X"}}`}, kept: "{y: 1}",
		},
		"a secret that is nowhere now": {
			from: "{required: [x], properties: {x: {type: string, writeOnly: true, default: {secret: {env: X}}}}}", to: "{required: [x], properties: {x: {type: string, writeOnly: true}}}",
			want: []string{"! variable x must now be set: it no longer has a default", `variable x no longer has a default; it was {"secret":{"env":"X"}}`}, broken: "{}",
		},
		"optional now": {
			from: "{required: [x], properties: {x: {type: integer}}}", to: "{properties: {x: {type: integer}}}",
			want: []string{"variable x is now optional"},
		},
		"secret now": {
			from: x("{type: string}"), to: x("{type: string, writeOnly: true}"),
			want: []string{"! variable x is now secret: documents must refer to it, not contain it"},
		},
		"type":         {from: x("{type: string}"), to: x("{type: integer}"), want: []string{"! variable x must now be an integer, not a string"}, broken: "{x: a}"},
		"type wider":   {from: x("{type: integer}"), to: x("{type: number}"), want: []string{"variable x may now be a number, not only an integer"}},
		"type smaller": {from: x("{type: number}"), to: x("{type: integer}"), want: []string{"! variable x must now be an integer, not a number"}, broken: "{x: 1.5}"},
		"type at all":  {from: x("{}"), to: x("{type: string}"), want: []string{"! variable x must now be a string"}, broken: "{x: 1}"},
		"enum": {
			from: x("{enum: [a, b]}"), to: x("{enum: [b, c]}"),
			want: []string{`! variable x no longer allows "a"`, `variable x allows "c", too`}, broken: "{x: a}",
		},
		"enum at all":    {from: x("{type: string}"), to: x("{type: string, enum: [b]}"), want: []string{`! variable x now allows only "b"`}, broken: "{x: a}"},
		"enum no more":   {from: x("{enum: [a]}"), to: x("{}"), want: []string{`variable x may now have other values than "a"`}},
		"maximum lower":  {from: x("{maximum: 100}"), to: x("{maximum: 50}"), want: []string{"! variable x allows at most 50, not 100"}, broken: "{x: 70}"},
		"maximum higher": {from: x("{maximum: 50}"), to: x("{maximum: 100.0}"), want: []string{"variable x allows at most 100, not 50"}},
		"same number":    {from: x("{maximum: 50}"), to: x("{maximum: 50.0}")},
		"minimum higher": {from: x("{minimum: 1}"), to: x("{minimum: 3}"), want: []string{"! variable x must be at least 3, not 1"}, broken: "{x: 2}"},
		"minimum gone":   {from: x("{minimum: 1}"), to: x("{}"), want: []string{"variable x is free of the limit: must be at least 1"}},
		"length":         {from: x("{type: string}"), to: x("{type: string, maxLength: 2}"), want: []string{"! variable x now allows at most 2 characters"}, broken: "{x: abc}"},
		"pattern":        {from: x("{pattern: ^a}"), to: x("{pattern: ^b}"), want: []string{"! variable x must match ^b, not ^a"}, broken: "{x: a}"},
		"multiple":       {from: x("{multipleOf: 2}"), to: x("{multipleOf: 4}"), want: []string{"! variable x must now be a multiple of 4"}, broken: "{x: 2}"},
		"multiple wider": {from: x("{multipleOf: 4}"), to: x("{multipleOf: 2}"), want: []string{"variable x must now be a multiple of 2"}},
		"unique":         {from: x("{type: array}"), to: x("{type: array, uniqueItems: true}"), want: []string{"! variable x may no longer have an item twice"}, broken: "{x: [1, 1]}"},
		"items": {
			from: x("{type: array, items: {type: integer}}"), to: x("{type: array, items: {type: integer, minimum: 3}}"),
			want: []string{"! variable x[] must now be at least 3"}, broken: "{x: [1]}",
		},
		"nested required": {
			from: x("{type: object, properties: {a: {}, b: {}}}"), to: x("{type: object, required: [a], properties: {a: {}, b: {}}}"),
			want: []string{"! variable x.a is now required"}, broken: "{x: {b: 1}}",
		},
		"nested new and required": {
			from: x("{type: object}"), to: x("{type: object, required: [a], properties: {a: {}}}"),
			want: []string{"! variable x.a is new, and required"}, broken: "{x: {}}",
		},
		"nested gone and closed": {
			from: x("{type: object, additionalProperties: false, properties: {a: {}}}"), to: x("{type: object, additionalProperties: false}"),
			want: []string{"! variable x.a is gone"}, broken: "{x: {a: 1}}",
		},
		"nested closed": {
			from: x("{type: object}"), to: x("{type: object, additionalProperties: false}"),
			want: []string{"! variable x now refuses entries that are not declared"}, broken: "{x: {a: 1}}",
		},
		"nested values": {
			from: x("{type: object, additionalProperties: {type: string}}"), to: x("{type: object, additionalProperties: {type: boolean}}"),
			want: []string{"! variable x.* must now be a boolean, not a string"}, broken: "{x: {a: b}}",
		},
		"closed": {
			from: "{additionalProperties: true}", to: "{additionalProperties: false}",
			want: []string{"! variables that are not declared are now refused"}, broken: "{y: 1}",
		},
		"condition": {
			from: "{properties: {x: {}, y: {}}}", to: "{properties: {x: {}, y: {}}, dependentRequired: {x: [y]}}",
			want: []string{"! variables have a new condition, in dependentRequired"}, broken: "{x: 1}",
		},
		"condition gone":       {from: "{if: {required: [x]}, then: {required: [y]}, properties: {x: {}, y: {}}}", to: "{properties: {x: {}, y: {}}}", want: []string{"variables no longer have a condition in if/then/else"}},
		"words in a condition": {from: "{allOf: [{description: a}]}", to: "{allOf: [{description: b}]}"},
		"a name that is a keyword": {
			from: "{allOf: [{properties: {default: {minimum: 1}}}], properties: {default: {}}}",
			to:   "{allOf: [{properties: {default: {minimum: 2}}}], properties: {default: {}}}",
			want: []string{"! variables have a different condition in allOf"}, broken: "{default: 1}",
		},
		"reference": {
			from: "{properties: {x: {$ref: '#/$defs/a'}}, $defs: {a: {minimum: 1}}}", to: "{properties: {x: {$ref: '#/$defs/b'}}, $defs: {b: {minimum: 2}}}",
			want: []string{"! variable x must be at least 2, not 1"}, broken: "{x: 1}",
		},
		"reference inside of what it refers to": {
			from: "{properties: {x: {$ref: '#/$defs/a'}}, $defs: {a: {items: {$ref: '#/$defs/a'}, minimum: 1}}}",
			to:   "{properties: {x: {$ref: '#/$defs/a'}}, $defs: {a: {items: {$ref: '#/$defs/a'}, minimum: 2}}}",
			want: []string{"! variable x must be at least 2, not 1"}, broken: "{x: [1]}",
		},
		"reference with more": {
			from: "{properties: {x: {$ref: '#/$defs/a', maximum: 9}}, $defs: {a: {maximum: 5}}}",
			to:   "{properties: {x: {$ref: '#/$defs/a', maximum: 9}}, $defs: {a: {maximum: 4}}}",
			want: []string{"! variable x has a different condition in allOf"}, broken: "{x: 5}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := schemaOf(t, tc.from), schemaOf(t, tc.to)
			changes := diff.Templates(blueprintOf(from), blueprintOf(to))
			if diff := cmp.Diff(tc.want, lines(changes)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			for _, schema := range []map[string]any{from, to} {
				if got := diff.Templates(blueprintOf(schema), blueprintOf(schema)); len(got) > 0 {
					t.Errorf("a schema differs from itself: %v", lines(got))
				}
			}
			if tc.kept != "" && (!accepts(t, from, tc.kept) || !accepts(t, to, tc.kept)) {
				t.Errorf("%s is not accepted by both", tc.kept)
			}
			if tc.broken == "" {
				return
			}
			if !accepts(t, from, tc.broken) || accepts(t, to, tc.broken) {
				t.Errorf("%s does not show that the change is breaking", tc.broken)
			}
		})
	}
}

// Whatever the change: if a document that was accepted is refused, it is told to
// be breaking. And nothing differs from itself.
func TestDiffMissesNothingBreaking(t *testing.T) {
	t.Parallel()
	chance := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same cases each time
	var values []any
	for _, text := range []string{`1`, `2`, `3.5`, `-4`, `"a"`, `"ab"`, `"b"`, `true`, `null`, `[]`, `[1]`, `[1,1]`, `["a"]`, `{}`, `{"a":1}`, `{"a":"a","b":2}`, `{"c":1}`} {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	compiled := func(schema map[string]any) *jsonschema.Schema {
		c := jsonschema.NewCompiler()
		c.DefaultDraft(jsonschema.Draft2020)
		if err := c.AddResource("x:///x", schema); err != nil {
			t.Fatal(err)
		}
		s, err := c.Compile("x:///x")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	broken := 0
	for range 3_000 {
		from, to := randomSchema(chance, 2), randomSchema(chance, 2)
		document := func(s any) map[string]any {
			return map[string]any{"additionalProperties": false, "properties": map[string]any{"x": s}}
		}
		if got := diff.Templates(blueprintOf(document(from)), blueprintOf(document(from))); len(got) > 0 {
			t.Fatalf("a schema differs from itself: %v", lines(got))
		}
		changes := diff.Templates(blueprintOf(document(from)), blueprintOf(document(to)))
		breaking := false
		for _, c := range changes {
			// An entry that is declared now was free in objects that allow any: that
			// somebody used its name for something else is not expected.
			breaking = breaking || c.Breaking || c.What == "is new, and optional"
		}
		was, now := compiled(document(from)), compiled(document(to))
		for _, v := range values {
			instance := map[string]any{"x": v}
			if was.Validate(instance) == nil && now.Validate(instance) != nil {
				broken++
				if !breaking {
					t.Fatalf("%v is refused now, and nothing is breaking in %v\nfrom %v\nto   %v", v, lines(changes), from, to)
				}
			}
		}
	}
	if broken < 1000 {
		t.Errorf("only %d documents were broken: the cases say little", broken)
	}
}

func randomSchema(chance *rand.Rand, depth int) map[string]any {
	out := map[string]any{}
	keywords := []func(){
		func() {
			out["type"] = []any{"string", "integer", "number", "boolean", "array", "object", []any{"string", "integer"}}[chance.IntN(7)]
		},
		func() { out["minimum"] = chance.IntN(4) },
		func() { out["maximum"] = chance.IntN(4) },
		func() { out["exclusiveMinimum"] = chance.IntN(4) },
		func() { out["minLength"] = chance.IntN(3) },
		func() { out["maxItems"] = chance.IntN(3) },
		func() { out["maxProperties"] = chance.IntN(3) },
		func() { out["pattern"] = []any{"^a", "b$"}[chance.IntN(2)] },
		func() { out["enum"] = [][]any{{"a", 1}, {"a", "b"}, {"ab", 2, 3.5}}[chance.IntN(3)] },
		func() { out["const"] = []any{"a", 1}[chance.IntN(2)] },
		func() { out["multipleOf"] = 1 + chance.IntN(3) },
		func() { out["uniqueItems"] = true },
		func() { out["required"] = [][]any{{"a"}, {"b"}, {"a", "b"}}[chance.IntN(3)] },
		func() { out["additionalProperties"] = false },
	}
	if depth > 0 {
		below := func() map[string]any { return randomSchema(chance, depth-1) }
		keywords = append(
			keywords,
			func() { out["items"] = below() },
			func() { out["additionalProperties"] = below() },
			func() { out["properties"] = map[string]any{"a": below(), "b": below()} },
			func() { out["anyOf"] = []any{below(), below()} },
			func() { out["not"] = below() },
			func() { out["if"], out["then"] = below(), below() },
			func() { out["patternProperties"] = map[string]any{"^a": below()} },
			func() { out["prefixItems"] = []any{below()} },
		)
	}
	for range 1 + chance.IntN(3) {
		keywords[chance.IntN(len(keywords))]()
	}
	return out
}
