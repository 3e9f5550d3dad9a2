package reconciler_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/reconciler"
)

// faulty are clusters and templates of which nothing can be planned, each for a reason
// that is somewhere else, and preprod, which is fine.
func faulty() map[string]string {
	files := twoClusters()
	maps.Copy(files, webTemplate("one"))
	files["templates/web/template.yaml"] += "  nonsense: 1\n"
	files["templates/named/template.yaml"] = strings.Replace(webTemplate("")["templates/web/template.yaml"], "{name: web}", "{name: other}", 1)
	files["templates/named/modules/site/main.tf"] = module("one")
	files["templates/own/template.yaml"] = files["templates/web/template.yaml"]
	files["templates/own/modules/site/main.tf"] = module("one")
	files["clusters/own.yaml"] = templated("own", "{path: ../templates/own}")
	files["infra/prod/main.tf"] = "terraform {\n  backend \"local\" {\n    path = \"x\"\n  }\n}\nmodule \"m\" {\n  source = \"../../modules/m\"\n}\n"
	files["modules/m/main.tf"] = module("one")
	files["clusters/a.yaml"], files["clusters/b.yaml"], files["infra/twin/main.tf"] = document("twin"), document("twin"), module("one")
	files["clusters/lost.yaml"] = document("lost")
	return files
}

// Whoever changes what is at fault is told of it at its line, whoever made the fault: what
// is merged is not applied. Whoever changes something else is not.
func TestFaultsAreReportedToWhoTouchesThem(t *testing.T) {
	t.Parallel()
	const (
		template = `templates/web/template.yaml:9:3: unknown key "nonsense"`
		own      = `templates/own/template.yaml:9:3: unknown key "nonsense"`
		named    = `templates/named/template.yaml:3: it is published as "named", but its metadata.name is "other"`
		code     = "infra/prod/main.tf:2: a local backend keeps the state in a workspace that is thrown away"
		first    = `clusters/a.yaml:3:18: the name "twin" is claimed twice: also at clusters/b.yaml:3:18`
		second   = `clusters/b.yaml:3:18: the name "twin" is claimed twice: also at clusters/a.yaml:3:18`
		lost     = "clusters/lost.yaml:7:18: spec.module.path: there is no folder infra/lost"
	)
	base := faulty()
	also := func(name, line string) map[string]string { return map[string]string{name: base[name] + line} }
	for name, tc := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"template.yaml":                  {also("templates/web/template.yaml", "# more\n"), []string{template}},
		"module of a template":           {map[string]string{"templates/web/modules/site/main.tf": module("two")}, []string{template}},
		"template by path":               {also("templates/own/template.yaml", "# more\n"), []string{own}},
		"module of a template by path":   {map[string]string{"templates/own/modules/site/main.tf": module("two")}, []string{own}},
		"template with another name":     {map[string]string{"templates/named/modules/site/main.tf": module("two")}, []string{named}},
		"file of a module":               {also("infra/prod/main.tf", module("two")), []string{code}},
		"another file of a module":       {map[string]string{"infra/prod/more.tf": module("two")}, []string{code}},
		"module that a module calls":     {map[string]string{"modules/m/main.tf": module("two")}, []string{code}},
		"document of a faulty module":    {map[string]string{"clusters/prod.yaml": document("prod", "region: eu")}, []string{code}},
		"a fault of its own as well":     {map[string]string{"clusters/prod.yaml": document("prod", "regoin: eu")}, []string{code, `unknown key "regoin" in spec`}},
		"first claimant of a name":       {map[string]string{"clusters/a.yaml": document("twin", "region: eu")}, []string{first, second}},
		"second claimant of a name":      {map[string]string{"clusters/b.yaml": document("twin", "region: eu")}, []string{first, second}},
		"comment in a faulty document":   {also("clusters/lost.yaml", "# more\n"), []string{lost}},
		"document beside":                {map[string]string{"clusters/preprod.yaml": document("preprod", "region: eu")}, nil},
		"module beside":                  {map[string]string{"infra/preprod/main.tf": module("two")}, nil},
		"folder next to a faulty module": {map[string]string{"infra/prod-2/main.tf": module("two")}, nil},
		"file next to a template":        {map[string]string{"templates/web/README.md": "hello"}, nil},
		"new cluster":                    {map[string]string{"clusters/new.yaml": document("new"), "infra/new/main.tf": module("one")}, nil},
		"file of nobody":                 {map[string]string{"README.md": "bye"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, base, func(o *reconciler.Options) {
				o.Sources.Repositories[0].Templates = map[string]string{"web": "templates/web", "named": "templates/named"}
			})
			f.look()
			f.open(1, tc.files)
			f.executeAll(planned)
			f.post()
			rec := f.pullRequest(1)
			if len(rec.Faults) != len(tc.want) {
				t.Errorf("%d faults, want %d:\n%v", len(rec.Faults), len(tc.want), rec.Faults)
			}
			for _, want := range tc.want {
				if !strings.Contains(rec.Faults.Error(), want) {
					t.Errorf("faults are\n%v\nwant %s", rec.Faults, want)
				}
			}
			if state := f.forge.status(rec.Head, holdfast.ContextPlan); (state == holdfast.StatusSuccess) != (len(tc.want) == 0) {
				t.Errorf("status is %q: %q", state, f.forge.told(rec.Head, holdfast.ContextPlan))
			}
		})
	}
}
