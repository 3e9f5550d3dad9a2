package login_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/access"
	"github.com/holdfast-dev/holdfast/server/login"
)

const verifier = "verifier-of-the-command-line-0123456789"

func challenge() string {
	hash := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(hash[:])
}

type reply struct {
	status int
	header http.Header
	body   string
}

// post sends a form, or JSON, and follows no redirect.
func post(t *testing.T, client *http.Client, address string, body any) reply {
	t.Helper()
	kind, text := "application/json", ""
	if form, ok := body.(url.Values); ok {
		kind, text = "application/x-www-form-urlencoded", form.Encode()
	} else {
		data, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		text = string(data)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	once := *client
	once.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := once.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header, string(data)}
}

// field is the value of a hidden field of a page.
func field(t *testing.T, page, name string) string {
	t.Helper()
	found := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("no field %s in %s", name, page)
	}
	return strings.NewReplacer("&amp;", "&", "&#43;", "+").Replace(found[1])
}

type waiting struct{ Secret, Code string }

// begin is a command line that asks for a code.
func begin(t *testing.T, s *site, client *http.Client, role string) waiting {
	t.Helper()
	got := post(t, client, s.URL+login.CommandsPath, map[string]any{"name": "holdfast on <laptop>", "challenge": challenge(), "role": role, "seconds": 3600})
	var w waiting
	if err := json.Unmarshal([]byte(got.body), &w); err != nil || got.status != 200 || len(w.Code) != 9 {
		t.Fatalf("begin = %d %s", got.status, got.body)
	}
	return w
}

func exchange(t *testing.T, s *site, client *http.Client, secret, with string) (status int, token string) {
	t.Helper()
	got := post(t, client, s.URL+login.TokenPath, map[string]string{"secret": secret, "verifier": with})
	var granted struct{ Token string }
	_ = json.Unmarshal([]byte(got.body), &granted)
	return got.status, granted.Token
}

// A command line without a browser is logged in by a code that a person types elsewhere.
func TestCodeIsTyped(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	client, cli := s.browser(t), s.Client()
	s.login(t, client, person("1", "payments-team", "engineering"))
	w := begin(t, s, cli, "operator")
	if status, token := exchange(t, s, cli, w.Secret, verifier); status != 202 || token != "" {
		t.Errorf("before somebody has typed it: %d %s", status, token)
	}
	_, page, _ := get(t, client, s.URL+"/device")
	csrf := field(t, page, "csrf")
	asked := post(t, client, s.URL+"/device", url.Values{"csrf": {csrf}, "code": {" " + strings.ToLower(strings.ReplaceAll(w.Code, "-", " "))}})
	if asked.status != 200 || !strings.Contains(asked.body, "holdfast on &lt;laptop&gt;") || !strings.Contains(asked.body, "operator in payments") {
		t.Errorf("what is asked for is %d %s", asked.status, asked.body)
	}
	if got := post(t, client, s.URL+"/device/answer", url.Values{"code": {w.Code}, "answer": {"allow"}}); got.status != 403 {
		t.Errorf("an answer of another site: %d", got.status)
	}
	if got := post(t, client, s.URL+"/device/answer", url.Values{"csrf": {csrf}, "code": {w.Code}, "answer": {"allow"}}); got.status != 200 || !strings.Contains(got.body, "is logged in") {
		t.Errorf("the answer: %d %s", got.status, got.body)
	}
	if got := post(t, client, s.URL+"/device/answer", url.Values{"csrf": {csrf}, "code": {w.Code}, "answer": {"deny"}}); got.status != 409 {
		t.Errorf("a second answer: %d %s", got.status, got.body)
	}
	for name, tc := range map[string]struct{ secret, verifier string }{
		"another verifier": {w.Secret, "guessed"}, "the code": {w.Code, verifier}, "nothing": {"", verifier},
	} {
		if status, token := exchange(t, s, cli, tc.secret, tc.verifier); status != 404 || token != "" {
			t.Errorf("%s: %d %s", name, status, token)
		}
	}
	status, token := exchange(t, s, cli, w.Secret, verifier)
	if status != 200 || !strings.HasPrefix(token, "hfp_") {
		t.Fatalf("exchange = %d %s", status, token)
	}
	if status, again := exchange(t, s, cli, w.Secret, verifier); status != 404 || again != "" {
		t.Errorf("a second exchange: %d %s", status, again)
	}
	who, err := s.desk.Personal(t.Context(), token)
	if err != nil || who.Name != "name-of-1" || !who.Grants.Equal(access.Grants{"*": access.Viewer, "payments": access.Operator}) {
		t.Errorf("the token is of %+v, %v", who, err)
	}
	s.skew = time.Hour
	if _, err := s.desk.Personal(t.Context(), token); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("after its time: %v", err)
	}
}

func TestCodeIsDenied(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	client := s.browser(t)
	s.login(t, client, person("1", "engineering"))
	w := begin(t, s, s.Client(), "admin")
	_, page, _ := get(t, client, s.URL+"/device")
	post(t, client, s.URL+"/device/answer", url.Values{"csrf": {field(t, page, "csrf")}, "code": {w.Code}, "answer": {"deny"}})
	if status, token := exchange(t, s, s.Client(), w.Secret, verifier); status != 403 || token != "" {
		t.Errorf("exchange = %d %s", status, token)
	}
}

// Codes cannot be guessed by trying.
func TestCodesAreGuessed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	client := s.browser(t)
	s.login(t, client, person("1", "engineering"))
	w := begin(t, s, s.Client(), "viewer")
	_, page, _ := get(t, client, s.URL+"/device")
	csrf := field(t, page, "csrf")
	for range 10 {
		if got := post(t, client, s.URL+"/device", url.Values{"csrf": {csrf}, "code": {"BBBB-BBBB"}}); got.status != 404 {
			t.Fatalf("a guess: %d %s", got.status, got.body)
		}
	}
	if got := post(t, client, s.URL+"/device", url.Values{"csrf": {csrf}, "code": {w.Code}}); got.status != 429 {
		t.Errorf("after ten guesses: %d %s", got.status, got.body)
	}
}

func browserPage(redirect, role string) string {
	return "/device/cli?" + url.Values{
		"redirect": {redirect}, "state": {"state-of-the-command-line"}, "challenge": {challenge()}, "name": {"laptop"}, "role": {role}, "seconds": {"3600"},
	}.Encode()
}

// A command line with a browser is logged in by that: it leads back to the machine.
func TestBrowserLeadsBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	client := s.browser(t)
	at := s.URL + browserPage("http://127.0.0.1:4567/callback", "viewer")
	if _, page, where := get(t, client, at); !strings.HasPrefix(where, s.URL+"/login?next=%2Fdevice%2Fcli%3F") {
		t.Errorf("a stranger is at %s: %s", where, page)
	}
	s.login(t, client, person("1", "engineering"))
	_, page, _ := get(t, client, at)
	csrf, query := field(t, page, "csrf"), field(t, page, "query")
	if got := post(t, client, s.URL+"/device/cli", url.Values{"query": {query}, "answer": {"allow"}}); got.status != 403 {
		t.Errorf("without the form token: %d", got.status)
	}
	denied := post(t, client, s.URL+"/device/cli", url.Values{"csrf": {csrf}, "query": {query}, "answer": {"deny"}})
	if to := denied.header.Get("Location"); denied.status != 303 || to != "http://127.0.0.1:4567/callback?error=access_denied&state=state-of-the-command-line" {
		t.Errorf("denied: %d %s", denied.status, to)
	}
	allowed := post(t, client, s.URL+"/device/cli", url.Values{"csrf": {csrf}, "query": {query}, "answer": {"allow"}})
	to, err := url.Parse(allowed.header.Get("Location"))
	if err != nil || allowed.status != 303 || to.Host != "127.0.0.1:4567" || to.Query().Get("state") != "state-of-the-command-line" {
		t.Fatalf("allowed: %d %s", allowed.status, to)
	}
	if status, token := exchange(t, s, s.Client(), to.Query().Get("code"), "of-another-command-line"); status != 404 || token != "" {
		t.Errorf("who has the code alone: %d %s", status, token)
	}
	if status, token := exchange(t, s, s.Client(), to.Query().Get("code"), verifier); status != 200 || token == "" {
		t.Errorf("exchange = %d %s", status, token)
	}
}

// A page leads back to this machine alone: anywhere else would get somebody's code.
func TestBrowserLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	client := s.browser(t)
	s.login(t, client, person("1", "engineering"))
	for _, redirect := range []string{
		"https://evil.example.com/callback", "http://evil.example.com:80/callback", "http://127.0.0.1/callback", "http://127.0.0.1:4567/other",
		"http://localhost:4567/callback", "http://127.0.0.1.evil.example.com:80/callback", "http://user@127.0.0.1:4567/callback",
		"http://127.0.0.1:4567/callback?x=y", "http://127.0.0.1:0/callback", "http://127.0.0.1:99999/callback", "javascript:alert(1)", "",
	} {
		if status, body, _ := get(t, client, s.URL+browserPage(redirect, "viewer")); status != 400 {
			t.Errorf("%s: %d %s", redirect, status, body)
		}
		_, page, _ := get(t, client, s.URL+"/device")
		form := url.Values{"csrf": {field(t, page, "csrf")}, "answer": {"allow"}, "query": {strings.TrimPrefix(browserPage(redirect, "viewer"), "/device/cli?")}}
		if got := post(t, client, s.URL+"/device/cli", form); got.status != 400 || got.header.Get("Location") != "" {
			t.Errorf("a form with %s: %d %s", redirect, got.status, got.header.Get("Location"))
		}
	}
}

// A token ends with what its owner was: a token of the configuration, or a person with a role.
func TestTokenEndsWithItsOwner(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ci := access.Principal{Name: "ci", Via: access.ViaToken, ID: "ci", Grants: access.GrantsOf(access.Approver, "payments")}
	wish := access.Wish{Name: "script", Limit: access.Limit{Role: access.Admin}, Lifetime: time.Hour, From: "here"}
	secret, _, err := s.desk.CreateToken(t.Context(), ci, wish)
	if err != nil {
		t.Fatal(err)
	}
	if who, err := s.desk.Personal(t.Context(), secret); err != nil || !who.Grants.Equal(access.Grants{"payments": access.Approver}) {
		t.Errorf("Personal() = %+v, %v", who, err)
	}
	client := s.browser(t)
	s.login(t, client, person("1", "engineering"))
	id := access.PersonID{Issuer: s.idp.Issuer(), Subject: "1"}
	own, _, err := s.desk.CreateToken(t.Context(), access.Principal{Name: "name-of-1", Person: id, Via: access.ViaSession, ID: "ses-1"}, wish)
	if err != nil {
		t.Fatal(err)
	}
	s.configure(t, bindings()[:2], "groups")
	if _, err := s.desk.Personal(t.Context(), own); err == nil || !strings.Contains(err.Error(), "no longer have a role") {
		t.Errorf("of a person without a role: %v", err)
	}
	without, err := login.New(login.Options{Records: s.records()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := without.Personal(t.Context(), secret); err == nil {
		t.Error("it is good after the token that it was made with has gone")
	}
	if _, err := s.desk.Personal(t.Context(), "hfp_guessed"); err == nil {
		t.Error("a guess is good")
	}
}
