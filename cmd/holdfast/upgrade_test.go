package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/rollout"
)

func someTemplates() []v1.Template {
	return []v1.Template{
		{
			Name: "kubernetes", Repo: "blueprints", Dir: "templates/kubernetes", Prepared: "1.6.0", Trouble: "tag kubernetes/v1.3.0 was moved",
			Versions: []v1.TemplateVersion{
				{Version: "1.5.0", Tag: "kubernetes/v1.5.0", Revision: "1111111111", Unusable: "template.yaml has \x1b[2J faults"},
				{Version: "1.4.2", Tag: "v1.4.2", Revision: "2222222222", Clusters: 2},
				{Version: "1.3.0", Tag: "kubernetes/v1.3.0", Revision: "3333333333", MovedTo: "4444444444"},
			},
			Users: []v1.TemplateUse{
				{Cluster: "prod-eu", Owner: "shop", Version: "1.4.2", Applied: "1.4.1", Behind: 1, Upgrades: "~> 1.4", Next: "1.5.0", Proposed: 12},
				{Cluster: "prod-us", Owner: "shop", Version: "1.4.2", Applied: "1.4.2", Behind: 1, Upgrades: "~> 1.4", Next: "1.5.0", Trouble: "1.5.0 would\nrefuse it"},
				{Cluster: "dev", Owner: "blueprints"},
			},
		},
		{Name: "web", Repo: "blueprints", Dir: "web"},
	}
}

func TestGetTemplates(t *testing.T) {
	t.Parallel()
	all := someTemplates()
	answers := map[string]any{
		"GET /templates": list(all...), "GET /templates/kubernetes": all[0], "GET /templates/web": all[1],
	}
	const table = `NAME        NEWEST  VERSIONS  CLUSTERS  BEHIND  OPEN UPGRADES  TROUBLE
kubernetes  1.5.0   3         3         2       1              tag kubernetes/v1.3.0 was moved
web         none    0         0         0       0
`
	const text = `Template:    kubernetes
Repository:  blueprints
Folder:      templates/kubernetes
Prepared:    1.6.0
Trouble:     tag kubernetes/v1.3.0 was moved

Versions
  VERSION  TAG                REVISION  CLUSTERS  STATUS
  1.5.0    kubernetes/v1.5.0  1111111   0         unusable: template.yaml has �[2J faults
  1.4.2    v1.4.2             2222222   2
  1.3.0    kubernetes/v1.3.0  3333333   0         refused: its tag was moved to 4444444

Clusters
  OWNER       CLUSTER  VERSION   APPLIED  BEHIND  UPGRADES  NEXT   PULL REQUEST  TROUBLE
  shop        prod-eu  1.4.2     1.4.1    1       ~> 1.4    1.5.0  shop#12
  shop        prod-us  1.4.2     1.4.2    1       ~> 1.4    1.5.0                1.5.0 would refuse it
  blueprints  dev      (folder)           0
`
	const web = `Template:    web
Repository:  blueprints
Folder:      web

Versions
  none: a tag such as web/v1.0.0 makes one

Clusters
  no cluster uses it
`
	for line, want := range map[string]string{
		"get templates": table, "get templates kubernetes": text, "get templates -o wide": text + "\n" + web, "get templates web": web,
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			f := fleet()
			for path, answer := range answers {
				f.set(path, answer)
			}
			got := against(t, f, strings.Fields(line)...)
			if diff := cmp.Diff(want, got.out); diff != "" || got.code != 0 {
				t.Errorf("exit code %d, %s (-want +got):\n%s", got.code, got.err, diff)
			}
		})
	}
	f := fleet()
	f.set("GET /templates", list[v1.Template]())
	if got := against(t, f, "get", "templates"); got.out != "no templates\n" {
		t.Errorf("of none: %q", got.out)
	}
	if got := against(t, f, "get", "templates", "-o", "json"); got.out != "[]\n" {
		t.Errorf("of none, as JSON: %q", got.out)
	}
	if got := against(t, f, "get", "templates", "-o", "xml"); got.code != 2 {
		t.Errorf("as XML: %+v", got)
	}
}

func TestTemplateUpgrade(t *testing.T) {
	t.Parallel()
	one := v1.Upgrade{
		Repo: "shop", Key: "web", Template: "web", PullRequest: 7, URL: "https://forge.example/7", State: rollout.UpgradeOpen,
		Clusters: []v1.UpgradeCluster{{Name: "a", To: "1.5.0"}, {Name: "b", To: "1.5.0"}},
	}
	troubled := one
	troubled.PullRequest, troubled.URL, troubled.Trouble = 0, "", "the forge does not\nlet Holdfast push"
	for name, tc := range map[string]struct {
		line   string
		answer any
		code   int
		asked  string
		out    string
		err    string
	}{
		"clusters": {
			"a b", list(one), 0, `POST /api/v1/upgrades {"clusters":["a","b"]}`,
			"PULL REQUEST  TEMPLATE  TO     CLUSTERS  STATE  URL                      TROUBLE\n" +
				"shop#7        web       1.5.0  a, b      open   https://forge.example/7\n", "",
		},
		"labels": {
			"team=x,tier=gold region= --template web --to 1.5.0", list(one), 0,
			`POST /api/v1/upgrades {"labels":{"region":"","team":"x","tier":"gold"},"template":"web","to":"1.5.0"}`, "shop#7", "",
		},
		"all":     {"--all -o json", list(one), 0, `POST /api/v1/upgrades {"all":true}`, `"pullRequest": 7`, ""},
		"trouble": {"a", list(troubled), 3, "", "(not open yet)", ""},
		"nothing to propose": {
			"a", refusal{409, v1.Problem{Detail: "a is at web 1.5.0"}}, 3, "", "", "Error: nothing to propose: a is at web 1.5.0\n",
		},
		"may not":           {"a", refusal{403, v1.Problem{Detail: "token"}}, 1, "", "", "Error: token\n"},
		"nothing":           {"", nil, 2, "", "", "give clusters' names, or labels such as team=payments, or --all"},
		"too much":          {"a --all", nil, 2, "", "", "give clusters' names"},
		"no name":           {"A_b", nil, 2, "", "", `"A_b" is not a cluster's name`},
		"names and labels":  {"a team=x", nil, 2, "", "", `"a" is not a label`},
		"no label":          {"=x", nil, 2, "", "", `"=x" is not a label`},
		"two of one":        {"a=1,a=2", nil, 2, "", "", `label "a" is given twice`},
		"a trailing comma":  {"a=1,", nil, 2, "", "", `"" is not a label`},
		"an unknown format": {"a -o wide", nil, 2, "", "", "want table, json or yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fleet()
			if tc.answer != nil {
				f.set("POST /upgrades", tc.answer)
			}
			got := against(t, f, append([]string{"template", "upgrade"}, strings.Fields(tc.line)...)...)
			if got.code != tc.code || !strings.Contains(got.out, tc.out) || !strings.Contains(got.err, tc.err) {
				t.Errorf("= %d\nout %s\nerr %s\nwant %d %q %q", got.code, got.out, got.err, tc.code, tc.out, tc.err)
			}
			if tc.asked != "" && (len(f.asked) == 0 || f.asked[len(f.asked)-1] != tc.asked) {
				t.Errorf("asked %q, want at last %q", f.asked, tc.asked)
			}
		})
	}
}
