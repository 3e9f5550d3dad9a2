package server_test

import (
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/rollout"
	"github.com/holdfast-dev/holdfast/server"
)

// TestChangeFormUndoesNothing: what somebody else has changed since a form was opened is not
// changed back by who has not touched it, and not overwritten unseen by who has.
func TestChangeFormUndoesNothing(t *testing.T) {
	t.Parallel()
	w, p := console(), &proposing{}
	w.templates = []rollout.TemplateStatus{{Name: "eks", Repo: "shop", Versions: []rollout.TemplateRelease{{Version: "1.0.0"}}}}
	is := func(variables map[string]any) {
		rec := w.clusters["prod-eu"]
		rec.Desired.Document.Template = &holdfast.TemplateRef{Name: "eks", Version: "1.0.0"}
		rec.Desired.Document.Name, rec.Desired.Document.Project, rec.Desired.Document.Provider = "prod-eu", "payments", "aws"
		rec.Desired.Document.Variables = variables
		w.clusters["prod-eu"] = rec
	}
	is(map[string]any{"size": "small", "nodes": 3, "open": true})
	s := newServer(t, w, func(o *server.Options) {
		o.Audit, o.API.Proposer, o.API.Asked = w, p, p
		o.API.Login, _ = loginsIn(t, o.API.Tokens)
	})
	srv := httptest.NewTLSServer(s.API())
	t.Cleanup(srv.Close)
	client, _ := logIn(t, srv, operatorToken)
	input := regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)"`)
	hidden := func(page string) url.Values { // what the form sends without anybody's doing
		form := url.Values{}
		_, page, _ = strings.Cut(page, `<form id="proposal"`)
		for _, found := range input.FindAllStringSubmatch(page, -1) {
			form.Set(found[1], found[2])
		}
		return form
	}
	opened := send(t, client, "GET", srv.URL+"/clusters/prod-eu/change", "", "Accept", "text/html")
	post := func(form url.Values, nodes string) answer {
		for name, value := range map[string]string{"version": "1.0.0", "provider": "aws", "region": "", "v.size": "small", "v.nodes": nodes, "v.open": "true", "then": "propose"} {
			form.Set(name, value)
		}
		return send(t, client, "POST", srv.URL+"/new", form.Encode(), "Content-Type", formType, "Accept", "text/html")
	}
	asked := func() string {
		last := p.asked[len(p.asked)-1]
		if last.DryRun {
			return "nothing"
		}
		return strings.Join(last.Set, "|")
	}
	is(map[string]any{"size": "large", "nodes": 3}) // by somebody else, in the meantime
	if got := post(hidden(opened.body), "5"); got.status != 303 || asked() != "variables.nodes=5" {
		t.Errorf("sent = %d, asked for %q: %.3000s", got.status, asked(), got.body)
	}
	is(map[string]any{"size": "large", "nodes": 7})
	again := post(hidden(opened.body), "5")
	if again.status != 200 || asked() != "nothing" || !strings.Contains(again.body, "nodes is &#34;7&#34; now") || !strings.Contains(again.body, `value="5"`) {
		t.Errorf("over what somebody else has written = %d, asked for %q: %.9000s", again.status, asked(), again.body)
	}
	if got := post(hidden(again.body), "5"); got.status != 303 || !strings.Contains(asked(), "variables.nodes=5") {
		t.Errorf("sent again = %d, asked for %q", got.status, asked())
	}
}
