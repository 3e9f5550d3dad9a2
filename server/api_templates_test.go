package server_test

import (
	"strings"
	"testing"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/rollout"
)

func TestTemplates(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.templates = []rollout.TemplateStatus{
		{Name: "kubernetes", Repo: "blueprints", Users: []rollout.TemplateUse{{Cluster: "prod-eu", Version: "1.4.2", Behind: 2}}},
		{Name: "web", Repo: "blueprints"},
	}
	url := serve(t, newServer(t, w).API()) + "/api/v1/templates"
	all := decoded[v1.List[rollout.TemplateStatus]](t, request(t, "GET", url, viewerToken, "")).Items
	if len(all) != 2 || all[0].Users[0].Behind != 2 {
		t.Errorf("templates = %+v, want both", all)
	}
	one := decoded[rollout.TemplateStatus](t, request(t, "GET", url+"/web", viewerToken, ""))
	if one.Name != "web" {
		t.Errorf("template = %+v, want web", one)
	}
	for path, want := range map[string]int{"/none": 404, "?nme=web": 400} {
		if got := request(t, "GET", url+path, viewerToken, ""); got.status != want {
			t.Errorf("%s = %d %s, want %d", path, got.status, got.body, want)
		}
	}
}

func TestUpgrades(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		token, body string
		want        int
		said        string // in the answer and the calls
	}{
		"of clusters":       {operatorToken, `{"clusters":["a","b"]}`, 200, `upgrade [a b] map[] all=false template="" to="" by otto`},
		"by labels":         {operatorToken, `{"labels":{"team":"x"},"template":"web","to":"1.5.0"}`, 200, `upgrade [] map[team:x] all=false template="web" to="1.5.0" by otto`},
		"of all":            {operatorToken, `{"all":true}`, 200, `"pullRequest":7`},
		"as somebody else":  {operatorToken, `{"all":true,"actor":"root"}`, 400, `unknown field`},
		"of nothing":        {operatorToken, `{}`, 400, "give one of clusters, labels and all"},
		"of too much":       {operatorToken, `{"all":true,"clusters":["a"]}`, 400, "give one of clusters, labels and all"},
		"to a constraint":   {operatorToken, `{"all":true,"to":"~> 1.4"}`, 400, "want an exact one"},
		"with a typo":       {operatorToken, `{"al":true}`, 400, "unknown field"},
		"by who may not":    {viewerToken, `{"all":true}`, 403, "operator"},
		"nothing is behind": {operatorToken, `{"clusters":["none"]}`, 409, `nothing is behind"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			if tc.want == 200 {
				w.upgrades = []rollout.Upgrade{{Repo: "shop", Key: "web", PullRequest: 7}}
			}
			got := request(t, "POST", serve(t, newServer(t, w).API())+"/api/v1/upgrades", tc.token, tc.body)
			if said := got.body + strings.Join(w.noted(), "\n"); got.status != tc.want || !strings.Contains(said, tc.said) {
				t.Errorf("answer = %d %s, want %d %s", got.status, said, tc.want, tc.said)
			}
		})
	}
}
