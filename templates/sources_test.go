package templates_test

import (
	"maps"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/templates"
)

// What a cluster is made from is compared with faults, too, by what is read and by the
// files that cannot be.
func TestSources(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"infra/own/main.tf":  "terraform {\n  backend \"local\" {}\n}\nmodule \"a\" {\n  source = \"../../modules/a\"\n}\n",
		"infra/own/text.txt": "one", "modules/a/main.tf": "variable \"x\" {", "data.txt": "one",
		"templates/web/template.yaml":    "apiVersion: holdfast.dev/v1\nkind: Template\nmetadata: {name: web}\nspec:\n  providers:\n    any:\n      modules:\n        - {name: site, source: ./site}\n  nonsense: 1\n",
		"templates/web/site/main.tf":     "variable \"x\" {}",
		"templates/syntax/template.yaml": "kind: [",
	}
	const head = "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: own}\nspec:\n  project: p\n  environment: e\n"
	module, web, syntax, none := head+"  module: {path: infra/own}\n", head+"  template: {path: ../templates/web}\n",
		head+"  template: {path: ../templates/syntax}\n", head+"  module: {path: infra/none}\n"
	for name, tc := range map[string]struct {
		document, file, text string
		differ               bool
	}{
		"code":                      {module, "infra/own/main.tf", "# more\n", true},
		"a file beside the code":    {module, "infra/own/text.txt", "two", true},
		"a module that is called":   {module, "modules/a/main.tf", "variable \"y\" {", true},
		"a new file":                {module, "infra/own/new.tf", "", true},
		"a folder beside":           {module, "infra/own-2/main.tf", "", false},
		"something else":            {module, "data.txt", "two", false},
		"a template of a module":    {module, "templates/web/template.yaml", "", false},
		"template.yaml":             {web, "templates/web/template.yaml", "kind: [", true},
		"a module of a template":    {web, "templates/web/site/main.tf", "", true},
		"a file next to a template": {web, "templates/web/README.md", "", false},
		"a template with no syntax": {syntax, "templates/syntax/template.yaml", "kind: [[", true},
		"beside one":                {syntax, "templates/syntax/README.md", "", false},
		"a folder that comes":       {none, "infra/none/main.tf", "", true},
		"beside none":               {none, "infra/other/main.tf", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := clusterOf(t, "clusters/own.yaml", tc.document)
			resolver := templates.NewResolver(nil)
			sources := func(files map[string]string) holdfast.Digest {
				t.Helper()
				digest, err := resolver.Sources(tree(files), doc)
				if err != nil {
					t.Fatal(err)
				}
				return digest
			}
			changed := maps.Clone(files)
			changed[tc.file] = tc.text
			if got := sources(files) != sources(changed); got != tc.differ {
				t.Errorf("they differ is %t, want %t", got, tc.differ)
			}
		})
	}
	doc := clusterOf(t, "clusters/own.yaml", head+"  template: {name: web, version: 1.0.0}\n")
	if got, err := templates.NewResolver(nil).Sources(tree(files), doc); got != "" || err != nil {
		t.Errorf("Sources of a released template = %q, %v", got, err)
	}
}
