package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

var record = flag.Bool("record", false, "write what the previous protocol says into server/testdata/protocol")

// recordedFile has the exchanges of an agent and a server of the previous protocol. The tests of
// server replay them.
const recordedFile = "../../server/testdata/protocol/previous.json"

// exchange is a request of an agent and its answer.
type exchange struct {
	Method string            `json:"method"`
	Path   string            `json:"path"` // with its query
	Run    bool              `json:"run"`  // it has the credential of a run, and not the agent's
	Header map[string]string `json:"header,omitempty"`
	Body   string            `json:"body,omitempty"`
	Binary []byte            `json:"binary,omitempty"` // the body, if it is not text
	Status int               `json:"status"`
	Answer json.RawMessage   `json:"answer,omitempty"`
}

var variableParts = regexp.MustCompile(`/(runs/)?[^/]*[0-9][^/]*`)

// kind is the same for exchanges that differ in names and numbers only.
func (e exchange) kind() string {
	path, _, _ := strings.Cut(e.Path, "?")
	return e.Method + " " + variableParts.ReplaceAllString(strings.Replace(path, "/v1/", "/V/", 1), "/_")
}

// recorder passes requests on to a server's socket, and keeps the first exchange of each kind
// that went well.
type recorder struct {
	mu        sync.Mutex
	exchanges []exchange
}

func (r *recorder) listen(t *testing.T, from, to string) {
	t.Helper()
	listener, err := net.Listen("unix", from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(from, 0o666); err != nil { //nolint:gosec // the agent is another user
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) { p.Out.URL.Scheme, p.Out.URL.Host = "http", "server" },
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", to)
		}},
		ModifyResponse: r.note,
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), bodyKey{}, body)))
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
}

type bodyKey struct{}

func (r *recorder) note(res *http.Response) error {
	e := exchange{Method: res.Request.Method, Path: res.Request.URL.RequestURI(), Status: res.StatusCode, Header: map[string]string{}}
	e.Run = !strings.HasPrefix(e.Path, "/agent/v1/claims") && !strings.HasPrefix(e.Path, "/agent/v1/presence")
	for name, values := range res.Request.Header {
		if !slices.Contains([]string{"Authorization", "User-Agent", "Accept-Encoding", "Content-Length", "Traceparent"}, name) {
			e.Header[name] = values[0]
		}
	}
	body, _ := res.Request.Context().Value(bodyKey{}).([]byte)
	if utf8.Valid(body) {
		e.Body = string(body)
	} else {
		e.Binary = body
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		answer, err := io.ReadAll(res.Body)
		if err != nil {
			return err
		}
		res.Body = io.NopCloser(bytes.NewReader(answer))
		if json.Valid(answer) {
			e.Answer = answer
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	alike := func(other exchange) bool {
		return other.kind() == e.kind() && other.Status == e.Status && len(e.Answer) == 0 == (len(other.Answer) == 0)
	}
	assigned := strings.HasPrefix(e.Path, "/agent/v1/claims") && e.Status == http.StatusOK // what follows is of its run
	if e.Status < 300 && (assigned || !slices.ContainsFunc(r.exchanges, alike)) {
		r.exchanges = append(r.exchanges, e)
	}
	return nil
}

// What an agent and a server of the previous protocol say to each other is what was recorded of
// it: a plan and an apply have no request of another kind.
func TestPreviousProtocolIsRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"agent.off": true, "server.agents.tokens": []any{map[string]any{
		"name": "edge", "token": map[string]any{"file": "edge-token"}, "kinds": []string{"plan", "drift", "apply", "destroy"},
	}}})
	w.write("edge-token", "the token of agents elsewhere", 0o600)
	w.usePrevious()
	w.start()
	recorded := new(recorder)
	recorded.listen(t, w.path("recorder.sock"), w.path("data", "run", "agent.sock"))
	users, _ := slotUsers(t)
	w.elsewhereAs(nil, nil, "edge/1", "edge", "edge-token", "--slot-user", itoa(users), "--server", "unix://"+w.path("recorder.sock"))
	pr := w.fleet().open(cluster("alpha", "nodes: 2"))
	pr.untilPlanned("2 to create")
	pr.merge()
	pr.untilApplied("2 created")

	recorded.mu.Lock()
	defer recorded.mu.Unlock()
	if *record {
		data, err := json.MarshalIndent(recorded.exchanges, "", " ")
		if err == nil {
			err = os.WriteFile(recordedFile, append(data, '\n'), 0o644) //nolint:gosec // part of the repository
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(recordedFile)
	if err != nil {
		t.Fatal(err)
	}
	var known []exchange
	if err := json.Unmarshal(data, &known); err != nil {
		t.Fatal(err)
	}
	for _, e := range recorded.exchanges {
		if !slices.ContainsFunc(known, func(k exchange) bool { return k.kind() == e.kind() && k.Status == e.Status }) {
			t.Errorf("%s: %d is not recorded: run this test with -record", e.kind(), e.Status)
		}
	}
}
