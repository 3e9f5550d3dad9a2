package login_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oauth2-proxy/mockoidc"

	"github.com/holdfast-dev/holdfast/access"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/seal"
	"github.com/holdfast-dev/holdfast/server/login"
	"github.com/holdfast-dev/holdfast/server/session"
)

// user is one whose userinfo says who it is, as it has to.
type user struct{ mockoidc.MockUser }

func (u *user) Userinfo(scope []string) ([]byte, error) {
	data, err := u.MockUser.Userinfo(scope)
	said := map[string]any{}
	if err == nil {
		err = json.Unmarshal(data, &said)
	}
	said["sub"] = u.Subject
	if err != nil {
		return nil, err
	}
	return json.Marshal(said)
}

func person(subject string, groups ...string) *user {
	return &user{mockoidc.MockUser{Subject: subject, PreferredUsername: "name-of-" + subject, Email: subject + "@example.com", EmailVerified: true, Groups: groups}}
}

// site is a server with a page that says who asks, next to an identity provider.
type site struct {
	*httptest.Server
	idp      *mockoidc.MockOIDC
	store    *datastore.Store
	desk     *login.Desk
	sessions *session.Sessions
	skew     time.Duration // of our clock
}

func bindings() []access.Binding {
	return []access.Binding{
		{Role: access.Operator, Projects: []string{"payments"}, Groups: []string{"payments-team"}},
		{Role: access.Approver, Projects: []string{"web"}, Groups: []string{"web-leads"}},
		{Role: access.Viewer, Groups: []string{"engineering"}},
	}
}

func newSite(t *testing.T, middleware ...func(http.Handler) http.Handler) *site {
	t.Helper()
	s := &site{}
	var err error
	if s.idp, err = mockoidc.NewServer(nil); err != nil {
		t.Fatal(err)
	}
	for _, m := range middleware {
		if err := s.idp.AddMiddleware(m); err != nil {
			t.Fatal(err)
		}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.idp.Start(ln, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.idp.Server.Close() })
	keys, err := seal.NewKeyring([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	if s.store, err = datastore.Open(t.Context(), datastore.Options{Path: filepath.Join(t.TempDir(), "holdfast.db"), Keys: keys}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.store.Close() })
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.StartTLS()
	t.Cleanup(s.Close)
	s.configure(t, bindings(), "groups")
	return s
}

func (s *site) records() login.Records {
	return login.Records{People: s.store, Keys: s.store, Requests: s.store}
}

const ciToken = "token-of-ci-1234567890"

func tokens() []session.Token {
	return []session.Token{{Name: "ci", Role: access.Approver, Projects: []string{"payments"}, SHA256: session.HashToken(ciToken)}}
}

func (s *site) time() time.Time { return time.Now().Add(s.skew) }

// configure is a restart with other bindings, or another claim of groups.
func (s *site) configure(t *testing.T, bindings []access.Binding, groupsClaim string) {
	t.Helper()
	var err error
	s.desk, err = login.New(login.Options{
		Records: s.records(), Rules: login.Rules{Bindings: bindings, Tokens: tokens()}, Audit: s.store, Now: s.time,
		Provider: login.Provider{
			Client: &http.Client{Timeout: time.Minute, Transport: &http.Transport{}},
			Name:   "Acme", Issuer: s.idp.Issuer(), ClientID: s.idp.ClientID, Secret: func() (string, error) { return s.idp.ClientSecret, nil },
			Redirect: s.URL + login.CallbackPath, Scopes: []string{"profile", "email", "groups"}, NameClaim: "preferred_username", GroupsClaim: groupsClaim,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.sessions, err = session.New(session.Options{Store: s.store, People: s.desk, Tokens: tokens(), Key: []byte("0123456789abcdef"), Audit: s.store, Now: s.time})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == session.LoginPath, r.URL.Path == session.LogoutPath:
		s.sessions.Handler(nil, "Acme").ServeHTTP(w, r)
	case strings.HasPrefix(r.URL.Path, session.LoginPath+"/"), strings.HasPrefix(r.URL.Path, session.DevicePath):
		s.desk.Handler(s.sessions).ServeHTTP(w, r)
	default:
		who, err := s.sessions.Of(w, r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, "%s at %s: payments=%s web=%s other=%s", who.Name, r.URL.RequestURI(), who.Grants.Role("payments"), who.Grants.Role("web"), who.Grants.Role("other"))
	}
}

// browser follows redirects, and keeps cookies.
func (s *site) browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: s.Client().Transport, Jar: jar}
}

func get(t *testing.T, client *http.Client, url string) (status int, body, at string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
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
	return res.StatusCode, string(data), res.Request.URL.String()
}

func (s *site) login(t *testing.T, client *http.Client, who mockoidc.User) (status int, body string) {
	t.Helper()
	s.idp.QueueUser(who)
	status, body, _ = get(t, client, s.URL+"/login/provider?next="+url.QueryEscape("/clusters?phase=Active"))
	return status, body
}

func TestLogin(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		who    *user
		status int
		want   string
	}{
		"operator of a project": {person("1", "payments-team"), 200, "name-of-1 at /clusters?phase=Active: payments=operator web= other="},
		"of several groups":     {person("2", "engineering", "web-leads"), 200, "payments=viewer web=approver other=viewer"},
		"of none":               {person("3"), 403, "name-of-3 has no role here; the identity provider says nothing of your groups (claim groups). An administrator can bind one to subject &#34;3&#34;"},
		"of another one":        {person("4", "sales"), 403, "has no role here"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			status, body := s.login(t, s.browser(t), tc.who)
			if status != tc.status || !strings.Contains(body, tc.want) {
				t.Errorf("login = %d %s, want %d %s", status, body, tc.status, tc.want)
			}
		})
	}
}

// Roles are those of the configuration and of the last login, wherever that was.
func TestRolesChange(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	client := s.browser(t)
	s.login(t, client, person("1", "payments-team", "engineering"))
	s.configure(t, bindings()[1:], "groups")
	if status, body, _ := get(t, client, s.URL+"/x"); status != 200 || !strings.Contains(body, "payments=viewer") {
		t.Errorf("with another configuration: %d %s", status, body)
	}
	if status, _ := s.login(t, s.browser(t), person("1")); status != 403 {
		t.Errorf("a login without groups: %d", status)
	}
	if status, body, _ := get(t, client, s.URL+"/x"); status != 401 || !strings.Contains(body, "no longer have a role") {
		t.Errorf("the session of before: %d %s", status, body)
	}
}

// Nobody is called as a token is, or as Holdfast itself.
func TestNamesOfPeople(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"ci": "ci (person) at", "HOLDFAST": "HOLDFAST (person) at", "ann\x1b[31ma": "ann[31ma at", "": "person \"1\" at", strings.Repeat("x", 500): strings.Repeat("x", 100) + " at",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			who := person("1", "engineering")
			who.PreferredUsername = name
			if _, body := s.login(t, s.browser(t), who); !strings.HasPrefix(body, want) {
				t.Errorf("%q is called %s", name, body)
			}
		})
	}
}

func TestClaimIsMissing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.configure(t, bindings(), "roles")
	status, body := s.login(t, s.browser(t), person("1", "engineering"))
	if status != 403 || !strings.Contains(body, "says nothing of your groups (claim roles)") {
		t.Errorf("login = %d %s", status, body)
	}
}

// What comes back has to be of the login that this browser has begun, once.
func TestCallbackOfAnother(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	stop := func(client *http.Client) *http.Client {
		client.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
			if strings.HasPrefix(r.URL.Path, login.CallbackPath) {
				return http.ErrUseLastResponse
			}
			return nil
		}
		return client
	}
	victim, attacker := stop(s.browser(t)), stop(s.browser(t))
	callback := func(client *http.Client) string {
		s.idp.QueueUser(person("1", "engineering"))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/login/provider", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.Header.Get("Location")
	}
	ours, theirs := callback(victim), callback(attacker)
	for name, at := range map[string]string{
		"of another browser": theirs, "without a state": s.URL + login.CallbackPath + "?code=x", "refused": s.URL + login.CallbackPath + "?error=access_denied&state=x",
	} {
		fresh := s.browser(t)
		fresh.Jar = victim.Jar
		if name != "of another browser" {
			fresh = s.browser(t)
		}
		if status, body, _ := get(t, fresh, at); status != 403 || !strings.Contains(body, "started elsewhere") {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	victim.CheckRedirect = nil
	if status, body, _ := get(t, victim, ours); status != 403 {
		t.Errorf("a state that was used up: %d %s", status, body)
	}
	ours = callback(stop(victim))
	victim.CheckRedirect = nil
	if status, _, at := get(t, victim, ours); status != 200 || strings.Contains(at, "code=") {
		t.Errorf("a login: %d at %s", status, at)
	}
	if status, _, _ := get(t, victim, ours); status != 403 {
		t.Errorf("the same again: %d", status)
	}
}

// The provider's token has to be for this login: one with another nonce is refused.
func TestNonce(t *testing.T) {
	t.Parallel()
	other := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if query := r.URL.Query(); query.Get("nonce") != "" {
				query.Set("nonce", "of-another-login")
				r.URL.RawQuery = query.Encode()
			}
			next.ServeHTTP(w, r)
		})
	}
	s := newSite(t, other)
	if status, body := s.login(t, s.browser(t), person("1", "engineering")); status != 403 || !strings.Contains(body, "belongs to another login") {
		t.Errorf("login = %d %s", status, body)
	}
}

// A code without the verifier of the browser that began is worth nothing.
func TestPKCE(t *testing.T) {
	t.Parallel()
	other := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if query := r.URL.Query(); query.Get("code_challenge") != "" {
				query.Set("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")
				r.URL.RawQuery = query.Encode()
			}
			next.ServeHTTP(w, r)
		})
	}
	s := newSite(t, other)
	if status, body := s.login(t, s.browser(t), person("1", "engineering")); status != 403 || !strings.Contains(body, "refuses the login") {
		t.Errorf("login = %d %s", status, body)
	}
}

func TestClocksDiffer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ours time.Duration
		want int
	}{
		"a bit behind": {-time.Minute, 200}, "a bit ahead": {11 * time.Minute, 200}, "far behind": {-time.Hour, 403}, "far ahead": {time.Hour, 403},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.skew = tc.ours // the provider's tokens are good for 10 minutes
			if status, body := s.login(t, s.browser(t), person("1", "engineering")); status != tc.want {
				t.Errorf("login = %d %s, want %d", status, body, tc.want)
			}
		})
	}
}

// A provider that is unavailable lets nobody in, ends no session, and is asked again.
func TestProviderIsAway(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	client := s.browser(t)
	s.login(t, client, person("1", "engineering"))
	idp := s.idp.Server.Handler
	down := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	down.Start()
	t.Cleanup(down.Close)
	desk, err := login.New(login.Options{Records: s.records(), Rules: login.Rules{Bindings: bindings()}, Provider: login.Provider{
		Name: "Acme", Issuer: down.URL, ClientID: "x", Redirect: s.URL + login.CallbackPath,
	}})
	if err != nil {
		t.Fatal(err)
	}
	working := s.desk
	s.desk = desk
	stranger := s.browser(t)
	if status, body, _ := get(t, stranger, s.URL+"/login/provider"); status != 503 || !strings.Contains(body, "identity provider") {
		t.Errorf("login = %d %s", status, body)
	}
	if status, body, _ := get(t, client, s.URL+"/x"); status != 200 {
		t.Errorf("the session of before: %d %s", status, body)
	}
	s.desk = working
	if idp == nil {
		t.Fatal("no provider")
	}
	if status, _ := s.login(t, stranger, person("2", "engineering")); status != 200 {
		t.Errorf("when it is back: %d", status)
	}
}

// A provider that never answers holds nobody longer than its patience.
func TestProviderIsSlow(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(slow.Close)
	t.Cleanup(func() { close(release) })
	s := newSite(t)
	var err error
	s.desk, err = login.New(login.Options{
		Records: s.records(), Provider: login.Provider{
			Name: "Acme", Issuer: slow.URL, ClientID: "x", Redirect: s.URL + login.CallbackPath,
			Client: &http.Client{Timeout: 50 * time.Millisecond, Transport: &http.Transport{}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if status, body, _ := get(t, s.browser(t), s.URL+"/login/provider"); status != 503 {
		t.Errorf("login = %d %s", status, body)
	}
}

func TestNextIsOurs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.idp.QueueUser(person("1", "engineering"))
	_, body, at := get(t, s.browser(t), s.URL+"/login/provider?next="+url.QueryEscape("//evil.example.com/x"))
	if at != s.URL+"/" || !strings.Contains(body, "name-of-1") {
		t.Errorf("it went on to %s: %s", at, body)
	}
}
