package server_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/seal"
	"github.com/holdfast-dev/holdfast/rollout"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/login"
	"github.com/holdfast-dev/holdfast/server/session"
)

// logins are real: sessions and personal tokens in a store, and no identity provider.
func logins(t *testing.T) server.Login {
	t.Helper()
	how, _ := loginsIn(t, nil)
	return how
}

func loginsIn(t *testing.T, tokens []server.Token) (server.Login, *datastore.Store) {
	t.Helper()
	keys, err := seal.NewKeyring([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	store, err := datastore.Open(t.Context(), datastore.Options{
		Path: filepath.Join(t.TempDir(), "holdfast.db"), Keys: keys, Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	desk, err := login.New(login.Options{
		Records: login.Records{People: store, Keys: store, Requests: store}, Rules: login.Rules{Tokens: tokens}, Audit: store,
		Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return server.Login{
		Sessions: store, Lists: store, People: desk, Tokens: desk, Pages: desk.Handler, Key: []byte("0123456789abcdef"),
		Times: session.Times{Check: 10 * time.Millisecond},
	}, store
}

// withSessions is a server whose sessions are in a store.
func withSessions(t *testing.T, w *world) (*httptest.Server, *datastore.Store) {
	t.Helper()
	var store *datastore.Store
	s := newServer(t, w, func(o *server.Options) {
		o.Audit = w
		o.API.Login, store = loginsIn(t, o.API.Tokens)
	})
	srv := httptest.NewTLSServer(s.API())
	t.Cleanup(srv.Close)
	return srv, store
}

// person is a browser that has logged in with a token, and its form token.
func logIn(t *testing.T, srv *httptest.Server, token string) (client *http.Client, form string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client = &http.Client{Transport: srv.Client().Transport, Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	got := send(t, client, "POST", srv.URL+"/login", url.Values{"token": {token}, "next": {"/runs/run-1"}}.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	if got.status != 303 || got.header.Get("Location") != "/runs/run-1" {
		t.Fatalf("login = %d %s", got.status, got.body)
	}
	who := send(t, client, "GET", srv.URL+"/api/v1/whoami", "").body
	_, form, _ = strings.Cut(who, `"formToken":"`)
	form, _, _ = strings.Cut(form, `"`)
	if form == "" || !strings.Contains(who, `"via":"session"`) {
		t.Fatalf("whoami = %s", who)
	}
	return client, form
}

func send(t *testing.T, client *http.Client, method, url, body string, headers ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(data)}
}

// Who has logged in may by a cookie what the token allows, and other sites may not.
func TestSessionAtTheAPI(t *testing.T) {
	t.Parallel()
	w := fleet()
	srv, _ := withSessions(t, w)
	client, form := logIn(t, srv, operatorToken)
	suspend := srv.URL + "/api/v1/clusters/prod-eu/suspend"
	for _, tc := range []struct {
		name, method, url string
		headers           []string
		want              int
	}{
		{"reads", "GET", srv.URL + "/api/v1/clusters", nil, 200},
		{"reads a page", "GET", srv.URL + "/runs/run-1", nil, 200},
		{"changes", "POST", suspend, []string{"X-CSRF-Token", form}, 200},
		{"without the form token", "POST", suspend, nil, 403},
		{"with another one", "POST", suspend, []string{"X-CSRF-Token", "x" + form}, 403},
		{"from another site", "POST", suspend, []string{"X-CSRF-Token", form, "Sec-Fetch-Site", "cross-site"}, 403},
		{"from another origin", "POST", suspend, []string{"X-CSRF-Token", form, "Origin", "https://evil.example.com"}, 403},
	} {
		if got := send(t, client, tc.method, tc.url, "", tc.headers...); got.status != tc.want {
			t.Errorf("%s: %d %s, want %d", tc.name, got.status, got.body, tc.want)
		}
	}
	if got := send(t, client, "POST", srv.URL+"/api/v1/commands", `{"verb":"approve","clusters":["prod-eu"]}`, "X-CSRF-Token", form); got.status != 403 {
		t.Errorf("an operator approves: %d %s", got.status, got.body)
	}
}

// A browser without a session is asked to log in, and comes back to where it was going.
func TestPageAsksToLogIn(t *testing.T) {
	t.Parallel()
	srv, _ := withSessions(t, fleet())
	client := &http.Client{Transport: srv.Client().Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	got := send(t, client, "GET", srv.URL+"/runs/run-1?x=y", "", "Accept", "text/html")
	if got.status != 303 || got.header.Get("Location") != "/login?next=%2Fruns%2Frun-1%3Fx%3Dy" {
		t.Errorf("page = %d %s", got.status, got.header.Get("Location"))
	}
	login := send(t, client, "GET", srv.URL+got.header.Get("Location"), "")
	if login.status != 200 || !strings.Contains(login.body, `name="next" value="/runs/run-1?x=y"`) || !strings.Contains(login.header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
		t.Errorf("login page = %d %s", login.status, login.body)
	}
}

// A stream of events ends when the session does.
func TestStreamEndsWithItsSession(t *testing.T) {
	t.Parallel()
	srv, store := withSessions(t, fleet())
	client, _ := logIn(t, srv, viewerToken)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	buffer := make([]byte, 1)
	if _, err := res.Body.Read(buffer); res.StatusCode != 200 || err != nil {
		t.Fatalf("events = %d, %v", res.StatusCode, err)
	}
	sessions, err := store.Sessions(ctx, access.PersonID{})
	if err != nil || len(sessions) != 1 {
		t.Fatalf("sessions: %v, %v", sessions, err)
	}
	if err := store.EndSession(ctx, sessions[0].ID); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil { // until its end
		t.Errorf("the stream was cut: %v", err)
	}
	if got := send(t, client, "GET", srv.URL+"/api/v1/events", ""); got.status != 401 {
		t.Errorf("who connects again gets %d", got.status)
	}
}

// What a session does is on record with from where it was done.
func TestOriginIsOnRecord(t *testing.T) {
	t.Parallel()
	w := fleet()
	var origin string
	w.obey = func(ctx context.Context) string { origin = holdfast.OriginOf(ctx); return "planned" }
	srv, _ := withSessions(t, w)
	client, form := logIn(t, srv, operatorToken)
	got := send(t, client, "POST", srv.URL+"/api/v1/commands", `{"verb":"plan","clusters":["prod-eu"]}`, "X-CSRF-Token", form, "X-Forwarded-For", "203.0.113.9")
	if got.status != 200 || !strings.HasPrefix(origin, "127.0.0.1 for 203.0.113.9, session ses-") {
		t.Errorf("plan = %d %s, asked for from %q", got.status, got.body, origin)
	}
}

// A token that somebody makes allows what it is for, and no more than its maker.
func TestPersonalTokens(t *testing.T) {
	t.Parallel()
	w := fleet()
	srv, _ := withSessions(t, w)
	client := srv.Client()
	ask := func(token, body string) answer {
		return send(t, client, "POST", srv.URL+"/api/v1/tokens", body, "Authorization", "Bearer "+token)
	}
	secretOf := func(a answer) (secret, id string) {
		t.Helper()
		var made struct{ Secret, ID string }
		if err := json.Unmarshal([]byte(a.body), &made); err != nil || a.status != 201 || made.Secret == "" {
			t.Fatalf("token = %d %s", a.status, a.body)
		}
		return made.Secret, made.ID
	}
	for body, want := range map[string]string{
		`{"name":"x","role":"root","lifetime":"1h"}`: "want viewer, operator", `{"name":"","role":"viewer","lifetime":"1h"}`: "needs a name",
		`{"name":"x","role":"viewer","lifetime":"1s"}`: "lasts between", `{"name":"x","role":"viewer","lifetime":"99999h"}`: "lasts between",
		`{"name":"x","role":"viewer","lifetime":"soon"}`: "want a duration", `{"name":"x","role":"viewer","lifetime":"1h","projects":["*"]}`: "projects must be names",
	} {
		if got := ask(operatorToken, body); got.status != 400 || !strings.Contains(got.body, want) {
			t.Errorf("%s = %d %s", body, got.status, got.body)
		}
	}
	weak, weakID := secretOf(ask(adminToken, `{"name":"reports","role":"viewer","projects":["web"],"lifetime":"1h"}`))
	strong, _ := secretOf(ask(operatorToken, `{"name":"all","role":"admin","lifetime":"2h"}`))
	get := func(token, path string) answer {
		return send(t, client, "GET", srv.URL+path, "", "Authorization", "Bearer "+token)
	}
	if got := get(weak, "/api/v1/whoami").body; !strings.Contains(got, `"roles":[{"project":"web","role":"viewer"}],"via":"personal"`) {
		t.Errorf("a token for one project is %s", got)
	}
	if got := get(weak, "/api/v1/clusters/prod-eu"); got.status != 404 {
		t.Errorf("it sees a cluster of another project: %d", got.status)
	}
	if got := get(strong, "/api/v1/whoami").body; !strings.Contains(got, `"roles":[{"project":"*","role":"operator"}]`) || !strings.Contains(got, `"name":"otto"`) {
		t.Errorf("an operator's token for everything is %s", got)
	}
	if got := ask(weak, `{"name":"more","role":"operator","lifetime":"1h"}`); got.status != 403 {
		t.Errorf("a token makes a stronger one: %d %s", got.status, got.body)
	}
	var made struct{ CreatedAt, ExpiresAt time.Time }
	if got := ask(weak, `{"name":"less","role":"viewer","projects":["web"],"lifetime":"99h"}`); json.Unmarshal([]byte(got.body), &made) != nil || made.ExpiresAt.Sub(made.CreatedAt) > time.Hour {
		t.Errorf("a token makes one that outlives it: %s", got.body)
	}
	if got := get(strong, "/api/v1/tokens").body; !strings.Contains(got, `"name":"all"`) || strings.Contains(got, "reports") || strings.Contains(got, strong) {
		t.Errorf("tokens of otto are %s", got)
	}
	if got := get(strong, "/api/v1/tokens?all=true"); got.status != 403 {
		t.Errorf("an operator lists everybody's: %d %s", got.status, got.body)
	}
	if got := get(adminToken, "/api/v1/tokens?all=true").body; !strings.Contains(got, `"name":"all"`) || !strings.Contains(got, "reports") {
		t.Errorf("tokens of everybody are %s", got)
	}
	remove := func(token, path string) answer {
		return send(t, client, "DELETE", srv.URL+path, "", "Authorization", "Bearer "+token)
	}
	there, never := remove(strong, "/api/v1/tokens/"+weakID), remove(strong, "/api/v1/tokens/tok-never")
	if there.status != 404 || never.status != 404 || strings.ReplaceAll(there.body, weakID, "tok-never") != never.body {
		t.Errorf("another's token is %s, one that never was %s", there.body, never.body)
	}
	if got := remove(adminToken, "/api/v1/tokens/"+weakID); got.status != 200 {
		t.Errorf("delete = %d %s", got.status, got.body)
	}
	if got := get(weak, "/api/v1/whoami"); got.status != 401 {
		t.Errorf("a token that was deleted: %d", got.status)
	}
}

// Who has logged in sees and ends their own sessions; an administrator those of everybody.
func TestSessionsAreEnded(t *testing.T) {
	t.Parallel()
	srv, store := withSessions(t, fleet())
	client, form := logIn(t, srv, operatorToken)
	other, _ := logIn(t, srv, viewerToken)
	sessions, err := store.Sessions(t.Context(), access.PersonID{})
	if err != nil || len(sessions) != 2 {
		t.Fatalf("sessions: %v, %v", sessions, err)
	}
	list := send(t, client, "GET", srv.URL+"/api/v1/sessions", "").body
	for _, one := range sessions {
		if strings.Contains(list, one.ID) != (one.Name == "otto") {
			t.Errorf("sessions of otto are %s", list)
		}
		want := map[bool]int{true: 200, false: 404}[one.Name == "otto"]
		if one.Name == "vera" {
			if got := send(t, client, "DELETE", srv.URL+"/api/v1/sessions/"+one.ID, "", "X-CSRF-Token", form); got.status != want {
				t.Errorf("otto ends that of %s: %d %s", one.Name, got.status, got.body)
			}
			got := send(t, srv.Client(), "DELETE", srv.URL+"/api/v1/sessions/"+one.ID+"?all=true", "", "Authorization", "Bearer "+adminToken)
			if got.status != 200 {
				t.Errorf("an administrator ends it: %d %s", got.status, got.body)
			}
		}
	}
	if got := send(t, other, "GET", srv.URL+"/api/v1/whoami", ""); got.status != 401 {
		t.Errorf("the session that was ended: %d", got.status)
	}
	if got := send(t, client, "GET", srv.URL+"/api/v1/whoami", ""); got.status != 200 {
		t.Errorf("the other one: %d", got.status)
	}
}

// Who may not approve applies what was reviewed before its merge, whatever plan is named.
func TestOperatorAppliesWhatWasReviewed(t *testing.T) {
	t.Parallel()
	w := fleet()
	url := serve(t, newServer(t, w, func(o *server.Options) {
		o.API.Tokens = append(o.API.Tokens,
			server.Token{Name: "vic", Role: access.Approver, SHA256: server.HashToken("approver-token"), Projects: []string{"payments"}})
	}).API())
	for _, tc := range []struct{ token, body, want string }{
		{operatorToken, `{"verb":"apply","clusters":["prod-eu"],"shown":["run-1"]}`, `["prod-eu"],null,""]`},
		{operatorToken, `{"verb":"apply","run":"run-1"}`, `["prod-eu"],null,""]`},
		{"approver-token", `{"verb":"apply","clusters":["prod-eu"],"shown":["run-1"]}`, `["prod-eu"],["run-1"],""]`},
		{adminToken, `{"verb":"apply","clusters":["prod-eu"],"shown":["run-1"]}`, `["prod-eu"],["run-1"],""]`},
	} {
		got := request(t, "POST", url+"/api/v1/commands", tc.token, tc.body)
		calls := w.noted()
		if got.status != 200 || len(calls) == 0 || !strings.HasSuffix(calls[len(calls)-1], tc.want) {
			t.Errorf("%s by %s = %d %s: %v, want %s", tc.body, tc.token, got.status, got.body, calls, tc.want)
		}
	}
}

// Who proposes a change is recorded as who asked for it.
func TestRequesterIsRecorded(t *testing.T) {
	t.Parallel()
	w := fleet()
	_, store := loginsIn(t, nil)
	url := serve(t, newServer(t, w, func(o *server.Options) { o.API.Asked = store }).API())
	w.upgrades = []rollout.Upgrade{{Repo: "shop", PullRequest: 7}, {Repo: "shop"}}
	if got := request(t, "POST", url+"/api/v1/upgrades", operatorToken, `{"all":true}`); got.status != 200 {
		t.Fatalf("upgrade = %d %s", got.status, got.body)
	}
	owners, err := store.Requesters(t.Context(), holdfast.PullRequestRef{Repo: "shop", Number: 7})
	if err != nil || len(owners) != 1 || owners[0] != "token otto" {
		t.Errorf("requesters are %v, %v", owners, err)
	}
}
