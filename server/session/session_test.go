package session_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/seal"
	"github.com/holdfast-dev/holdfast/server/session"
)

const (
	anna, otto = "token-of-anna-1234", "token-of-otto-5678"
	cookieName = "__Host-holdfast-session"
)

// site is a server with a page that says who asks, and that takes a form.
type site struct {
	*httptest.Server
	dir      string
	now      atomic.Int64
	store    *datastore.Store
	sessions *session.Sessions
}

func (s *site) time() time.Time         { return time.Unix(0, s.now.Load()).UTC() }
func (s *site) advance(d time.Duration) { s.now.Add(int64(d)) }

func tokens() []session.Token {
	return []session.Token{
		{Name: "anna", Role: access.Admin, SHA256: session.HashToken(anna)},
		{Name: "otto", Role: access.Operator, SHA256: session.HashToken(otto), Projects: []string{"payments"}},
	}
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{dir: t.TempDir()}
	s.now.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixNano())
	keys, err := seal.NewKeyring([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	s.store, err = datastore.Open(t.Context(), datastore.Options{Path: filepath.Join(s.dir, "holdfast.db"), Keys: keys, Now: s.time})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.store.Close() })
	s.configure(t, tokens())
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == session.LoginPath || r.URL.Path == session.LogoutPath || r.URL.Path == session.OncePath {
			s.sessions.Handler(nil, "").ServeHTTP(w, r)
			return
		}
		who, err := s.sessions.Of(w, r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		if err := s.sessions.Guard(w, r, who); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		fmt.Fprintf(w, "%s %s %s %s", who.Name, who.Via, who.Grants.Role("payments"), s.sessions.FormToken(who))
	}))
	t.Cleanup(s.Close)
	return s
}

// configure is a restart with other tokens.
func (s *site) configure(t *testing.T, tokens []session.Token) {
	t.Helper()
	var err error
	s.sessions, err = session.New(session.Options{
		Store: s.store, Tokens: tokens, Key: []byte("0123456789abcdef"), Audit: s.store, Now: s.time,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// browser is one with its own cookies, which follows no redirect.
type browser struct {
	t      *testing.T
	site   *site
	client *http.Client
}

func (s *site) browser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: s.Client().Transport, Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &browser{t, s, client}
}

type answer struct {
	status int
	body   string
	header http.Header
}

func (b *browser) do(method, path string, form url.Values, headers ...string) answer {
	b.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.site.URL+path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := b.client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer{res.StatusCode, string(data), res.Header}
}

func (b *browser) login(token string) answer {
	b.t.Helper()
	got := b.do("POST", "/login", url.Values{"token": {token}, "next": {"/clusters?phase=Active"}})
	if got.status != http.StatusSeeOther || got.header.Get("Location") != "/clusters?phase=Active" {
		b.t.Fatalf("login = %d %s %s", got.status, got.header.Get("Location"), got.body)
	}
	return got
}

// cookie is what the browser shows.
func (b *browser) cookie() string {
	at, _ := url.Parse(b.site.URL)
	for _, cookie := range b.client.Jar.Cookies(at) {
		if cookie.Name == cookieName {
			return cookie.Value
		}
	}
	return ""
}

func (b *browser) put(value string) {
	at, _ := url.Parse(b.site.URL)
	b.client.Jar.SetCookies(at, []*http.Cookie{{Name: cookieName, Value: value, Path: "/", Secure: true}})
}

func (b *browser) is(what string, status int, text string) answer {
	b.t.Helper()
	got := b.do("GET", "/", nil)
	if got.status != status || !strings.Contains(got.body, text) {
		b.t.Errorf("%s: %d %q, want %d %q", what, got.status, got.body, status, text)
	}
	return got
}

func TestTokenIsExchangedForASession(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.browser(t)
	b.is("a stranger", 401, "missing or unknown")
	if got := b.do("POST", "/login", url.Values{"token": {"guessed-token-1234"}}); got.status != 401 || b.cookie() != "" || strings.Contains(got.body, "guessed") {
		t.Errorf("a guessed token: %d %s", got.status, got.body)
	}
	got := b.login(otto)
	set := got.header.Get("Set-Cookie")
	for _, want := range []string{cookieName + "=", "Path=/", "HttpOnly", "Secure", "SameSite=Lax"} {
		if !strings.Contains(set, want) {
			t.Errorf("cookie %q lacks %s", set, want)
		}
	}
	b.is("who has logged in", 200, "otto session operator ")
	if got := b.do("GET", "/login?next=/x", nil); got.status != 303 || got.header.Get("Location") != "/x" {
		t.Errorf("the login page of who has logged in: %d %s", got.status, got.header.Get("Location"))
	}
	trail, err := s.store.AuditTrail(t.Context(), "", 0)
	if err != nil || len(trail) != 1 || trail[0].Actor != "otto" || trail[0].Action != "session.begin" || !strings.Contains(trail[0].Origin, "127.0.0.1, session ses-") {
		t.Errorf("audit trail: %+v, %v", trail, err)
	}
	for _, file := range files(t, s.dir) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte(b.cookie())) || bytes.Contains(data, []byte(otto)) {
			t.Errorf("%s has the cookie or the token in it", file)
		}
	}
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			all = append(all, path)
		}
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	return all
}

// An id that somebody else has chosen is not taken, and each login has another one.
func TestSessionIsNotFixed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.browser(t)
	b.put("chosen-by-somebody-else")
	b.login(otto)
	first := b.cookie()
	if first == "" || first == "chosen-by-somebody-else" {
		t.Fatalf("the cookie is %q", first)
	}
	b.login(anna)
	if b.cookie() == first {
		t.Error("a second login has the id of the first")
	}
	b.is("after the second login", 200, "anna session admin ")
	b.put(first)
	b.is("the id before the second login", 401, "session is over")
}

func TestLogout(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.browser(t)
	b.login(otto)
	id := b.cookie()
	csrf := strings.Fields(b.is("logged in", 200, "otto").body)[3]
	if got := b.do("POST", "/logout", url.Values{}); got.status != 403 {
		t.Errorf("logout by a form without its token: %d", got.status)
	}
	got := b.do("POST", "/logout", url.Values{"csrf": {csrf}})
	if got.status != 303 || got.header.Get("Clear-Site-Data") == "" || b.cookie() != "" {
		t.Errorf("logout: %d %v", got.status, got.header)
	}
	b.put(id)
	b.is("the cookie of before the logout", 401, "session is over")
	if got := b.do("POST", "/logout", url.Values{}); got.status != 303 {
		t.Errorf("logout of nobody: %d", got.status)
	}
}

func TestSessionExpires(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string]struct {
		every, until time.Duration
		want         int
	}{
		"used now and then":           {time.Hour, 23 * time.Hour, 200},
		"used until the end":          {time.Hour, 24 * time.Hour, 401},
		"not used for long":           {8 * time.Hour, 8 * time.Hour, 401},
		"not used for nearly as long": {8*time.Hour - time.Second, 8*time.Hour - time.Second, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			b := s.browser(t)
			b.login(otto)
			for at := time.Duration(0); at+steps.every < steps.until; at += steps.every {
				s.advance(steps.every)
				b.is("on the way", 200, "otto")
			}
			s.advance(steps.every)
			b.is("in the end", steps.want, "")
		})
	}
}

// The cookie gets another id. What was sent before counts until the browser has the new one.
func TestSessionIsRotated(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b, late := s.browser(t), s.browser(t)
	b.login(otto)
	first := b.cookie()
	s.advance(16 * time.Minute)
	b.is("when it is due", 200, "otto")
	second := b.cookie()
	if second == first {
		t.Fatal("it was not rotated")
	}
	late.put(first)
	late.is("sent before the answer came", 200, "otto")
	if late.cookie() != first {
		t.Error("a request on the way got another id: the browser would have either")
	}
	s.advance(2 * time.Minute)
	b.is("with the new id", 200, "otto")
	late.is("the former id, after the new one was seen", 401, "session is over")
}

// A browser that never got the answer with the new id stays logged in.
func TestRotationIsLost(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.browser(t)
	b.login(otto)
	first := b.cookie()
	s.advance(16 * time.Minute)
	b.is("when it is due", 200, "otto")
	b.put(first)
	s.advance(2 * time.Minute)
	b.is("with the id of before", 200, "otto")
	if b.cookie() == first {
		t.Error("it got no other id")
	}
	s.advance(2 * time.Minute)
	b.is("with the next one", 200, "otto")
}

func TestRotationAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.browser(t)
	b.login(otto)
	s.advance(16 * time.Minute)
	var tabs sync.WaitGroup
	for range 8 {
		tabs.Go(func() { b.is("one of many", 200, "otto") })
	}
	tabs.Wait()
	s.advance(2 * time.Minute)
	b.is("afterwards", 200, "otto")
}

// A session for a token ends with that token, and its roles are those of now.
func TestTokenOfSessionChanges(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.browser(t)
	b.login(otto)
	weaker := tokens()
	weaker[1].Role = access.Viewer
	s.configure(t, weaker)
	b.is("with another role", 200, "otto session viewer ")
	other := tokens()
	other[1].SHA256 = session.HashToken("another-token-of-otto")
	s.configure(t, other)
	b.is("with another token of that name", 401, "log in again")
	s.configure(t, tokens()[:1])
	b.is("without the token", 401, "log in again")
}

// Whose answer takes long is looked at again.
func TestStill(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.browser(t)
	b.login(otto)
	request := httptest.NewRequest("GET", "/", nil)
	request.AddCookie(&http.Cookie{Name: cookieName, Value: b.cookie()})
	who, err := s.sessions.Of(httptest.NewRecorder(), request)
	if err != nil {
		t.Fatal(err)
	}
	s.advance(20 * time.Minute)
	b.is("which rotates it", 200, "otto")
	s.advance(20 * time.Minute)
	b.is("twice", 200, "otto")
	if err := s.sessions.Still(request, who); err != nil {
		t.Errorf("after rotations: %v", err)
	}
	weaker := tokens()
	weaker[1].Role = access.Viewer
	s.configure(t, weaker)
	if err := s.sessions.Still(request, who); err == nil {
		t.Error("with other roles it may continue")
	}
	s.configure(t, tokens())
	if err := s.store.EndSession(t.Context(), who.ID); err != nil {
		t.Fatal(err)
	}
	if err := s.sessions.Still(request, who); err == nil {
		t.Error("after its end it may continue")
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b, other := s.browser(t), s.browser(t)
	b.login(otto)
	other.login(otto)
	csrf := strings.Fields(b.is("logged in", 200, "otto").body)[3]
	foreign := strings.Fields(other.is("logged in", 200, "otto").body)[3]
	for _, tc := range []struct {
		name    string
		form    url.Values
		headers []string
		want    int
	}{
		{"with its token", url.Values{"csrf": {csrf}}, nil, 200},
		{"with its token as a header", url.Values{}, []string{"X-CSRF-Token", csrf}, 200},
		{"of the same site", url.Values{"csrf": {csrf}}, []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"without a token", url.Values{"x": {"y"}}, nil, 403},
		{"with that of another session", url.Values{"csrf": {foreign}}, nil, 403},
		{"of another site", url.Values{"csrf": {csrf}}, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"of a neighbouring site", url.Values{"csrf": {csrf}}, []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"of another origin", url.Values{"csrf": {csrf}}, []string{"Origin", "https://evil.example.com"}, 403},
		{"with a bearer token", url.Values{}, []string{"Authorization", "Bearer " + anna}, 200},
	} {
		if got := b.do("POST", "/", tc.form, tc.headers...); got.status != tc.want {
			t.Errorf("%s: %d %s, want %d", tc.name, got.status, got.body, tc.want)
		}
	}
	if got := s.browser(t).do("POST", "/login", url.Values{"token": {otto}}, "Sec-Fetch-Site", "cross-site"); got.status != 403 || got.header.Get("Set-Cookie") != "" {
		t.Errorf("another site logs somebody in: %d", got.status)
	}
	s.advance(20 * time.Minute)
	b.is("which rotates the cookie", 200, "otto")
	if got := b.do("POST", "/", url.Values{"csrf": {csrf}}); got.status != 200 {
		t.Errorf("a form that was open during a rotation: %d", got.status)
	}
	s.advance(9 * time.Hour)
	if got := b.do("POST", "/", url.Values{"csrf": {csrf}}); got.status != 401 {
		t.Errorf("a form whose session is over: %d", got.status)
	}
}

func TestLocalPath(t *testing.T) {
	t.Parallel()
	for next, want := range map[string]string{
		"/clusters?phase=Active#x": "/clusters?phase=Active#x", "/runs/run-1": "/runs/run-1", "": "/", "/": "/",
		"//evil.example.com": "/", "/\\evil.example.com": "/", "https://evil.example.com/": "/", "javascript:alert(1)": "/",
		"/%2f/evil.example.com": "/%2f/evil.example.com", "\t//evil.example.com": "/", "/\t/evil.example.com": "/", "evil": "/",
		"/login": "/", "/login/x": "/", "/logout": "/", "/api/v1/clusters": "/", "/a\r\nSet-Cookie: x": "/", "http:/x": "/", "/%zz": "/",
	} {
		if got := session.LocalPath(next); got != want {
			t.Errorf("LocalPath(%q) = %q, want %q", next, got, want)
		}
	}
}

// What cannot be stored refuses nobody who has a session, and lets nobody in.
func TestStoreIsAway(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.browser(t)
	b.login(otto)
	var err error
	s.sessions, err = session.New(session.Options{
		Store: broken{s.store}, Tokens: tokens(), Key: []byte("0123456789abcdef"), Now: s.time,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.advance(20 * time.Minute)
	b.is("it cannot be renewed", 200, "otto")
	if got := s.browser(t).do("POST", "/login", url.Values{"token": {otto}}); got.status != 503 || got.header.Get("Set-Cookie") != "" {
		t.Errorf("login = %d %s", got.status, got.body)
	}
}

// broken reads, and writes nothing.
type broken struct{ *datastore.Store }

func (broken) AddSession(context.Context, access.Session) error { return holdfast.ErrUnavailable }

func (broken) SaveSession(context.Context, access.Session, access.Hash) error {
	return holdfast.ErrUnavailable
}
