package server_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/ownclient"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/server"
)

func TestNewNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	good := server.HashToken("t")
	for want, change := range map[string]func(*server.Options){
		"no dispatcher":      func(o *server.Options) { o.Agents.Dispatcher = nil },
		"no blobs":           func(o *server.Options) { o.Agents.Blobs = nil },
		"no states":          func(o *server.Options) { o.Agents.States = nil },
		"no records":         func(o *server.Options) { o.API.Records = nil },
		"no commander":       func(o *server.Options) { o.API.Commander = nil },
		`role "boss"`:        func(o *server.Options) { o.API.Tokens = []server.Token{{Name: "a", Role: "boss", SHA256: good}} },
		`token "a" is empty`: func(o *server.Options) { o.Agents.Tokens = []server.AgentToken{{Name: "a", Kinds: everyKind}} },
		`token "b" is empty`: func(o *server.Options) {
			o.Agents.Tokens = []server.AgentToken{{Name: "b", SHA256: server.HashToken(""), Kinds: everyKind}}
		},
		"token 1 has no name": func(o *server.Options) { o.Agents.Tokens = []server.AgentToken{{SHA256: good, Kinds: everyKind}} },
		`token "a" is given twice`: func(o *server.Options) {
			o.Agents.Tokens = []server.AgentToken{{Name: "a", SHA256: good, Kinds: everyKind}, {Name: "a", SHA256: good, Kinds: everyKind}}
		},
	} {
		opts := options(newWorld())
		change(&opts)
		if _, err := server.New(opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New = %v, want %q", err, want)
		}
	}
}

func TestReadyReportsWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	waiting := []string{"repository shop"}
	url := serve(t, newServer(t, newWorld(), func(o *server.Options) { o.Health.Ready = func() []string { return waiting } }).API())
	if got := request(t, "GET", url+"/readyz", "", ""); got.status != 503 || !strings.Contains(got.body, "repository shop") {
		t.Errorf("readyz = %d %s, want 503 with the reason", got.status, got.body)
	}
	waiting = nil
	if got := request(t, "GET", url+"/readyz", "", ""); got.status != 200 || got.body != `{"ready":true}` {
		t.Errorf("readyz = %d %s, want 200", got.status, got.body)
	}
}

func TestMounts(t *testing.T) {
	t.Parallel()
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) })
	s := newServer(t, newWorld(), func(o *server.Options) { o.Webhooks, o.Health.Metrics = echo, echo })
	public, api, agents := serve(t, s.Public()), serve(t, s.API()), serve(t, s.Agents())
	for url, want := range map[string]string{
		public + "/webhooks/github": "/webhooks/github", public + "/healthz": "ok\n", api + "/metrics": "/metrics", agents + "/healthz": "ok\n",
	} {
		if got := request(t, "GET", url, "", ""); got.status != 200 || got.body != want {
			t.Errorf("%s = %d %q, want %q", url, got.status, got.body, want)
		}
	}
	// What one listener serves is not on another.
	for _, url := range []string{
		public + "/metrics", public + "/api/v1/runs", public + "/agent/v1/claims", api + "/agent/v1/claims",
		api + "/webhooks/github", agents + "/api/v1/runs", agents + "/metrics",
	} {
		if got := request(t, "GET", url, adminToken, ""); got.status != 404 && got.status != 405 {
			t.Errorf("%s = %d, want 404", url, got.status)
		}
	}
}

func TestPanicsAreLoggedWithTheirStack(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := newServer(t, newWorld(), func(o *server.Options) {
		o.System.Logger = slog.New(slog.NewTextHandler(&log, nil))
		o.Webhooks = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") })
	})
	got := request(t, "POST", serve(t, s.Public())+"/webhooks/github", "", "")
	if got.status != 500 || strings.Contains(got.body, "boom") {
		t.Errorf("panic = %d %s, want 500 without its cause", got.status, got.body)
	}
	if text := log.String(); !strings.Contains(text, "boom") || !strings.Contains(text, "server_test.go") {
		t.Errorf("log %q, want the cause and the stack", text)
	}
}

// listening starts a server on free ports and a socket. Its functions end the
// two halves and wait for them.
func listening(t *testing.T, w *world) (a server.Addresses, stopIntake, stopAgents func() error) {
	t.Helper()
	s := newServer(t, w, func(o *server.Options) {
		o.Listen.Public, o.Listen.API, o.Listen.Agents = server.Listener{Address: "127.0.0.1:0"}, server.Listener{Address: "127.0.0.1:0"}, server.Listener{Address: "127.0.0.1:0"}
		o.Listen.Socket = server.Socket{Path: filepath.Join(shortDir(t), "agent.sock")}
	})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	half := func(run func(context.Context) error) func() error {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- run(ctx) }()
		stop := func() error { cancel(); return <-ended }
		t.Cleanup(cancel)
		return stop
	}
	return s.Addresses(), half(s.RunIntake), half(s.RunAgents)
}

// shortDir returns a folder whose path leaves room for a socket's name.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func unixClient(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		},
	}}
}

func TestShutdownOrder(t *testing.T) {
	t.Parallel()
	w := fleet()
	token := protocol.FormatRunToken(w.runs["run-1"].Ref(), "secret-of-run-1")
	at, stopIntake, stopAgents := listening(t, w)

	// Three that wait: a claim, a follower of a log, a command.
	type outcome struct {
		status int
		err    error
	}
	waits := make(chan outcome, 3)
	await := func(method, url, token, body string) {
		req, _ := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
		req.Header.Set("Authorization", "Bearer "+token)
		go func() {
			res, err := ownclient.Client.Do(req)
			if err != nil {
				waits <- outcome{err: err}
				return
			}
			defer res.Body.Close()
			_, err = io.ReadAll(res.Body)
			waits <- outcome{res.StatusCode, err}
		}()
	}
	obeying := make(chan struct{})
	w.obey = func(ctx context.Context) string { close(obeying); <-ctx.Done(); return "" }
	await("POST", "http://"+at.Agents+"/agent/v1/claims", agentToken, `{"agent":"a","wait":30000000000,"process":"p","folder":"f"}`)
	await("GET", "http://"+at.API+"/api/v1/runs/run-1/log?follow=true", viewerToken, "")
	await("POST", "http://"+at.API+"/api/v1/commands", operatorToken, `{"verb":"apply","clusters":["prod-eu"]}`)
	<-obeying
	for len(w.noted()) < 2 { // the claim and the command have arrived
		time.Sleep(time.Millisecond)
	}

	if err := stopIntake(); err != nil {
		t.Errorf("intake ended with %v", err)
	}
	cut := 0
	for range 3 {
		if got := <-waits; got.err != nil {
			cut++ // the log: there is more of it
		} else if got.status != 204 && got.status != 202 {
			t.Errorf("a request that waited got %+v, want it answered", got)
		}
	}
	if cut > 1 {
		t.Errorf("%d requests were cut off, want the log at most", cut)
	}
	for _, address := range []string{at.Public, at.API} {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			t.Errorf("%s takes connections after the intake has ended", address)
		}
	}

	// Agents continue: no new runs, but states and results.
	for _, base := range []struct {
		client *http.Client
		url    string
	}{{ownclient.Client, "http://" + at.Agents}, {unixClient(at.Socket), "http://agent"}} {
		for path, want := range map[string]int{"/agent/v1/claims": 503, "/agent/v1/state/clusters/prod-eu?ID=": 200} {
			credential, body := token, `{"serial":1}`
			if want == 503 {
				credential, body = agentToken, `{"agent":"a","wait":1000,"process":"p","folder":"f"}`
			}
			req, _ := http.NewRequestWithContext(t.Context(), "POST", base.url+path, strings.NewReader(body))
			req.Header.Set("Authorization", "Bearer "+credential)
			res, err := base.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != want {
				t.Errorf("%s after the intake has ended = %d, want %d", path, res.StatusCode, want)
			}
		}
	}
	if err := stopAgents(); err != nil {
		t.Errorf("agents ended with %v", err)
	}
	if conn, err := net.Dial("tcp", at.Agents); err == nil {
		conn.Close()
		t.Error("agents' listener takes connections after its end")
	}
	if _, err := os.Lstat(at.Socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("socket is still there: %v", err)
	}
}

func socketServer(t *testing.T, socket server.Socket) *server.Server {
	t.Helper()
	return newServer(t, newWorld(), func(o *server.Options) { o.Listen.Socket = socket })
}

func TestSocket(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	path := filepath.Join(dir, "agent.sock")
	socket := server.Socket{Path: path}
	if os.Getuid() == 0 {
		socket.ChangeOwner, socket.UID, socket.GID = true, 65534, 65534
	}
	first := socketServer(t, socket)
	defer runtime.KeepAlive(first) // a server that nothing refers to is collected, and its socket closed
	if err := first.Listen(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Mode().Type() != fs.ModeSocket {
		t.Errorf("socket = %v, %v, want a socket with mode 0600", info, err)
	}
	checkOwner(t, info, socket)
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("folder holds %v, want the socket alone", entries)
	}

	err = socketServer(t, socket).Listen()
	if err == nil || !strings.Contains(err.Error(), "another server listens") {
		t.Errorf("second server: %v, want it refused", err)
	}

	// A server that was killed leaves its socket behind; the next one replaces it.
	dead := filepath.Join(dir, "dead.sock")
	ln, err := net.Listen("unix", dead)
	if err != nil {
		t.Fatal(err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = ln.Close()
	next := socketServer(t, server.Socket{Path: dead})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	if err := next.Listen(); err != nil {
		t.Fatalf("replace a dead server's socket: %v", err)
	}
	go func() { ended <- next.RunAgents(ctx) }()
	res, err := unixClient(dead).Get("http://agent/healthz")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()

	// A successor's socket is not taken away by who stops late.
	if err := os.Rename(path, dead); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(dead); err != nil {
		t.Errorf("the successor's socket is gone: %v", err)
	}
}

func TestSocketRefusals(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		file:                               "something else at this path",
		filepath.Join(dir, "no", "s.sock"): "no such file or directory",
		filepath.Join(dir, strings.Repeat("x", 120)): "longer than a socket's may be",
	} {
		if err := socketServer(t, server.Socket{Path: path}).Listen(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Listen at %s = %v, want %q", path, err, want)
		}
	}
	if data, _ := os.ReadFile(file); string(data) != "precious" {
		t.Errorf("file holds %q now", data)
	}
}

func TestListenIsAllOrNothing(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	path := filepath.Join(shortDir(t), "agent.sock")
	s := newServer(t, newWorld(), func(o *server.Options) {
		o.Listen.Public = server.Listener{Address: "127.0.0.1:0"}
		o.Listen.API = server.Listener{Address: taken.Addr().String()}
		o.Listen.Socket = server.Socket{Path: path}
	})
	if err := s.RunIntake(t.Context()); err == nil || !strings.Contains(err.Error(), "listen for api") {
		t.Errorf("RunIntake = %v, want the listener named", err)
	}
	if got := s.Addresses(); got != (server.Addresses{}) {
		t.Errorf("listens at %+v, want nowhere", got)
	}
}

func TestAgentsOverTLS(t *testing.T) {
	t.Parallel()
	certified := httptest.NewTLSServer(http.NotFoundHandler())
	defer certified.Close()
	w := newWorld()
	w.claims <- protocol.Assignment{AttemptRef: holdfast.AttemptRef{Run: "run-1"}}
	s := newServer(t, w, func(o *server.Options) {
		o.Listen.Agents = server.Listener{Address: "127.0.0.1:0", TLS: &tls.Config{Certificates: certified.TLS.Certificates}}
	})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.RunAgents(ctx) }()

	req, _ := http.NewRequestWithContext(t.Context(), "POST", "https://"+s.Addresses().Agents+"/agent/v1/claims",
		strings.NewReader(`{"agent":"a","wait":1000000000,"process":"p","folder":"f"}`))
	req.Header.Set("Authorization", "Bearer "+agentToken)
	res, err := certified.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 200 {
		t.Errorf("claim over TLS = %d, want 200", res.StatusCode)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestFailedHandshakesAreReported: of agents, once a minute, since the other side of it is
// on another machine.
func TestFailedHandshakesAreReported(t *testing.T) {
	t.Parallel()
	certified := httptest.NewTLSServer(http.NotFoundHandler())
	defer certified.Close()
	w, log := newWorld(), &lockedLog{}
	s := newServer(t, w, func(o *server.Options) {
		o.Listen.Agents = server.Listener{Address: "127.0.0.1:0", TLS: &tls.Config{Certificates: certified.TLS.Certificates}}
		o.System.Logger = slog.New(slog.NewTextHandler(log, nil))
	})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.RunAgents(ctx) }()
	for range 3 { // a client that trusts nobody
		conn, err := tls.Dial("tcp", s.Addresses().Agents, &tls.Config{})
		if err == nil {
			conn.Close()
			t.Fatal("the handshake succeeded")
		}
	}
	for deadline := time.Now().Add(time.Minute); !strings.Contains(log.String(), "TLS handshake error"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing is told of a failed handshake")
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if text := log.String(); strings.Count(text, "TLS handshake error") != 1 || !strings.Contains(text, "listener=agents") {
		t.Errorf("the log:\n%s", text)
	}
}

// lockedLog keeps what is logged.
type lockedLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
