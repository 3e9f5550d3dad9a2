package server_test

import (
	"context"
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
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/session"
)

// withSessions is a server whose sessions are in a store.
func withSessions(t *testing.T, w *world) (*httptest.Server, *datastore.Store) {
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
	s := newServer(t, w, func(o *server.Options) {
		o.Audit = w
		o.API.Login = server.Login{Sessions: store, Key: []byte("0123456789abcdef"), Times: session.Times{Check: 10 * time.Millisecond}}
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
