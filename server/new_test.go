package server_test

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/rollout"
	"github.com/holdfast-dev/holdfast/server"
)

// formSite is a server with sessions and somebody who makes proposals.
func formSite(t *testing.T) (*httptest.Server, *proposing) {
	t.Helper()
	w, p := console(), &proposing{}
	w.templates = []rollout.TemplateStatus{{Name: "eks", Repo: "shop", Versions: []rollout.TemplateRelease{{Version: "1.0.0"}, {Version: "0.9.0", Unusable: "its tag was moved"}}}}
	s := newServer(t, w, func(o *server.Options) {
		o.Audit, o.API.Proposer, o.API.Asked = w, p, p
		o.API.Login, _ = loginsIn(t, o.API.Tokens)
	})
	srv := httptest.NewTLSServer(s.API())
	t.Cleanup(srv.Close)
	return srv, p
}

// TestNewClusterForm: the form is made of the template's schema; what it makes is shown with
// what is wrong, and becomes a pull request of whoever sends it.
func TestNewClusterForm(t *testing.T) {
	t.Parallel()
	srv, p := formSite(t)
	client, form := logIn(t, srv, operatorToken)
	get := func(path string) string {
		return send(t, client, "GET", srv.URL+path, "", "Accept", "text/html").body
	}
	if choice := get("/new"); !strings.Contains(choice, `href="/new?template=eks&amp;version=1.0.0"`) {
		t.Errorf("nothing to choose from: %.3000s", choice[strings.Index(choice, "<main"):])
	}
	page := get("/new?template=eks")
	for _, want := range []string{
		`name="v.size"`, `<option value="small"`, "How large &lt;b&gt;", "1 to 9", `placeholder="5"`, "a large one needs three zones", `<option value="aws" selected`, `<option value="eu-1">`,
		"say where it is, never the value", `<option value="true"`, `name="csrf" value="` + form,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the form lacks %q: %.9000s", want, page[strings.Index(page, "<main"):])
		}
	}
	typed := url.Values{
		"csrf": {form}, "change": {"create"}, "template": {"eks"}, "version": {"1.0.0"}, "provider": {"aws"}, "region": {"eu-1"}, "cluster": {"new"}, "project": {"payments"}, "environment": {"prod"},
		"v.size": {"large"}, "v.nodes": {"7"}, "v.zones": {"[a, b]"}, "v.open": {""}, "v.key": {"secret: {env: KEY}"},
	}
	post := func(values url.Values, then string) answer {
		values.Set("then", then)
		return send(t, client, "POST", srv.URL+"/new", values.Encode(), "Content-Type", formType, "Accept", "text/html")
	}
	if got := post(typed, "check"); got.status != 200 || !strings.Contains(got.body, "kind: Cluster") || !strings.Contains(got.body, "It is valid") || !strings.Contains(got.body, `value="7"`) {
		t.Errorf("checked = %d %.9000s", got.status, got.body)
	}
	asked := p.asked[len(p.asked)-1]
	if set := strings.Join(asked.Set, "|"); !asked.DryRun || asked.Name != "new" || set != `project="payments"|environment="prod"|template.name="eks"|template.version="1.0.0"|provider="aws"|region="eu-1"|variables.size="large"|variables.key=secret: {env: KEY}|variables.nodes=7|variables.zones=[a, b]` {
		t.Errorf("asked for %+v", asked)
	}
	bad := url.Values{}
	for name, values := range typed {
		bad[name] = values
	}
	bad.Set("cluster", "bad")
	if got := post(bad, "propose"); got.status != 200 || !strings.Contains(got.body, "clusters/<wbr>new.<wbr>yaml:6:12") {
		t.Errorf("with faults = %d %.9000s", got.status, got.body[strings.Index(got.body, "<main"):])
	}
	veiled, before := url.Values{}, len(p.asked)
	for name, values := range typed {
		veiled[name] = values
	}
	veiled.Set("v.key", "(sensitive value)")
	if got := post(veiled, "propose"); got.status != 200 || !strings.Contains(got.body, "is not shown here") || len(p.asked) != before {
		t.Errorf("what only stands for a value = %d %.9000s, asked for %+v", got.status, got.body, p.asked[before:])
	}
	if len(p.requesters) > 0 {
		t.Errorf("something was proposed: %q", p.requesters)
	}
	got := post(typed, "propose")
	if got.status != 303 || got.header.Get("Location") != "/pullrequests/9/shop" || len(p.requesters) != 1 || !strings.Contains(p.requesters[0], "shop#9 ") {
		t.Errorf("proposed = %d to %s, requesters %q: %.3000s", got.status, got.header.Get("Location"), p.requesters, got.body)
	}
}

// TestNewClusterFormLosesNothing: a session that has ended, one that is another by now, and a
// version that is gone keep what was typed, and nothing is proposed by them.
func TestNewClusterFormLosesNothing(t *testing.T) {
	t.Parallel()
	srv, p := formSite(t)
	client, form := logIn(t, srv, operatorToken)
	typed := func(csrf, version string) string {
		return url.Values{"csrf": {csrf}, "change": {"create"}, "template": {"eks"}, "version": {version}, "cluster": {"new"}, "v.zones": {"[\"x\", <b>]"}, "v.other": {"kept"}, "then": {"propose"}}.Encode()
	}
	post := func(body string, more ...string) answer {
		return send(t, client, "POST", srv.URL+"/new", body, append([]string{"Content-Type", formType, "Accept", "text/html"}, more...)...)
	}
	gone := post(typed(form, "0.9.0"))
	if gone.status != 200 {
		t.Fatalf("a version that is gone = %d %s", gone.status, gone.body)
	}
	for _, want := range []string{"can no longer be used", "there is no such tag", "&lt;b&gt;]", `kept`, `<option value="0.9.0" selected`, `<option value="1.0.0"`} {
		if !strings.Contains(gone.body, want) {
			t.Errorf("a version that is gone: no %q in %.6000s", want, gone.body)
		}
	}
	away := post(strings.Replace(typed(form, "1.0.0"), "cluster=new", "cluster=away", 1))
	if away.status != 200 || !strings.Contains(away.body, "code host does not answer") || !strings.Contains(away.body, "&lt;b&gt;]") {
		t.Errorf("without a code host = %d %.6000s", away.status, away.body)
	}
	stale := post(typed("of-another-session", "1.0.0"))
	if stale.status != 200 || !strings.Contains(stale.body, "signed in again since") || !strings.Contains(stale.body, `value="`+form) || !strings.Contains(stale.body, "&lt;b&gt;]") {
		t.Errorf("another session's form = %d %.6000s", stale.status, stale.body)
	}
	if cross := post(typed(form, "1.0.0"), "Sec-Fetch-Site", "cross-site"); cross.status != 403 {
		t.Errorf("another site's form = %d", cross.status)
	}
	send(t, client, "POST", srv.URL+"/logout", url.Values{"csrf": {form}}.Encode(), "Content-Type", formType)
	over := post(typed(form, "1.0.0"))
	if over.status != 401 || !strings.Contains(over.body, "Your session has ended") || !strings.Contains(over.body, `name="v.zones" value="[&#34;x&#34;, &lt;b&gt;]"`) || strings.Contains(over.body, form) {
		t.Errorf("after the session = %d %.4000s", over.status, over.body)
	}
	for _, asked := range p.asked {
		if !asked.DryRun && asked.Name != "away" {
			t.Errorf("proposed %+v", asked)
		}
	}
}

// TestNewClusterFormTakesARole: who may only look is told so.
func TestNewClusterFormTakesARole(t *testing.T) {
	t.Parallel()
	srv, _ := formSite(t)
	client, _ := logIn(t, srv, viewerToken)
	if got := send(t, client, "GET", srv.URL+"/new", "", "Accept", "text/html"); got.status != 403 || !strings.Contains(got.body, "role operator") {
		t.Errorf("/new = %d %.500s", got.status, got.body)
	}
	if got := send(t, client, "GET", srv.URL+"/", "", "Accept", "text/html"); strings.Contains(got.body, "New cluster") {
		t.Error("the fleet offers a new cluster")
	}
}
