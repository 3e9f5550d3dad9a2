package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/access"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
	"github.com/holdfast-dev/holdfast/datastore"
	"github.com/holdfast-dev/holdfast/datastore/seal"
	"github.com/holdfast-dev/holdfast/internal/testenv/ownclient"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/login"
)

const annasToken = "token-of-anna-0123456789"

// parts are those of a server that these commands never call.
type parts struct {
	server.Commander
	server.Dispatcher
}

type registry struct{ server.Registry }

// realServer is one with records in SQLite, and a token of the configuration.
func realServer(t *testing.T) string {
	t.Helper()
	keys, err := seal.NewKeyring([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	store, err := datastore.Open(t.Context(), datastore.Options{Path: filepath.Join(t.TempDir(), "holdfast.db"), Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	tokens := []server.Token{{Name: "anna", Role: access.Approver, Projects: []string{"payments"}, SHA256: server.HashToken(annasToken)}}
	desk, err := login.New(login.Options{Records: login.Records{People: store, Keys: store, Requests: store}, Rules: login.Rules{Tokens: tokens}, Audit: store})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Options{
		API: server.API{
			Records: store, Artefacts: store, Commander: parts{}, Registry: registry{}, Tokens: tokens,
			Login: server.Login{Sessions: store, Lists: store, People: desk, Tokens: desk, Pages: desk.Handler, Key: []byte("0123456789abcdef")},
		},
		Agents: server.Agents{Dispatcher: parts{}, Registry: registry{}, Runs: store, Blobs: store, States: store},
		Audit:  store,
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s.API())
	t.Cleanup(srv.Close)
	return srv.URL
}

// person is somebody at a browser, which sends cookies over plain HTTP to this machine.
type person struct {
	t      *testing.T
	server string
	cookie string
}

func (p *person) do(method, address string, form url.Values) (status int, header http.Header, body string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if p.cookie != "" {
		req.Header.Set("Cookie", p.cookie)
	}
	once := *ownclient.Client
	once.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := once.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	if set, _, ok := strings.Cut(res.Header.Get("Set-Cookie"), ";"); ok {
		p.cookie = set
	}
	return res.StatusCode, res.Header, string(data)
}

func logsIn(t *testing.T, server string) *person {
	t.Helper()
	p := &person{t: t, server: server}
	if status, _, body := p.do("POST", server+"/login", url.Values{"token": {annasToken}}); status != 303 {
		t.Fatalf("login = %d %s", status, body)
	}
	return p
}

func hidden(t *testing.T, page, name string) string {
	t.Helper()
	found := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("no field %s in %s", name, page)
	}
	return strings.NewReplacer("&amp;", "&", "&#43;", "+").Replace(found[1])
}

// terminal is a command line with its own home.
type terminal struct {
	t   *testing.T
	env map[string]string
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	return &terminal{t: t, env: map[string]string{"XDG_CONFIG_HOME": t.TempDir(), "BROWSER": "true"}}
}

func (l *terminal) run(args ...string) (out string, err error) {
	var buffer, errors bytes.Buffer
	err = l.start(l.t.Context(), &buffer, &errors, args...)
	return buffer.String() + errors.String(), err
}

func (l *terminal) start(ctx context.Context, out, errOut io.Writer, args ...string) error {
	a := &app{&cli.App{
		In: strings.NewReader(""), Getenv: func(name string) string { return l.env[name] }, Poll: time.Millisecond,
		Printer: table.Printer{Out: out, Err: errOut, Now: time.Now},
	}}
	root := newRootCommand(a)
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

// login runs holdfast login; what says a line of it that matches gets, does what a person does.
func (l *terminal) login(pattern string, do func(found string), args ...string) string {
	l.t.Helper()
	reader, writer := io.Pipe()
	var out bytes.Buffer
	done := make(chan error, 1)
	go func() {
		err := l.start(l.t.Context(), &out, writer, append([]string{"login"}, args...)...)
		_ = writer.CloseWithError(io.EOF)
		done <- err
	}()
	lines := bufio.NewScanner(reader)
	for lines.Scan() {
		if found := regexp.MustCompile(pattern).FindStringSubmatch(lines.Text()); found != nil {
			do(found[1])
		}
	}
	if err := <-done; err != nil {
		l.t.Fatalf("login: %v", err)
	}
	return out.String()
}

// The story of a command line: it is logged in through the browser, makes a token for a
// script, and logs out.
func TestLoginThroughTheBrowser(t *testing.T) {
	t.Parallel()
	at := realServer(t)
	anna, l := logsIn(t, at), newTerminal(t)
	allow := func(page string) {
		if strings.Contains(page, "hfp_") || strings.Contains(page, "verifier") {
			t.Errorf("a secret is in the address %s", page)
		}
		_, _, body := anna.do("GET", page, nil)
		_, header, answer := anna.do("POST", at+"/device/cli", url.Values{"csrf": {hidden(t, body, "csrf")}, "query": {hidden(t, body, "query")}, "answer": {"allow"}})
		if status, _, body := anna.do("GET", header.Get("Location"), nil); status != 200 {
			t.Errorf("back at the command line: %d %s (%s)", status, body, answer)
		}
	}
	out := l.login(`(http://\S+/device/cli\S+)`, allow, "--server", at)
	if !strings.HasPrefix(out, "logged in to "+at+" as anna until ") {
		t.Errorf("login says %s", out)
	}
	file := filepath.Join(l.env["XDG_CONFIG_HOME"], "holdfast", "token")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the token's file: %v, %v", info, err)
	}
	if out, err := l.run("whoami"); err != nil || !strings.Contains(out, "anna, by personal token tok-") || !strings.Contains(out, "approver in project payments") {
		t.Errorf("whoami = %s, %v", out, err)
	}
	out, err := l.run("create", "token", "nightly", "--role", "viewer", "--lifetime", "1h", "-o", "json")
	var made struct{ Secret, ID string }
	if err != nil || json.Unmarshal([]byte(out), &made) != nil || made.Secret == "" {
		t.Fatalf("create token = %s, %v", out, err)
	}
	if out, err := l.run("get", "tokens"); err != nil || !strings.Contains(out, "nightly") || strings.Contains(out, made.Secret) {
		t.Errorf("get tokens = %s, %v", out, err)
	}
	if out, err := l.run("delete", "token", made.ID); err != nil || out != made.ID+" is deleted\n" {
		t.Errorf("delete token = %s, %v", out, err)
	}
	secret, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := l.run("logout"); err != nil || out != "logged out\n" {
		t.Errorf("logout = %s, %v", out, err)
	}
	other := newTerminal(t)
	other.env["HOLDFAST_SERVER"], other.env["HOLDFAST_TOKEN"] = at, strings.TrimSpace(string(secret))
	if out, err := other.run("whoami"); err == nil {
		t.Errorf("the token of before the logout is good: %s", out)
	}
	if _, err := l.run("logout"); err == nil || !strings.Contains(err.Error(), "nobody has logged in here") {
		t.Errorf("a second logout: %v", err)
	}
	l.login(`(http://\S+/device/cli\S+)`, allow) // the client file names the server
}

func TestLoginByACode(t *testing.T) {
	t.Parallel()
	at := realServer(t)
	anna, l := logsIn(t, at), newTerminal(t)
	out := l.login(`type the code (\S+)$`, func(code string) {
		_, _, page := anna.do("GET", at+"/device", nil)
		if status, _, body := anna.do("POST", at+"/device/answer", url.Values{"csrf": {hidden(t, page, "csrf")}, "code": {code}, "answer": {"allow"}}); status != 200 {
			t.Errorf("the code: %d %s", status, body)
		}
	}, "--server", at, "--no-browser", "--role", "viewer", "--lifetime", "1h")
	if !strings.Contains(out, "as anna until "+time.Now().Format("2006")) {
		t.Errorf("login says %s", out)
	}
	if out, err := l.run("whoami"); err != nil || !strings.Contains(out, "viewer in project payments") {
		t.Errorf("whoami = %s, %v", out, err)
	}
}

// What somebody has written into the client file stays.
func TestLoginLeavesOtherServersAlone(t *testing.T) {
	t.Parallel()
	at := realServer(t)
	anna, l := logsIn(t, at), newTerminal(t)
	dir := filepath.Join(l.env["XDG_CONFIG_HOME"], "holdfast")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	const text = "server: https://other.example.com\ntoken: of-the-other-server\n"
	if err := os.WriteFile(filepath.Join(dir, "client.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	reader, writer := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := l.start(t.Context(), io.Discard, writer, "login", "--server", at, "--no-browser")
		_ = writer.CloseWithError(io.EOF)
		done <- err
	}()
	lines := bufio.NewScanner(reader)
	for lines.Scan() {
		if _, code, ok := strings.Cut(lines.Text(), "type the code "); ok {
			_, _, page := anna.do("GET", at+"/device", nil)
			anna.do("POST", at+"/device/answer", url.Values{"csrf": {hidden(t, page, "csrf")}, "code": {code}, "answer": {"allow"}})
		}
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "is for another server") {
		t.Errorf("login = %v", err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "client.yaml")); err != nil || string(data) != text {
		t.Errorf("the client file is %s, %v", data, err)
	}
}
