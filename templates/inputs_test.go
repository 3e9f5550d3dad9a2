package templates_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/templates"
)

const inputsTemplate = `apiVersion: holdfast.dev/v1
kind: Template
metadata: {name: t}
spec:
  providers:
    p:
      modules:
        - name: m
          source: ./m
          inputs: {x: %s}
        - {name: other, source: ./other}
  variables:
    type: object
    required: [s, i, l]
    properties:
      s: {type: string}
      i: {type: integer}
      n: {type: number, default: 1}
      b: {type: boolean, default: true}
      e: {enum: [a, b], default: a}
      l: {type: array, items: {type: string}}
      untyped: {default: 1}
      tags: {type: object, additionalProperties: {type: string}, default: {}}
      counts: {type: object, additionalProperties: {type: integer}, default: {}}
      maybe: {type: string}
      nothing: {type: [string, "null"], default: null}
      pool:
        type: object
        default: {name: a}
        additionalProperties: false
        required: [name]
        properties: {name: {type: string}, count: {type: integer}, labels: {type: object, additionalProperties: {type: string}}}
      pools: {type: array, default: [], items: {$ref: "#/properties/pool"}}
      open: {type: object, default: {}, properties: {name: {type: string}}}
`

// TestInputTypes: what the engine would refuse for every value is a fault of the
// template; what it may accept is not.
func TestInputTypes(t *testing.T) {
	t.Parallel()

	const poolType = "object({name = string, count = optional(number), labels = optional(map(string), {})})"
	for _, tc := range []struct {
		input, kind, want string // kind is of the module's variable
	}{
		{`"${var.s}"`, "string", ""},
		{`"${var.s}"`, "any", ""},
		{`"${var.s}"`, "number", `module "m" wants x as number, and variable "s" is a string`},
		{`"${var.s}"`, "bool", `module "m" wants x as bool, and variable "s" is a string`},
		{`"${var.s}"`, "list(string)", `module "m" wants x as list(string), and variable "s" is a string`},
		{`"${var.s}"`, poolType, `module "m" wants x as an object with name, and variable "s" is a string`},
		{`"${var.i}"`, "string", ""},
		{`"${var.i}"`, "number", ""},
		{`"${var.i}"`, "bool", `module "m" wants x as bool, and variable "i" is a number`},
		{`"${var.n}"`, "number", ""},
		{`"${var.b}"`, "string", ""},
		{`"${var.b}"`, "bool", ""},
		{`"${var.b}"`, "number", `module "m" wants x as number, and variable "b" is true or false`},
		{`"${var.e}"`, "string", ""},
		{`"${var.e}"`, "number", `module "m" wants x as number, and variable "e" is a string`},
		{`"${var.l}"`, "list(string)", ""},
		{`"${var.l}"`, "set(string)", ""},
		{`"${var.l}"`, "list(any)", ""},
		{`"${var.l}"`, "list", ""},
		{`"${var.l}"`, "tuple([string])", ""},
		{`"${var.l}"`, "list(number)", `module "m" wants x[] as number, and variable "l" has a string there`},
		{`"${var.l}"`, "string", `module "m" wants x as string, and variable "l" is a list`},
		{`"${var.l}"`, "map(string)", `module "m" wants x as map(string), and variable "l" is a list`},
		{`"${var.l[0]}"`, "number", `module "m" wants x as number, and variable "l[0]" is a string`},
		{`"${var.untyped}"`, "list(number)", ""},
		{`"${var.tags}"`, "map(string)", ""},
		{`"${var.tags}"`, "map(any)", ""},
		{`"${var.tags}"`, "object({a = string})", ""},
		{`"${var.tags}"`, "map(number)", `module "m" wants x.* as number, and variable "tags" has a string there`},
		{`"${var.tags}"`, "list(string)", `module "m" wants x as list(string), and variable "tags" is a mapping`},
		{`"${var.tags.team}"`, "string", ""},
		{`"${var.counts}"`, "map(string)", ""},
		{`"${var.counts.a}"`, "bool", `module "m" wants x as bool, and variable "counts.a" is a number`},
		{`"${var.maybe}"`, "string", ""},
		{`"${var.nothing}"`, "string", ""},
		{`"${var.pool}"`, poolType, ""},
		{`"${var.pool}"`, "object({name = string, size = optional(number)})", ""},
		{`"${var.pool}"`, "object({name = string, size = number})", `module "m" wants x as an object with name and size, and variable "pool" is a mapping without size`},
		{`"${var.pool}"`, "object({name = string, count = bool})", `module "m" wants x.count as bool, and variable "pool" has a number there`},
		{`"${var.pool}"`, "map(string)", `module "m" wants x.labels as string, and variable "pool" has a mapping there`},
		{`"${var.pools}"`, "list(" + poolType + ")", ""},
		{`"${var.pools}"`, "list(object({name = number}))", `module "m" wants x[].name as number, and variable "pools" has a string there`},
		{`"${var.pools[0].count}"`, "number", ""},
		{`"${var.open}"`, "object({name = string, size = number})", ""},
		{`"${var.open}"`, "object({name = number})", `module "m" wants x.name as number, and variable "open" has a string there`},
		{`"${var.open.size}"`, "number", ""},
		{`"${module.other.o}"`, "number", ""},
		{`"${cluster.name}"`, "string", ""},
		{`"${cluster.name}"`, "number", `module "m" wants x as number, and cluster.name is a string`},
		{`"a-${var.i}"`, "string", ""},
		{`"${var.i}0"`, "number", ""},
		{`"a-${var.i}"`, "list(string)", `module "m" wants x as list(string), and this is a text`},
		{`3`, "number", ""},
		{`"3"`, "number", ""},
		{`3`, "string", ""},
		{`"true"`, "bool", ""},
		{`true`, "string", ""},
		{`null`, "number", ""},
		{`many`, "number", `module "m" wants x as number, and this is "many"`},
		{`1`, "bool", `module "m" wants x as bool, and this is 1`},
		{`[a, "${var.s}"]`, "list(string)", ""},
		{`[a, "${var.s}"]`, "list(number)", `module "m" wants x[] as number, and this is "a"`},
		{`[1, "${var.s}"]`, "list(number)", `module "m" wants x[] as number, and variable "s" is a string`},
		{`[1, a]`, "tuple([number, string])", ""},
		{`[1]`, "tuple([number, string])", `module "m" wants x as tuple([number,string]), and this has 1 item`},
		{`{a: 1}`, "map(number)", ""},
		{`{a: 1}`, "list(number)", `module "m" wants x as list(number), and this is a mapping`},
		{`{a: "${var.s}"}`, "map(number)", `module "m" wants x.a as number, and variable "s" is a string`},
		{`{name: a, count: "${var.i}"}`, poolType, ""},
		{`{count: 1}`, poolType, `module "m" wants x as an object with name, and this has no name`},
		{`{name: a, count: x}`, poolType, `module "m" wants x.count as number, and this is "x"`},
		{`{name: a, labels: {a: [1]}}`, poolType, `module "m" wants x.labels.a as string, and this is a list`},
		{`{name: a, more: 1}`, poolType, ""},
		{`[1]`, "any", ""},
		{`"${var.s}"`, "nonsense", ""}, // the engine says so
	} {
		t.Run(tc.input+" as "+tc.kind, func(t *testing.T) {
			t.Parallel()
			text := fmt.Sprintf(inputsTemplate, tc.input)
			files := map[string]string{
				"template.yaml": text, "other/main.tf": "output \"o\" { value = 1 }\n",
				"m/main.tf": "variable \"x\" {\n  type = " + tc.kind + "\n}\n",
			}
			_, faults, err := templates.NewResolver(nil).Load(tree(files), ".")
			if err != nil {
				t.Fatal(err)
			}
			want := tc.want
			if want != "" {
				want = "template.yaml:10:20: " + want
			}
			if faults.Error() != want {
				t.Errorf("faults:\n%v\nwant:\n%s", faults, want)
			}
		})
	}
}

// TestNullOfAVariableThatIsLeftOut: a module that takes no null and has no
// default cannot be called with a variable that may be left out.
func TestNullOfAVariableThatIsLeftOut(t *testing.T) {
	t.Parallel()

	const fault = `template.yaml:10:20: module "m" does not accept null as x, and variable "maybe" is null when it is left out (give the variable a default, or require it)`
	for name, tc := range map[string]struct{ module, old, replacement, want string }{
		"refused":       {module: "nullable = false", want: fault},
		"default":       {module: "nullable = false\n  default = 1"},
		"nullable":      {module: "nullable = true"},
		"required":      {module: "nullable = false", old: "required: [s,", replacement: "required: [maybe, s,"},
		"has a default": {module: "nullable = false", old: "maybe: {type: string}", replacement: "maybe: {type: string, default: x}"},
		"conditional":   {module: "nullable = false", old: "    type: object\n", replacement: "    type: object\n    dependentRequired: {s: [maybe]}\n"},
		"provider":      {module: "nullable = false", old: "      modules:\n", replacement: "      defaults: {maybe: x}\n      modules:\n"},
		"rule":          {module: "nullable = false", old: "  variables:\n", replacement: "  rules: [{rule: has(self.maybe), message: m}]\n  variables:\n"},
		"when":          {module: "nullable = false", old: "          source: ./m\n", replacement: "          source: ./m\n          when: has(self.maybe)\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := fmt.Sprintf(inputsTemplate, `"${var.maybe}"`)
			if tc.old != "" {
				text = strings.Replace(text, tc.old, tc.replacement, 1)
			}
			files := map[string]string{
				"template.yaml": text, "other/main.tf": "",
				"m/main.tf": "variable \"x\" {\n  " + tc.module + "\n}\n",
			}
			_, faults, err := templates.NewResolver(nil).Load(tree(files), ".")
			if err != nil {
				t.Fatal(err)
			}
			if faults.Error() != tc.want {
				t.Errorf("faults:\n%v\nwant:\n%s", faults, tc.want)
			}
		})
	}
}
