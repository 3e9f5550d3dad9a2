package templates_test

import (
	"fmt"
	"testing"
)

// TestSchemaMessages: each keyword is told in plain words, with the values.
func TestSchemaMessages(t *testing.T) {
	t.Parallel()

	for _, tc := range []struct{ schema, variables, want string }{
		{`{properties: {x: {type: integer}}}`, `{x: a}`, `c.yaml:8:18: variable x must be an integer, not string (write the number without quotes)`},
		{`{properties: {x: {type: integer}}}`, `{x: 1.5}`, `c.yaml:8:18: variable x must be an integer, not number`},
		{`{properties: {x: {type: [integer, string]}}}`, `{x: [1]}`, `c.yaml:8:18: variable x must be an integer or a string, not array`},
		{`{properties: {x: {type: boolean}}}`, `{x: "yes"}`, `c.yaml:8:18: variable x must be a boolean, not string (write true or false, without quotes)`},
		{`{properties: {x: {enum: [small, large]}}}`, `{x: smal}`, `c.yaml:8:18: variable x is "smal" (did you mean "small"? one of large, small)`},
		{`{properties: {x: {enum: [1, 2]}}}`, `{x: 3}`, `c.yaml:8:18: variable x is 3 (one of 1, 2)`},
		{`{properties: {x: {const: gold}}}`, `{x: silver}`, `c.yaml:8:18: variable x is "silver" (the only one is gold)`},
		{`{properties: {x: {const: {a: 1}}}}`, `{x: {a: 2}}`, `c.yaml:8:18: variable x is {"a":2} (the only one is {"a":1})`},
		{`{properties: {x: {minimum: 1, maximum: 5}}}`, `{x: 9}`, `c.yaml:8:18: variable x must be at most 5, not 9`},
		{`{properties: {x: {minimum: 0.5}}}`, `{x: 0.25}`, `c.yaml:8:18: variable x must be at least 0.5, not 0.25`},
		{`{properties: {x: {exclusiveMinimum: 1}}}`, `{x: 1}`, `c.yaml:8:18: variable x must be more than 1, not 1`},
		{`{properties: {x: {exclusiveMaximum: 1}}}`, `{x: 1}`, `c.yaml:8:18: variable x must be less than 1, not 1`},
		{`{properties: {x: {multipleOf: 10}}}`, `{x: 15}`, `c.yaml:8:18: variable x must be a multiple of 10, not 15`},
		{`{properties: {x: {minLength: 3}}}`, `{x: ab}`, `c.yaml:8:18: variable x must have at least 3 characters, not 2`},
		{`{properties: {x: {maxLength: 1}}}`, `{x: ab}`, `c.yaml:8:18: variable x must have at most 1 character, not 2`},
		{`{properties: {x: {minItems: 1}}}`, `{x: []}`, `c.yaml:8:18: variable x must have at least 1 item, not 0`},
		{`{properties: {x: {maxItems: 2}}}`, `{x: [1, 2, 3]}`, `c.yaml:8:18: variable x must have at most 2 items, not 3`},
		{`{properties: {x: {uniqueItems: true}}}`, `{x: [a, b, a]}`, `c.yaml:8:18: variable x has the same item twice, at 0 and 2`},
		{`{properties: {x: {minProperties: 1}}}`, `{x: {}}`, `c.yaml:8:18: variable x must have at least 1 key, not 0`},
		{`{properties: {x: {maxProperties: 1}}}`, `{x: {a: 1, b: 2}}`, `c.yaml:8:18: variable x must have at most 1 key, not 2`},
		{`{properties: {x: {contains: {const: a}}}}`, `{x: [b]}`, `c.yaml:8:18: variable x has no item of the kind that the template requires`},
		{`{properties: {x: {contains: {const: a}, minContains: 2}}}`, `{x: [a]}`, `c.yaml:8:18: variable x must have at least 2 items of the kind that the template requires, not 1`},
		{`{properties: {x: {contains: {const: a}, maxContains: 1}}}`, `{x: [a, a]}`, `c.yaml:8:18: variable x must have at most 1 item of the kind that the template limits, not 2`},
		{`{properties: {x: {propertyNames: {pattern: "^[a-z]+$"}}}}`, `{x: {Team: 1}}`, `c.yaml:8:19: variable x has the key "Team", which is not allowed (it must match ^[a-z]+$)`},
		{`{properties: {x: {pattern: "^[0-9.]+/16$", examples: [10.0.0.0/16]}}}`, `{x: 10.0.0.0}`, `c.yaml:8:18: variable x is "10.0.0.0" (such as 10.0.0.0/16; it must match ^[0-9.]+/16$)`},
		{`{properties: {x: {pattern: "^[0-9.]+/16$", description: A range of addresses.}}}`, `{x: 10.0.0.0}`, `c.yaml:8:18: variable x is "10.0.0.0" (A range of addresses; it must match ^[0-9.]+/16$)`},
		{`{properties: {x: {pattern: "^[0-9.]+/16$", default: 10.0.0.0/16}}}`, `{x: 10.0.0.0}`, `c.yaml:8:18: variable x is "10.0.0.0" (such as 10.0.0.0/16; it must match ^[0-9.]+/16$)`},
		{`{properties: {x: {pattern: "^[0-9.]+/16$"}}}`, `{x: 10.0.0.0}`, `c.yaml:8:18: variable x is "10.0.0.0" (it must match ^[0-9.]+/16$)`},
		{`{properties: {x: {properties: {name: {}}, additionalProperties: false}}}`, `{x: {nme: 1}}`, `c.yaml:8:19: variable x has no "nme" (did you mean "name"?)`},
		{`{properties: {x: {items: {required: [name]}}}}`, `{x: [{}, {name: a}]}`, `c.yaml:8:19: variable x.0 has no name (the template requires it)`},
		{`{properties: {a: {}, b: {}}, dependentRequired: {a: [b]}}`, `{a: 1}`, `c.yaml:8:3: spec.variables has a and no b (the template requires one with the other)`},
		{`{properties: {a: {}, b: {}}, dependentSchemas: {a: {required: [b]}}}`, `{a: 1}`, `c.yaml:8:3: spec.variables has no b (the template requires it when a is given)`},
		{`{properties: {a: {}, b: {}}, dependentSchemas: {a: {properties: {b: {minimum: 3}}}}}`, `{a: 1, b: 2}`, `c.yaml:8:24: variable b must be at least 3, not 2 (when a is given)`},
		{`{properties: {tier: {}, n: {}}, if: {properties: {tier: {const: gold}}, required: [tier]}, then: {required: [n], properties: {n: {minimum: 3}}}, else: {properties: {n: {maximum: 2}}}}`, `{tier: gold}`, `c.yaml:8:3: spec.variables has no n (the template requires it when tier is gold)`},
		{`{properties: {tier: {}, n: {}}, if: {properties: {tier: {const: gold}}, required: [tier]}, then: {required: [n], properties: {n: {minimum: 3}}}, else: {properties: {n: {maximum: 2}}}}`, `{tier: gold, n: 1}`, `c.yaml:8:30: variable n must be at least 3, not 1 (when tier is gold)`},
		{`{properties: {tier: {}, n: {}}, if: {properties: {tier: {const: gold}}, required: [tier]}, then: {required: [n], properties: {n: {minimum: 3}}}, else: {properties: {n: {maximum: 2}}}}`, `{n: 3}`, `c.yaml:8:18: variable n must be at most 2, not 3 (unless tier is gold)`},
		{`{properties: {a: {}, b: {}}, if: {required: [a]}, then: {required: [b]}}`, `{a: 3}`, `c.yaml:8:3: spec.variables has no b (the template requires it when a is given)`},
		{`{properties: {a: {}, b: {}}, allOf: [{if: {properties: {a: {minimum: 2}}}, then: {required: [b]}}]}`, `{a: 3}`, `c.yaml:8:3: spec.variables has no b (the template requires it)`},
		{`{properties: {x: {oneOf: [{required: [count]}, {required: [min, max]}]}}}`, `{x: {}}`, `c.yaml:8:18: variable x fits none of the alternatives (give count; or min and max)`},
		{`{properties: {x: {oneOf: [{required: [count]}, {required: [min, max]}]}}}`, `{x: {count: 1, min: 1, max: 2}}`, `c.yaml:8:18: variable x fits more than one of the alternatives (give one of these and not the other: count; or min and max)`},
		{`{properties: {x: {anyOf: [{type: integer}, {type: string, pattern: "%$"}]}}}`, `{x: a}`, `c.yaml:8:18: variable x fits none of the alternatives (variable x must be an integer, not string; or variable x is "a", it must match %$)`},
		{`{properties: {x: {oneOf: [{type: integer}, {minimum: 1}]}}}`, `{x: 2}`, `c.yaml:8:18: variable x fits more than one of the alternatives`},
		{`{properties: {a: {}, b: {}}, not: {required: [a, b]}}`, `{a: 1, b: 2}`, `c.yaml:8:3: spec.variables has a and b (the template does not allow them together)`},
		{`{properties: {x: {not: {const: admin}}}}`, `{x: admin}`, `c.yaml:8:18: variable x is one of the values that the template does not allow (anything but admin)`},
		{`{properties: {x: {not: {properties: {a: {const: 1}}}}}}`, `{x: {a: 1}}`, `c.yaml:8:18: variable x is not what the template allows: a is 1`},
		{`{properties: {x: false}}`, `{x: 1}`, `c.yaml:8:15: variable x is not allowed here`},
		{`{properties: {x: {$ref: "#/$defs/size"}}, $defs: {size: {enum: [s, m], examples: [s]}}}`, `{x: l}`, `c.yaml:8:18: variable x is "l" (one of m, s)`},
		{`{properties: {x: {$ref: "#/$defs/size"}}, $defs: {size: {pattern: "^[sml]$", examples: [s]}}}`, `{x: xl}`, `c.yaml:8:18: variable x is "xl" (such as s; it must match ^[sml]$)`},
		{`{properties: {x: {format: email}}}`, `{x: not one, y: 1}`, `c.yaml:8:27: unknown variable "y" (the only one is x)`},
		{`{properties: {x: {prefixItems: [{type: string}], items: false}}}`, `{x: [a, b]}`, `c.yaml:8:22: variable x.1 is not allowed here`},
		{`{properties: {x: {unevaluatedProperties: false, properties: {a: {}}}}}`, `{x: {b: 1}}`, `c.yaml:8:19: variable x.b is not allowed here`},
		{`{minProperties: 1, properties: {x: {}}}`, `{}`, `c.yaml:8:3: spec.variables must have at least 1 key, not 0`},
		{`{properties: {"a b": {}, "a/b": {}}}`, `{}`, `template.yaml:6:28: "a b" cannot be the name of a variable (use letters, digits, _ and -)
template.yaml:6:39: "a/b" cannot be the name of a variable (use letters, digits, _ and -)`},
		{`{properties: {x: {type: integer}}}`, `{x: 123456789012345678901234567890}`, ``},
	} {
		t.Run(tc.schema+" "+tc.variables, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{
				"template.yaml": fmt.Sprintf("apiVersion: holdfast.dev/v1\nkind: Template\nmetadata: {name: t}\nspec:\n  providers: {p: {modules: []}}\n  variables: %s\n", tc.schema),
			}
			doc := clusterOf(t, "c.yaml", short("template: {path: .}")+"  variables: "+tc.variables+"\n")
			faults := resolveFaults(t, tree(files), doc)
			if got := faults.Error(); got != tc.want {
				t.Errorf("faults:\n%s\nwant:\n%s", got, tc.want)
			}
		})
	}
}
