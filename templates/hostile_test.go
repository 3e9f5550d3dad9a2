package templates_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/holdfast-dev/holdfast/templates"
)

// TestHostileTemplates: whatever a template says, it is read in bounded time,
// and what is wrong is said.
func TestHostileTemplates(t *testing.T) {
	t.Parallel()

	big := strings.Repeat("x", 5_000)
	for name, tc := range map[string]struct{ old, replacement, want string }{
		"long expression":              {"when: self.enable_monitoring\n          inputs", "when: \"'" + big + "' == ''\"\n          inputs", "has more than 4000 characters"},
		"deep expression":              {"when: self.enable_monitoring\n          inputs", "when: " + strings.Repeat("(", 500) + "true" + strings.Repeat(")", 500) + "\n          inputs", "is not valid CEL"},
		"deep list":                    {"when: self.enable_monitoring\n          inputs", "when: \"" + strings.Repeat("[", 1000) + "\"\n          inputs", "is not valid CEL"},
		"many operators":               {"when: self.enable_monitoring\n          inputs", "when: \"" + strings.Repeat("!", 3900) + "true\"\n          inputs", "module \"logs\" needs the input"},
		"nested macros":                {"when: self.enable_monitoring\n          inputs", "when: \"" + strings.Repeat("[1,2,3].all(x, ", 20) + "true" + strings.Repeat(")", 20) + "\"\n          inputs", "module \"logs\" needs the input"},
		"a bad pattern":                {"when: self.enable_monitoring\n          inputs", "when: \"'a'.matches('(')\"\n          inputs", "cannot be used"},
		"a struct":                     {"when: self.enable_monitoring\n          inputs", "when: \"google.protobuf.Empty{} == google.protobuf.Empty{}\"\n          inputs", "module \"logs\" needs the input"},
		"a time of a zone":             {"when: self.enable_monitoring\n          inputs", "when: \"timestamp('2024-01-01T00:00:00Z').getHours('No/Where') == 0\"\n          inputs", "module \"logs\" needs the input"},
		"not UTF-8":                    {"when: self.enable_monitoring\n          inputs", "when: \"'\\xff' == ''\"\n          inputs", "module \"logs\" needs the input"},
		"dyn":                          {"when: self.enable_monitoring\n          inputs", "when: dyn(self).db_password == \"x\"\n          inputs", "uses self without a name"},
		"too many rules":               {"  rules:\n", "  rules:\n" + strings.Repeat("    - {rule: \"true\", message: m}\n", 201), "one of more than 200 expressions"},
		"large schema, many providers": {"  providers:\n", "  providers:\n" + manyProviders(60), "*"},
		"large schema":                 {"      price: {type: number}\n", "      price: {type: number}\n" + manyVariables(2_000), ""},
		"too many types":               {`instanceTypes: ["m7i.*", t3.medium]`, "instanceTypes: [" + strings.Repeat("a,", 5_001) + "a]", "has more than 5000 patterns"},
		"many types":                   {`instanceTypes: ["m7i.*", t3.medium]`, "instanceTypes: [" + strings.Repeat("\"a*b*c*d*e*f\",", 4_000) + "\"*\"]", ""},
		"format of a property":         {"price: {type: number}", "format: {type: string, format: email}\n      writeOnly: {type: boolean}\n      price: {type: number}", ""},
		"format, no text":              {"price: {type: number}", "price: {type: number, format: 5}", "spec.variables is not a JSON Schema"},
		"format in a default":          {"price: {type: number}", "price: {type: number}\n      o: {default: {format: instance-type, writeOnly: true}}", ""},
		"schema true":                  {"price: {type: number}", "price: true", ""},
		"reserved name":                {"price: {type: number}", "price: {type: number}\n      _: {type: string}", "\"_\" cannot be the name of a variable: it means something else to the engine"},
		"schema of a list":             {"price: {type: number}", "price: [number]", "spec.variables is not a JSON Schema"},
		"properties, a list":           {"    properties:\n      node_count", "    properties: []\n    x:\n      node_count", "spec.variables is not a JSON Schema"},
		"recursive schema":             {"price: {type: number}", "price: {type: object, additionalProperties: false, properties: {deep: {$ref: \"#/properties/price\"}}}", "*"},
		"schema of itself":             {"price: {type: number}", "price: {$ref: \"#\"}", "*"},
		"circle of references":         {"price: {type: number}", "price: {$ref: \"#/$defs/a\"}\n    $defs: {a: {$ref: \"#/$defs/b\"}, b: {$ref: \"#/$defs/a\"}}", "*"},
		"secret by reference":          {"db_password: {type: string, minLength: 12, writeOnly: true}", "db_password: {$ref: \"#/properties/price\"}\n      other: {allOf: [{type: string, writeOnly: true}]}", "writeOnly is not at a variable itself"},
		"pattern with a bomb":          {"price: {type: number}", "price: {type: string, pattern: \"(((a{1000}){1000}){1000})\"}", "spec.variables is not a JSON Schema"},
		"many blocks":                  {"blocks: [{type: inner}]", "blocks: [" + strings.Repeat("{type: inner},", 5_000) + "]", ""},
		"circle":                       {"inputs: {name: \"${cluster.name}\"}", "inputs: {name: \"${module.kubernetes.endpoint}\"}", "circle"},
		"circle of itself":             {"inputs: {name: \"${cluster.name}\"}", "inputs: {name: \"${module.monitoring.agent}\"}", "circle"},
		"provider of itself":           {`{region: "${cluster.region}"}`, `{region: "${provider.aws.region}"}`, "refers to \"provider\""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(richTemplate, tc.old, tc.replacement, 1)
			if text == richTemplate {
				t.Fatalf("no %q", tc.old)
			}
			if name == "large schema, many providers" {
				text = strings.Replace(text, "      price: {type: number}\n", "      price: {type: number}\n"+manyVariables(500), 1)
			}
			resolver := templates.NewResolver(nil)
			tr := tree(with(richFiles(), "t/template.yaml", text))
			loaded, faults, err := resolver.Load(tr, "t")
			if err != nil {
				t.Fatal(err)
			}
			if got := faults.Error(); tc.want != "*" && (tc.want == "" && got != "" || !strings.Contains(got, tc.want)) {
				t.Errorf("faults are %q, want %q", got, tc.want)
			}
			if loaded != nil {
				_ = loaded.Blueprint()
			}
			if _, _, err := resolver.Resolve(t.Context(), tr, clusterWith(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

func manyProviders(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "    p%d: {instanceTypes: [t3.medium, \"m%d.*\"], modules: []}\n", i, i)
	}
	return b.String()
}

func manyVariables(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "      v%d: {type: string, format: instance-type, default: t3.medium}\n", i)
	}
	return b.String()
}

// TestHostileFolders: folders that come to more than anybody reads are faults.
func TestHostileFolders(t *testing.T) {
	t.Parallel()

	linked, crowded, many := map[string]string{}, map[string]string{}, map[string]string{}
	for depth := range 12 { // 10 links in each to the next: 10 to the power of 12 files
		for i := range 10 {
			linked[fmt.Sprintf("links/%02d/l%d", depth, i)] = fmt.Sprintf("-> ../%02d", depth+1)
		}
	}
	linked["links/12/f.tf"] = ""
	linked["t/modules/logs/all"] = "-> ../../../links/00"
	for i := range 20_001 {
		crowded[fmt.Sprintf("t/modules/logs/l%05d", i)] = "-> main.tf"
	}
	for i := range 501 {
		many[fmt.Sprintf("t/modules/logs/m%03d/main.tf", i)] = ""
	}
	many["t/modules/logs/main.tf"] = "variable \"agent\" {}\nmodule \"x\" {\n  source = \"./${var.agent}\"\n}\n"
	for name, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"links of links": {linked, "more than 5000 symbolic links are followed from here"},
		"many links":     {crowded, "more than 20000 files and folders"},
		"many modules":   {many, "can be more than 500 folders"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := richFiles()
			maps.Copy(files, tc.files)
			faults := resolveFaults(t, tree(files), clusterWith(t, "node_count: 3", "enable_monitoring: true"))
			if !strings.Contains(faults.Error(), tc.want) || len(faults) > 5 {
				t.Errorf("%d faults: %.500s, want one with %q", len(faults), faults.Error(), tc.want)
			}
		})
	}
}

// TestOddNames: a file or folder that no bundle can hold is a fault of the clusters that take
// it, and nothing to others. A path that leads through a file is the engine's to report.
func TestOddNames(t *testing.T) {
	t.Parallel()

	const backslash, encoding = " has a backslash in its name, and no bundle can hold that (rename it)", " has a name that is not UTF-8 (rename it)"
	for name, tc := range map[string]struct {
		files []string
		want  string
	}{
		"elsewhere":           {[]string{`docs/a\b`, "", "docs/caf\xe9", ""}, ""},
		"a file":              {[]string{`infra/own/opt-my\x2ddata.mount`, ""}, `infra/own/opt-my\x2ddata.mount:` + backslash},
		"a folder":            {[]string{`infra/own/a\b/c`, ""}, `infra/own/a\b:` + backslash},
		"not UTF-8":           {[]string{"infra/own/caf\xe9", ""}, "infra/own/caf\uFFFD:" + encoding},
		"a link":              {[]string{`infra/own/a\b`, "-> ../common.tf"}, `infra/own/a\b:` + backslash},
		"behind a link":       {[]string{`data/x\y`, ""}, `data/x\y:` + backslash},
		"a folder of modules": {[]string{"infra/own/m.tf", `module "m" { source = "../../modules/x\\y" }`, `modules/x\y/main.tf`, ""}, `modules/x\y:` + backslash},
		"a file that is read": {[]string{"infra/own/r.tf", `locals { a = file("../x\\y") }`, `infra/x\y`, ""}, `infra/x\y:` + backslash},
		"in a folder that is read": {
			[]string{"infra/own/r.tf", `locals { a = fileset("../../policies", "*") }`, `policies/x\y`, ""}, `policies/x\y:` + backslash,
		},
		"read through a file": {[]string{"infra/own/r.tf", `locals { a = fileexists("../own/main.tf/x") }`}, ""},
		"read through a link": {[]string{"infra/own/r.tf", `locals { a = fileexists("../link/x") }`, "infra/link", "-> ../docs", "docs/x", ""}, ""},
		"modules in a file":   {[]string{"infra/own/m.tf", `module "m" { source = "./main.tf/${var.size}" }`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			faults := resolveFaults(t, tree(with(moduleFiles(), tc.files...)), clusterOf(t, "c.yaml", moduleCluster))
			if faults.Error() != tc.want {
				t.Errorf("faults:\n%s\nwant:\n%s", faults.Error(), tc.want)
			}
		})
	}
}

// TestHostileVariables: what a cluster says is checked in bounded time, too.
func TestHostileVariables(t *testing.T) {
	t.Parallel()

	text := strings.Replace(richTemplate, "  rules:\n", "  rules:\n    - {rule: \"!has(self.pools) || self.pools.all(p, size(self.pools) > 0)\", message: m}\n", 1)
	tr := tree(with(richFiles(), "t/template.yaml", text))
	many := resolveFaults(t, tr, clusterWith(t, "node_count: 3", "pools: ["+strings.Repeat("{name: a},", 20_000)+"]"))
	if len(many) != 1 || !strings.Contains(many.Error(), "it takes too many steps") {
		t.Errorf("%d faults:\n%.500s", len(many), many.Error())
	}
	wrong := resolveFaults(t, tr, clusterWith(t, "node_count: 3", "pools: ["+strings.Repeat("{name: 1},", 20_000)+"]"))
	if len(wrong) != 100 {
		t.Errorf("%d faults", len(wrong))
	}
	resolve(t, tr, clusterWith(t, "node_count: 123456789012345678901234567890"))
	huge := resolveFaults(t, tr, clusterWith(t, "node_count: 123456789012345678901234567890", "high_availability: true"))
	wantFaults(t, huge, `c/c.yaml:10:17: rule "!self.high_availability || self.node_count >= 3" of the template cannot be evaluated: a number is too large (the rule is to say: node_count must be at least 3 when high_availability is true)`)

	providers := "apiVersion: holdfast.dev/v1\nkind: Template\nmetadata: {name: t}\nspec:\n  providers:\n"
	for i := range 51 {
		providers += fmt.Sprintf("    p%d: {modules: []}\n", i)
	}
	_, faults, err := templates.NewResolver(nil).Load(tree(map[string]string{"template.yaml": providers}), ".")
	if err != nil {
		t.Fatal(err)
	}
	wantFaults(t, faults, "template.yaml:56:5: spec.providers has more than 50 providers")
}

// FuzzTemplate reads any bytes as a template, and resolves a small cluster of
// it: no panic, bounded time, and a root module that can be read.
func FuzzTemplate(f *testing.F) {
	f.Add([]byte(richTemplate))
	f.Add([]byte(demoTemplate))
	f.Add(fmt.Appendf(nil, inputsTemplate, `"${var.pool.name}"`))
	f.Add([]byte("apiVersion: holdfast.dev/v1\nkind: Template\nmetadata: {name: t}\nspec: {providers: {p: {modules: []}}}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 20_000 {
			return
		}
		files := richFiles()
		files["t/template.yaml"] = string(data)
		resolver := templates.NewResolver(nil)
		loaded, faults, err := resolver.Load(tree(files), "t")
		if err != nil {
			t.Fatal(err)
		}
		if len(faults) == 0 && loaded == nil {
			t.Fatal("neither a template nor a fault")
		}
		if loaded != nil {
			_ = loaded.Blueprint()
		}
		root, refused, err := resolver.Resolve(t.Context(), tree(files), clusterWith(t))
		if err != nil {
			t.Fatal(err)
		}
		if len(refused) > 0 {
			return
		}
		if len(faults) > 0 {
			t.Fatalf("a template with faults makes a root module: %v", faults)
		}
		for _, file := range root.Files() {
			if !strings.HasSuffix(file.Name, ".tf") {
				continue
			}
			if _, diags := hclsyntax.ParseConfig(file.Data, file.Name, hcl.InitialPos); diags.HasErrors() {
				t.Fatalf("%v\n%s", diags, file.Data)
			}
		}
		if _, _, err := root.Bundle(); err != nil {
			t.Fatal(err)
		}
	})
}
