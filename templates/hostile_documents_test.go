package templates_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// TestNoValueIsRepeated: a password that is taken for something of YAML is in no
// message.
func TestNoValueIsRepeated(t *testing.T) {
	t.Parallel()

	for line, want := range map[string]string{
		"!Passw0rd":                            "11:18: a tag is not supported (write a plain value, and a text that begins with ! in quotes)",
		"!Passw0rd x":                          "11:18: a tag is not supported (write a plain value, and a text that begins with ! in quotes)",
		"!<tag:Passw0rd> x":                    "11:18: a tag is not supported (write a plain value, and a text that begins with ! in quotes)",
		"{secret: {env: !Passw0rd x}}":         "11:33: a tag is not supported (write a plain value, and a text that begins with ! in quotes)",
		"*Passw0rd":                            "11:18: file is not valid YAML: an alias (*) of something that is not there (put a text that begins with * in quotes)",
		"{secret: {env: *Passw0rd}}":           "11:33: file is not valid YAML: an alias (*) of something that is not there (put a text that begins with * in quotes)",
		"!!int Passw0rd":                       "11:18: this is not an int",
		"!!float Passw0rd":                     "11:18: this is not a float",
		"Passw0rd: x: y":                       "11: file is not valid YAML: mapping values are not allowed in this context (put a text that has a colon in quotes, or indent this line as the one before)",
		strings.Repeat("4711", 100):            "11:18: db_password is secret: say where its value is, such as {secret: {env: DB_PASSWORD}}",
		"\"Passw0rd\\q\"":                      "11: file is not valid YAML: found unknown escape character",
		"&Passw0rd":                            "11:18: db_password is secret: say where its value is, such as {secret: {env: DB_PASSWORD}}",
		"{secret: {env: A}, Passw0rd: hunter}": "11:18: db_password is secret: say where its value is, such as {secret: {env: DB_PASSWORD}}",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(richCluster, "    node_count: 3\n", "    node_count: 3\n    db_password: "+line+"\n", 1)
			docs, faults := document.ParseClusters("c/c.yaml", []byte(text))
			if len(faults) == 0 {
				faults = resolveFaults(t, tree(richFiles()), docs[0])
			}
			wantFaults(t, faults, "c/c.yaml:"+want)
			if text := faults.Error(); strings.Contains(text, "Passw0rd") || strings.Contains(text, "4711") {
				t.Errorf("the value is in the fault: %s", text)
			}
		})
	}
}

// TestFolderNames: the name of a folder is in a comment, and can be anything.
func TestFolderNames(t *testing.T) {
	t.Parallel()

	const dir = "t\nlocals { evil = 1 }\r\u2028\u202e\x00"
	files := map[string]string{}
	for name, content := range richFiles() {
		files[strings.Replace(name, "t/", "odd/"+dir+"/", 1)] = content
	}
	text := strings.Replace(richCluster, "{path: ../t}", `{path: "../odd/t\nlocals { evil = 1 }\r\u2028\u202e\x00"}`, 1)
	docs, faults := document.ParseClusters("c/c.yaml", []byte(text))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	root := resolve(t, tree(files), docs[0])
	for name, content := range filesOf(root) {
		if !strings.HasSuffix(name, ".tf") {
			continue
		}
		parsed, diags := hclsyntax.ParseConfig([]byte(content), name, hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatalf("%s: %v\n%s", name, diags, content)
		}
		for _, block := range parsed.Body.(*hclsyntax.Body).Blocks {
			if block.Body.Attributes["evil"] != nil {
				t.Errorf("%s:\n%s", name, content)
			}
		}
	}
}

// TestBombs: a schema and variables that are endless together are refused before
// anybody checks them.
func TestBombs(t *testing.T) {
	t.Parallel()

	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	const large = "spec.variables are too large for the template's schema"
	for name, tc := range map[string]struct{ schema, value, want string }{
		"enum":         {"{items: {enum: [" + many(5000, "%d,") + "]}}", "[" + many(5000, "1%d000000,") + "]", large},
		"alternatives": {"{items: {anyOf: [" + many(1000, "{const: %d},") + "]}}", "[" + many(1000, "1%d000000,") + "]", large},
		"told briefly": {"{items: {anyOf: [" + many(400, "{const: %d},") + "]}}", "[" + many(1000, "1%d000000,") + "]", "variable bomb.0 fits none of the alternatives"},
		"required":     {"{items: {required: [" + many(5000, "a%d,") + "]}}", "[" + many(5000, "{b%d: 1},") + "]", large},
		"keys":         {"{type: object, patternProperties: {" + many(1000, "\"x%d\": {},") + "}}", "{" + many(1000, "y%d: 1,") + "}", large},
		"text":         {"{items: {pattern: \"(a|aa|aaa|b?c?){1000}$\"}}", "[" + strings.Repeat(strings.Repeat("a", 5000)+",", 100) + "]", large},
		"patterns":     {"{allOf: [" + many(500, "{pattern: \"(a|aa|aaa|b?c?%d){1000}$\"},") + "]}", "a", "its patterns are too large"},
		"recursion":    {"{type: object, allOf: [{properties: {x: {$ref: \"#/properties/bomb\"}}}, {properties: {x: {$ref: \"#/properties/bomb\"}}}]}", strings.Repeat("{x: ", 40) + "1" + strings.Repeat("}", 40), large},
		"a default":    {"{default: [" + many(1000, "1%d000000,") + "], items: {anyOf: [" + many(1000, "{const: %d},") + "]}}", "[]", "the default of variable bomb is too large for its schema"},
		"circle":       {"{$ref: \"#/properties/bomb\"}", "1", large},
		"fine":         {"{items: {type: object, properties: {a: {pattern: \"^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$\"}}}}", "[" + many(5000, "{a: the-name-of-a-machine-%d},") + "]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(richTemplate, "price: {type: number}", "price: {type: number}\n      bomb: "+tc.schema, 1)
			faults := resolveFaults(t, tree(with(richFiles(), "t/template.yaml", text)), clusterWith(t, "node_count: 3", "bomb: "+tc.value))
			if got := faults.Error(); !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
				t.Errorf("%.1000s", got)
			}
		})
	}
}

// TestRuleBombs: expressions take a bounded number of steps, one by one and
// together, and so do the patterns in them.
func TestRuleBombs(t *testing.T) {
	t.Parallel()

	const tooMany = "it takes too many steps"
	for name, tc := range map[string]struct{ rule, want string }{
		"pattern":           {"self.text.matches('(a|aa|aaa|b?c?){1000}$')", "cannot be evaluated: "},
		"pattern, function": {"matches(self.text, '(a|aa|aaa|b?c?){1000}$')", "cannot be evaluated: "},
		"pattern of items":  {"self.l.all(x, (string(x) + 'aaaaaaaaaaaaaaaaaaaaaaaa').matches('(a|aa|aaa|b?c?){1000}$') || true)", tooMany},
		"pattern, dynamic":  {"dyn(self.text).matches('(a|aa|aaa|b?c?){1000}$')", "cannot be evaluated: "},
		"pattern, not text": {"self.text.matches(self.text)", "matches a pattern that is not written out"},
		"pattern, built":    {"self.text.matches('a' + 'b')", "matches a pattern that is not written out"},
		"pattern, fine":     {"'node-1'.matches('^[a-z]+-[0-9]+$') && matches('node-1', '^[a-z]+-[0-9]+$') && !'1'.matches('^[a-z]$')", ""},
		"nested":            {strings.Repeat("[1,2,3,4,5].exists(x, ", 25) + "false" + strings.Repeat(")", 25), tooMany},
		"square":            {"self.l.all(x, self.l.all(y, x == y || true))", tooMany},
		"lists of lists":    {"self.l.map(x, self.l).map(x, x + x).map(x, x + x).map(x, x + x) == [self.l]", tooMany},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			faults := ruleFaults(t, tc.rule, 1)
			if got := faults.Error(); !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
				t.Error(got)
			}
		})
	}
	many := ruleFaults(t, "self.l.all(x, self.l.all(y, x == y || true))", 150).Error()
	if n := strings.Count(many, tooMany); n == 0 || n > 10 || !strings.Contains(many, "the expressions before it have taken too many steps") {
		t.Errorf("%d\n%s", n, many)
	}
}

func ruleFaults(t *testing.T, rule string, times int) holdfast.Faults {
	t.Helper()
	text := strings.Replace(richTemplate, "price: {type: number}", "price: {type: number}\n      text: {type: string, default: ''}\n      l: {type: array, items: {type: integer}, default: [1]}", 1)
	text = strings.Replace(text, "  rules:\n", "  rules:\n"+strings.Repeat(fmt.Sprintf("    - {message: m, rule: %q}\n", rule), times), 1)
	doc := clusterWith(t, "node_count: 3", "l: ["+strings.Repeat("4711,", 3000)+"]", "text: "+strings.Repeat("a", 100_000))
	return resolveFaults(t, tree(with(richFiles(), "t/template.yaml", text)), doc)
}

// TestSecretsInConditions: no schema looks at a secret's value, which it cannot
// know, and a misspelled secret is not repeated.
func TestSecretsInConditions(t *testing.T) {
	t.Parallel()

	const condition = "a condition asks for the value of db_password, which is secret (only whether it is given can be asked for, by required)"
	for name, tc := range map[string]struct{ variables, more, want string }{
		"reference":       {"other: {$ref: \"#/properties/db_password\"}", "", "t/template.yaml:55:21: a schema refers to that of db_password, which is secret (write it out: the value of another variable is in Git)"},
		"if":              {"", "if: {properties: {db_password: {const: a}}}\n    then: {required: [price]}", "t/template.yaml:66:36: " + condition},
		"anyOf":           {"", "anyOf: [{properties: {db_password: {minLength: 8}}}]", "t/template.yaml:66:40: " + condition},
		"deep":            {"", "allOf: [{not: {oneOf: [{}, {properties: {db_password: {minLength: 8}}}]}}]", "t/template.yaml:66:59: " + condition},
		"another object":  {"o: {type: object, properties: {db_password: {minLength: 1}}}", "$defs: {o: {properties: {db_password: {minLength: 8}}}}", ""},
		"whether given":   {"", "if: {required: [db_password], properties: {db_password: {}}}\n    then: {not: {required: [price]}}", ""},
		"misspelled":      {"", "patternProperties: {\"^db\": {pattern: \"^[a-z]{12}$\"}}", "c/c.yaml:11:18: variable db_passwort is not what it can be (it must match ^[a-z]{12}$)"},
		"misspelled enum": {"", "patternProperties: {\"^db\": {enum: [a, b]}}", "c/c.yaml:11:18: variable db_passwort is not what it can be (one of a, b)"},
		"of the whole":    {"", "patternProperties: {\"^db\": true}\n    const: {a: 1}", "c/c.yaml:9:3: spec.variables is not what it can be (the only one is {\"a\":1})"},
		"unevaluated":     {"", "patternProperties: {\"^x\": true}\n    unevaluatedProperties: false", "c/c.yaml:11:5: spec.variables has no \"db_passwort\" (did you mean \"db_password\"?)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(richTemplate, "      price: {type: number}\n", "      price: {type: number}\n      "+tc.variables+"\n", 1)
			text = strings.Replace(text, "  rules:\n", "    "+tc.more+"\n  rules:\n", 1)
			line := "db_password: {secret: {env: A}}"
			if strings.Contains(tc.want, "db_passwort") || name == "of the whole" {
				line = "db_passwort: hunter2"
			}
			faults := resolveFaults(t, tree(with(richFiles(), "t/template.yaml", text)), clusterWith(t, "node_count: 3", line))
			if got := faults.Error(); got != tc.want {
				t.Errorf("%s", got)
			}
			if strings.Contains(faults.Error(), "hunter2") {
				t.Error("the value is in the fault")
			}
		})
	}
}

// TestStrangeCharacters: a fault is one line that shows what is there, and places
// are counted in characters.
func TestStrangeCharacters(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct{ lines, want string }{
		"wide":                    {"tags: {\"é👍日本\": 5, b: 6}", "11:20: variable tags.é👍日本 must be a string, not number (put it in quotes)\nc/c.yaml:11:26: variable tags.b must be a string, not number (put it in quotes)"},
		"tab":                     {"tags: {a:\t5}", "11:15: variable tags.a must be a string, not number (put it in quotes)"},
		"lines in a key":          {`tags: {"a\nc/c.yaml:1:1: all is fine": 5}`, "11:44: variable tags.a c/c.yaml:1:1: all is fine must be a string, not number (put it in quotes)"},
		"right to left":           {"instance_type: \"\u202em7i.large\"", `11:20: variable instance_type is "\u202em7i.large": not allowed for aws (one of t3.medium, m7i.*)`},
		"another variant":         {"instance_type: \"\ufe0fm7i.large\"", `11:20: variable instance_type is "\ufe0fm7i.large": not allowed for aws (one of t3.medium, m7i.*)`},
		"key written in two ways": {"tags: {\"é\": x, \"e\u0301\": y}", "11:20: key \"e\u0301\" is given twice, first in line 11 (remove one)"},
		"nothing":                 {"price: \"a\x00b\"", `11:14: file is not valid YAML: control characters are not allowed (write it as an escape between double quotes, such as "\x1b")`},
		"items in order":          {"pools: [" + strings.Repeat("{name: a}, ", 2) + "{name: 1}, " + strings.Repeat("{name: a}, ", 7) + "{name: 2}]", "11:42: variable pools.2.name must be a string, not number (put it in quotes)\nc/c.yaml:11:130: variable pools.10.name must be a string, not number (put it in quotes)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for end, text := range map[string]string{
				"LF": richCluster, "CRLF": strings.ReplaceAll(richCluster, "\n", "\r\n"), "BOM": "\ufeff" + richCluster,
			} {
				lines := "node_count: 3\n    " + tc.lines
				if end == "CRLF" {
					lines = strings.ReplaceAll(lines, "\n", "\r\n")
				}
				docs, faults := document.ParseClusters("c/c.yaml", []byte(strings.Replace(text, "node_count: 3", lines, 1)))
				if len(faults) == 0 {
					faults = resolveFaults(t, tree(richFiles()), docs[0])
				}
				if got := faults.Error(); got != "c/c.yaml:"+tc.want {
					t.Errorf("%s:\n%s", end, got)
				}
			}
		})
	}
	_, faults := document.ParseClusters("c/c.yaml", []byte("%YAML 1.2\n---\n"+richCluster))
	wantFaults(t, faults, "c/c.yaml:1:1: file is not valid YAML: found incompatible YAML document (remove the line %YAML)")
}

// TestSecretOfAModuleIsGivenOnce: a value in the document would go before the
// secret's, and nobody would know.
func TestSecretOfAModuleIsGivenOnce(t *testing.T) {
	t.Parallel()

	files := map[string]string{
		"m/main.tf": "variable \"db_password\" { sensitive = true }\nvariable \"size\" {}\n", "m/holdfast_secrets.json": `{"db_password": {"env": "A"}}`,
	}
	text := strings.Replace(richCluster, "template: {path: ../t}", "module: {path: m}", 1)
	doc := clusterOf(t, "c/c.yaml", strings.Replace(text, "node_count: 3", "size: 3", 1))
	if root := resolve(t, tree(files), doc); contents(t, root)["m/holdfast_secrets.json"] == "" {
		t.Error("the file is not in the bundle")
	}
	doc = clusterOf(t, "c/c.yaml", strings.Replace(text, "node_count: 3", "db_password: hunter2", 1))
	wantFaults(t, resolveFaults(t, tree(files), doc),
		"c/c.yaml:10:5: variable db_password is secret: m/holdfast_secrets.json says where its value is (remove it here, or there)")
}
