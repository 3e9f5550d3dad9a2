package server_test

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

const formType = "application/x-www-form-urlencoded"

// TestButtons: a form of a page does what the API does for that person, and the page that it
// leads back to says its outcome, once. Forms of other sessions and sites do nothing.
func TestButtons(t *testing.T) {
	t.Parallel()
	w := console()
	srv, _ := withSessions(t, w)
	client, form := logIn(t, srv, operatorToken)
	page := func() string {
		return send(t, client, "GET", srv.URL+"/clusters/prod-eu", "", "Accept", "text/html").body
	}
	if first := page(); !strings.Contains(first, `action="/act"`) || !strings.Contains(first, form) {
		t.Fatalf("no buttons: %.3000s", first)
	}
	act := func(token string, more ...string) answer {
		values := url.Values{"csrf": {token}, "back": {"/clusters/prod-eu"}}
		for i := 0; i+1 < len(more); i += 2 {
			values.Add(more[i], more[i+1])
		}
		return send(t, client, "POST", srv.URL+"/act", values.Encode(), "Content-Type", formType)
	}
	for _, tc := range []struct {
		name  string
		form  []string
		call  string // that the server made
		said  string
		token string
	}{
		{"plan", []string{"do", "plan", "cluster", "prod-eu"}, "command plan by ", "Plan: done", form},
		{"apply of a run", []string{"do", "apply", "run", "run-1"}, "command apply by ", "Apply: done", form},
		{"suspend", []string{"do", "suspend", "cluster", "prod-eu", "reason", "moving"}, "suspend", "prod-eu is suspended", form},
		{"resume", []string{"do", "resume", "cluster", "prod-eu"}, "", "no longer suspended", form},
		{"not confirmed", []string{"do", "apply", "cluster", "prod-eu", "expect", "prod-eu", "typed", "prod"}, "", "Nothing was done", form},
		{"approve takes a role", []string{"do", "approve", "cluster", "prod-eu"}, "", "approve requires approver", form},
		{"what is not there", []string{"do", "suspend", "cluster", "nobody"}, "", "not found", form},
		{"another session's form", []string{"do", "plan", "cluster", "prod-eu"}, "", "belongs to another session", "x"},
		{"no such action", []string{"do", "drop", "cluster", "prod-eu"}, "", "is not an action", form},
	} {
		before := len(w.noted())
		if got := act(tc.token, tc.form...); got.status != http.StatusSeeOther || got.header.Get("Location") != "/clusters/prod-eu" {
			t.Fatalf("%s = %d to %s: %.500s", tc.name, got.status, got.header.Get("Location"), got.body)
		}
		calls := w.noted()[before:]
		done := slices.ContainsFunc(calls, func(call string) bool { return tc.call != "" && strings.Contains(call, tc.call) })
		if commanded := slices.ContainsFunc(calls, func(call string) bool { return strings.HasPrefix(call, "command") }); done != (tc.call != "") || tc.call == "" && commanded {
			t.Errorf("%s made the server do %q", tc.name, calls)
		}
		if said := page(); !strings.Contains(said, `id="said"`) || !strings.Contains(said, tc.said) {
			t.Errorf("%s: the page does not say %q: %.2500s", tc.name, tc.said, said[strings.Index(said, "<main"):])
		}
		if strings.Contains(page(), `id="said"`) {
			t.Errorf("%s: the page says it again", tc.name)
		}
	}
	cross := send(t, client, "POST", srv.URL+"/act", url.Values{"csrf": {form}, "do": {"plan"}, "cluster": {"prod-eu"}, "back": {"/"}}.Encode(), "Content-Type", formType, "Sec-Fetch-Site", "cross-site")
	if cross.status == http.StatusOK || strings.Contains(strings.Join(w.noted()[len(w.noted())-1:], ""), "cross") {
		t.Errorf("another site's form = %d", cross.status)
	}
	send(t, client, "POST", srv.URL+"/logout", url.Values{"csrf": {form}}.Encode(), "Content-Type", formType)
	if late := act(form, "do", "plan", "cluster", "prod-eu"); late.status != http.StatusSeeOther || !strings.HasPrefix(late.header.Get("Location"), "/login?next=%2Fclusters%2Fprod-eu") {
		t.Errorf("after the session = %d to %s", late.status, late.header.Get("Location"))
	}
}

// TestButtonsAreForSessions: a browser sends a password whoever asks for it, so that a page
// that was opened with one has no buttons, and takes no form.
func TestButtonsAreForSessions(t *testing.T) {
	t.Parallel()
	w := console()
	srv, _ := withSessions(t, w)
	secret := "Basic " + base64.StdEncoding.EncodeToString([]byte("anybody:"+operatorToken))
	if page := send(t, srv.Client(), "GET", srv.URL+"/clusters/prod-eu", "", "Accept", "text/html", "Authorization", secret); page.status != 200 || strings.Contains(page.body, `action="/act"`) {
		t.Errorf("a page for a password = %d, or has buttons", page.status)
	}
	got := send(t, srv.Client(), "POST", srv.URL+"/act", "do=plan&cluster=prod-eu&back=/", "Content-Type", formType, "Authorization", secret)
	if slices.ContainsFunc(w.noted(), func(call string) bool { return strings.HasPrefix(call, "command") }) || strings.Contains(got.body, "Plan: done") {
		t.Errorf("a form with a password = %d, %v", got.status, w.noted())
	}
}

// TestButtonsByRight: what somebody may not do in a project is not offered there; what a plan
// would destroy is named first.
func TestButtonsByRight(t *testing.T) {
	t.Parallel()
	w := console()
	c := w.clusters["prod-eu"]
	c.Waiting = holdfast.ReasonUnreviewed
	w.clusters["prod-eu"] = c
	for _, tc := range []struct {
		token         string
		want, notWant []string
	}{
		{viewerToken, nil, []string{`action="/act"`}},
		{operatorToken, []string{"Plan again", "Suspend"}, []string{">Approve<"}},
	} {
		srv, _ := withSessions(t, w)
		client, _ := logIn(t, srv, tc.token)
		body := send(t, client, "GET", srv.URL+"/clusters/prod-eu", "", "Accept", "text/html").body
		for _, want := range tc.want {
			if !strings.Contains(body, want) {
				t.Errorf("the page lacks %q: %.4000s", want, body[strings.Index(body, "<main"):])
			}
		}
		for _, not := range tc.notWant {
			if strings.Contains(body, not) {
				t.Errorf("the page has %q", not)
			}
		}
	}
}
