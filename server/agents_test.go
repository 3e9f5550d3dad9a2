package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	"github.com/holdfast-dev/holdfast/internal/testenv/apicheck"
	"github.com/holdfast-dev/holdfast/internal/testenv/ownclient"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/server"
)

const (
	agentToken    = "agent-token"
	viewerToken   = "viewer-token"
	operatorToken = "operator-token"
	adminToken    = "admin-token"
)

var everyKind = []holdfast.RunKind{holdfast.RunPlan, holdfast.RunApply, holdfast.RunDrift, holdfast.RunDestroy}

func options(w *world) server.Options {
	return server.Options{
		API: server.API{
			Records: w, Artefacts: w, Commander: w, Registry: w, Posts: w, Runners: server.Runners{Records: &places{}, Operator: &places{}}, Proposer: &proposing{}, Deliveries: w, Tokens: []server.Token{
				{Name: "vera", Role: access.Viewer, SHA256: server.HashToken(viewerToken)},
				{Name: "otto", Role: access.Operator, SHA256: server.HashToken(operatorToken)},
				{Name: "anna", Role: access.Admin, SHA256: server.HashToken(adminToken)},
			},
		},
		Agents: server.Agents{
			Dispatcher: w, Registry: w, Runs: w, Blobs: w, States: w,
			Tokens: []server.AgentToken{{Name: "a", SHA256: server.HashToken(agentToken), Kinds: everyKind}},
		},
		System: server.System{Now: func() time.Time { return now }},
	}
}

func newServer(t testing.TB, w *world, change ...func(*server.Options)) *server.Server {
	t.Helper()
	opts := options(w)
	for _, c := range change {
		c(&opts)
	}
	s, err := server.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// serve returns the base URL of a handler behind real HTTP.
func serve(t testing.TB, h http.Handler) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

type answer struct {
	status int
	header http.Header
	body   string
}

func request(t testing.TB, method, url, token, body string, headers ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := ownclient.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return answer{res.StatusCode, res.Header, ""} // it has no end
	}
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := apicheck.Check(method, url, apicheck.Answer{Status: res.StatusCode, Header: res.Header, Body: data}); err != nil {
		t.Errorf("%s %s is not as it is described: %v\n%s", method, url, err, data)
	}
	return answer{res.StatusCode, res.Header, string(data)}
}

func applyRun(id string) holdfast.Run {
	return holdfast.Run{
		ID: id, Cluster: "prod-eu", Kind: holdfast.RunApply,
		RunSpec: holdfast.RunSpec{
			StateLocation: "clusters/prod-eu",
			Bundle:        holdfast.DigestOf([]byte("bundle")),
		},
	}
}

func planRun(id string) holdfast.Run {
	run := applyRun(id)
	run.Kind = holdfast.RunPlan
	return run
}

func TestClaim(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		token, body string
		queued      bool
		fail        error
		want        int
		wantError   string
	}{
		"a run":            {token: agentToken, body: `{"agent":"a/1","wait":1000000000,"process":"p","folder":"f"}`, queued: true, want: 200},
		"nothing to do":    {token: agentToken, body: `{"agent":"a/1","wait":1000000,"process":"p","folder":"f"}`, want: 204},
		"unknown fields":   {token: agentToken, body: `{"agent":"a/1","wait":1000000000,"new":true,"process":"p","folder":"f"}`, queued: true, want: 200},
		"no token":         {body: `{"agent":"a/1","process":"p","folder":"f"}`, want: 401, wantError: "agent token missing or unknown"},
		"an API token":     {token: adminToken, body: `{"agent":"a/1","process":"p","folder":"f"}`, want: 401, wantError: "agent token"},
		"no agent":         {token: agentToken, body: `{}`, want: 400, wantError: "names no agent"},
		"not JSON":         {token: agentToken, body: `agent`, want: 400, wantError: "body is not valid"},
		"two values":       {token: agentToken, body: `{"agent":"a"}{}`, want: 400, wantError: "more than one"},
		"out of reach":     {token: agentToken, body: `{"agent":"a/1","process":"p","folder":"f"}`, fail: fmt.Errorf("redis: %w", holdfast.ErrUnavailable), want: 503, wantError: "redis"},
		"our disk is full": {token: agentToken, body: `{"agent":"a/1","process":"p","folder":"f"}`, fail: fmt.Errorf("write: %w", syscall.ENOSPC), want: 503, wantError: "the server's disk is full"},
		"our own trouble":  {token: agentToken, body: `{"agent":"a/1","process":"p","folder":"f"}`, fail: errors.New("sql: secret detail"), want: 500, wantError: "internal error"},
		"larger than wait": {token: agentToken, body: `{"agent":"a/1","wait":9000000000000,"process":"p","folder":"f"}`, queued: true, want: 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.failWith = tc.fail
			if tc.queued {
				w.claims <- protocol.Assignment{AttemptRef: holdfast.AttemptRef{Run: "run-1", Attempt: 1, Fence: 3}, Token: "t"}
			}
			url := serve(t, newServer(t, w).Agents())
			got := request(t, "POST", url+"/agent/v1/claims", tc.token, tc.body)
			if got.status != tc.want || !strings.Contains(got.body, tc.wantError) || strings.Contains(got.body, "secret detail") {
				t.Errorf("claim = %d %s, want %d %q", got.status, got.body, tc.want, tc.wantError)
			}
			if tc.want == 200 && !strings.Contains(got.body, `"run":"run-1"`) {
				t.Errorf("claim = %s, want the assignment", got.body)
			}
			if calls := strings.Join(w.noted(), "\n"); name == "larger than wait" && !strings.Contains(calls, " 30s") {
				t.Errorf("waited %s, want at most 30s", calls)
			}
		})
	}
}

// TestAttemptRules walks every endpoint with every kind of credential.
func TestAttemptRules(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.bundles[holdfast.DigestOf([]byte("bundle"))] = "bundle"
	w.bundles[holdfast.DigestOf([]byte("other"))] = "other"
	w.artefacts["run-old/plan"] = "old plan"
	w.artefacts["run-us/plan"] = "us plan"
	w.runs["run-old"] = applyRun("run-old")
	us := applyRun("run-us")
	us.Cluster, us.StateLocation = "prod-us", "clusters/prod-us"
	mine, former := w.start(applyRun("run-1")), ""
	former = w.start(applyRun("run-2"))
	w.start(w.runs["run-2"])
	ended := w.start(applyRun("run-3"))
	w.end("run-3", holdfast.RunErrored)
	w.start(us)
	url := serve(t, newServer(t, w).Agents())

	beat, result := `{"fence":10,"step":"plan"}`, `{"fence":10,"status":"applied"}`
	attempt := "/agent/v1/runs/run-1/attempts/1/"
	bundle := "/agent/v1/bundles/" + string(holdfast.DigestOf([]byte("bundle")))
	for _, tc := range []struct {
		name, method, path, token, body string
		want                            int
	}{
		{"heartbeat", "POST", attempt + "heartbeat", mine, beat, 200},
		{"heartbeat with an old fence", "POST", attempt + "heartbeat", mine, `{"fence":9}`, 409},
		{"heartbeat without token", "POST", attempt + "heartbeat", "", beat, 401},
		{"heartbeat with the agent's token", "POST", attempt + "heartbeat", agentToken, beat, 401},
		{"heartbeat with a wrong secret", "POST", attempt + "heartbeat", "run-1.1.guess", beat, 401},
		{"heartbeat of another run", "POST", "/agent/v1/runs/run-us/attempts/1/heartbeat", mine, beat, 403},
		{"heartbeat of another attempt", "POST", "/agent/v1/runs/run-1/attempts/2/heartbeat", mine, beat, 403},
		{"heartbeat of a former attempt", "POST", "/agent/v1/runs/run-2/attempts/1/heartbeat", former, beat, 409},
		{"heartbeat of an ended run", "POST", "/agent/v1/runs/run-3/attempts/1/heartbeat", ended, beat, 409},
		{"log", "POST", attempt + "logs?offset=0", mine, "hello", 200},
		{"log without offset", "POST", attempt + "logs", mine, "hello", 400},
		{"log at a negative offset", "POST", attempt + "logs?offset=-1", mine, "hello", 400},
		{"log of a former attempt", "POST", "/agent/v1/runs/run-2/attempts/1/logs?offset=0", former, "x", 409},
		{"mask of a log", "POST", attempt + "logs/mask", mine, `{"spans":[{"from":5,"to":9}]}`, 204},
		{"mask with too many parts", "POST", attempt + "logs/mask", mine, `{"spans":[` + strings.Repeat(`{"from":0,"to":3},`, 4096) + `{"from":0,"to":3}]}`, 400},
		{"mask of the log of a former attempt", "POST", "/agent/v1/runs/run-2/attempts/1/logs/mask", former, `{}`, 409},
		{"artefact", "PUT", attempt + "artefacts/document", mine, "{}", 204},
		{"what the server makes", "PUT", attempt + "artefacts/summary", mine, "{}", 403},
		{"artefact with a bad name", "PUT", attempt + "artefacts/..%2Fplan", mine, "{}", 404},
		{"artefact with an odd name", "PUT", attempt + "artefacts/.plan", mine, "{}", 400},
		{"artefact that no run has", "PUT", attempt + "artefacts/loot", mine, "{}", 403},
		{"artefact of another run", "PUT", "/agent/v1/runs/run-us/attempts/1/artefacts/plan", mine, "{}", 403},
		{"artefact of a former attempt", "PUT", "/agent/v1/runs/run-2/attempts/1/artefacts/document", former, "{}", 409},
		{"unsaved state of a former attempt", "PUT", "/agent/v1/runs/run-2/attempts/1/artefacts/errored.tfstate", former, "{}", 204},
		{"unsaved state of an ended run", "PUT", "/agent/v1/runs/run-3/attempts/1/artefacts/errored.tfstate", ended, "{}", 204},
		{"unsaved state of another's former attempt", "PUT", "/agent/v1/runs/run-2/attempts/1/artefacts/errored.tfstate", ended, "{}", 403},
		{"result with an old fence", "POST", attempt + "result", mine, `{"fence":9,"status":"applied"}`, 409},
		{"result that is not an end", "POST", attempt + "result", mine, `{"fence":10,"status":"running"}`, 400},
		{"result", "POST", attempt + "result", mine, result, 204},
		{"own artefact", "GET", "/agent/v1/runs/run-1/artefacts/document", mine, "", 200},
		{"artefact of the cluster", "GET", "/agent/v1/runs/run-old/artefacts/plan", mine, "", 200},
		{"artefact that is not there", "GET", "/agent/v1/runs/run-old/artefacts/outputs", mine, "", 404},
		{"artefact of no run", "GET", "/agent/v1/runs/run-9/artefacts/plan", mine, "", 404},
		{"artefact of another cluster", "GET", "/agent/v1/runs/run-us/artefacts/plan", mine, "", 403},
		{"artefact for an ended run", "GET", "/agent/v1/runs/run-old/artefacts/plan", ended, "", 409},
		{"bundle", "GET", bundle, mine, "", 200},
		{"bundle of another", "GET", "/agent/v1/bundles/" + string(holdfast.DigestOf([]byte("other"))), mine, "", 403},
		{"bundle without token", "GET", bundle, "", "", 401},
		{"bundle for an ended run", "GET", bundle, ended, "", 409},
		{"state of another", "GET", "/agent/v1/state/clusters/prod-us", mine, "", 403},
		{"state of nothing", "GET", "/agent/v1/state/", mine, "", 403},
		{"unknown path", "GET", "/agent/v1/frob", mine, "", 404},
		{"unknown method", "DELETE", "/agent/v1/claims", mine, "", 405},
		{"deletion of a state", "DELETE", "/agent/v1/state/clusters/prod-eu", mine, "", 405},
	} {
		got := request(t, tc.method, url+tc.path, tc.token, tc.body)
		if got.status != tc.want {
			t.Errorf("%s: %d %s, want %d", tc.name, got.status, got.body, tc.want)
		}
		var said server.ErrorAnswer
		if got.status >= 400 && (json.Unmarshal([]byte(got.body), &said) != nil || said.Error == "") {
			t.Errorf("%s: body %q, want an error in JSON", tc.name, got.body)
		}
	}
	want := []string{"heartbeat run-1/1/10 plan", "finish run-1/1/10 applied"}
	if diff := cmp.Diff(want, w.noted()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	w.look(func() {
		if w.artefacts["run-1/document"] != "{}" || w.logs["run-1/1"] != "hello" {
			t.Errorf("stored %q and %q", w.artefacts["run-1/document"], w.logs["run-1/1"])
		}
	})
}

func TestArtefactLimits(t *testing.T) {
	t.Parallel()
	w := newWorld()
	token := w.start(applyRun("run-1"))
	url := serve(t, newServer(t, w, func(o *server.Options) { o.Limits.Artefact = 10 }).Agents())
	path := url + "/agent/v1/runs/run-1/attempts/1/artefacts/document"
	if got := request(t, "PUT", path, token, "12345678901"); got.status != http.StatusRequestEntityTooLarge {
		t.Errorf("11 bytes = %d %s, want 413", got.status, got.body)
	}
	small := url + "/agent/v1/runs/run-1/attempts/1/artefacts/"
	for name, want := range map[string]int{"lock.hcl": 204, "modules": 204, "plan": 403, "anything": 403, "summary": 403} {
		if got := request(t, "PUT", small+name, token, "x"); got.status != want {
			t.Errorf("%s = %d %s, want %d", name, got.status, got.body, want)
		}
	}
	other := w.start(planRun("run-2")) // whose code no apply is to use
	if got := request(t, "PUT", url+"/agent/v1/runs/run-2/attempts/1/artefacts/modules", other, "x"); got.status != http.StatusForbidden {
		t.Errorf("modules of a plan = %d %s, want 403", got.status, got.body)
	}
	if got := request(t, "PUT", path, token, "1234567890"); got.status != http.StatusNoContent {
		t.Errorf("10 bytes = %d %s, want 204", got.status, got.body)
	}
}

// TestArtefactsAreBounded: each by its name, and what is on its way by there being
// one at a time, so that what an attempt leaves is bounded by their sum.
func TestArtefactsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld()
	token, other := w.start(applyRun("run-1")), w.start(planRun("run-2"))
	url := serve(t, newServer(t, w).Agents()) + "/agent/v1/runs/"
	size := int(protocol.ArtefactLimit(protocol.ArtefactLockFile))
	for more, want := range map[int]int{0: http.StatusNoContent, 1: http.StatusRequestEntityTooLarge} {
		body := strings.Repeat("x", size+more)
		if got := request(t, "PUT", url+"run-1/attempts/1/artefacts/lock.hcl", token, body); got.status != want {
			t.Errorf("%d bytes more than the limit = %d %s, want %d", more, got.status, got.body, want)
		}
	}

	r, half := io.Pipe()
	begun, answered := make(chan struct{}), make(chan int, 1)
	w.begins = func(name string) {
		if name == protocol.ArtefactDocument {
			close(begun)
		}
	}
	go func() {
		req, _ := http.NewRequestWithContext(t.Context(), "PUT", url+"run-1/attempts/1/artefacts/document", r)
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := ownclient.Client.Do(req)
		if err != nil {
			answered <- 0
			return
		}
		res.Body.Close()
		answered <- res.StatusCode
	}()
	_, _ = half.Write([]byte("half"))
	select {
	case <-begun:
	case got := <-answered:
		t.Fatalf("half an upload = %d", got)
	}
	if got := request(t, "PUT", url+"run-1/attempts/1/artefacts/lock.hcl", token, "x"); got.status != http.StatusServiceUnavailable {
		t.Errorf("a second upload = %d %s, want 503", got.status, got.body)
	}
	if got := request(t, "PUT", url+"run-2/attempts/1/artefacts/lock.hcl", other, "x"); got.status != http.StatusNoContent {
		t.Errorf("an upload of another attempt = %d %s", got.status, got.body)
	}
	half.Close()
	if got := <-answered; got != http.StatusNoContent {
		t.Errorf("the first upload = %d", got)
	}
}

// TestBrokenSourceCutsTheAnswer: half a plan file must not be taken for one.
func TestBrokenSourceCutsTheAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld()
	token := w.start(applyRun("run-1"))
	w.source = func(string, string) io.ReadCloser {
		half := strings.NewReader(strings.Repeat("x", 100_000))
		return io.NopCloser(io.MultiReader(half, iotest.ErrReader(errors.New("disk error"))))
	}
	url := serve(t, newServer(t, w).Agents())
	req, _ := http.NewRequestWithContext(t.Context(), "GET", url+"/agent/v1/runs/run-1/artefacts/plan", nil)
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := ownclient.Client.Do(req)
	if err != nil {
		return // cut before anything was sent: as good
	}
	defer res.Body.Close()
	if data, err := io.ReadAll(res.Body); err == nil {
		t.Errorf("read %d bytes without an error, want the connection to be cut", len(data))
	}
}

func TestLogOffsets(t *testing.T) {
	t.Parallel()
	w := newWorld()
	token := w.start(applyRun("run-1"))
	url := serve(t, newServer(t, w).Agents()) + "/agent/v1/runs/run-1/attempts/1/logs?offset="
	for _, step := range []struct {
		offset int
		data   string
		want   string
	}{
		{0, "abc", `{"next":3}`},
		{5, "too far", `{"next":3}`},
		{0, "abcdef", `{"next":6}`},
	} {
		got := request(t, "POST", fmt.Sprint(url, step.offset), token, step.data)
		if got.status != 200 || got.body != step.want {
			t.Errorf("log at %d = %d %s, want %s", step.offset, got.status, got.body, step.want)
		}
	}
	// Not more than that: a client that still sends when it is refused may meet a
	// closed connection before it reads the answer.
	big := bytes.Repeat([]byte("x"), 4<<20+1)
	if got := request(t, "POST", url+"6", token, string(big)); got.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a byte more than 4 MiB at once = %d, want 413", got.status)
	}
}

// TestSlowPeersAreLetGo: whoever stops in the middle of a header or a body does not
// hold a connection forever, and whoever is slow but steady is served.
func TestSlowPeersAreLetGo(t *testing.T) {
	t.Parallel()
	w := newWorld()
	token := w.start(applyRun("run-1"))
	s := newServer(t, w, func(o *server.Options) {
		o.Listen.Agents, o.Limits.Patience = server.Listener{Address: "127.0.0.1:0"}, 300*time.Millisecond
	})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.RunAgents(ctx) }()
	defer func() { cancel(); <-ended }()

	head := "POST /agent/v1/runs/run-1/attempts/1/logs?offset=0 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\n"
	for name, begun := range map[string]string{
		"header":                 head,
		"body":                   head + "Content-Length: 100\r\n\r\nhalf a bo",
		"body that nobody reads": "POST /agent/v1/claims HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf a bo",
	} {
		conn, err := net.Dial("tcp", s.Addresses().Agents)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, begun); err != nil {
			t.Fatal(err)
		}
		// It ends, with an answer or without one.
		_ = conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
		data, err := io.ReadAll(conn)
		if errors.Is(err, os.ErrDeadlineExceeded) || strings.Contains(string(data), " 200 ") {
			t.Errorf("stopped in the %s: %v %s", name, err, data)
		}
		_ = conn.Close()
	}
	w.look(func() {
		if w.logs["run-1/1"] != "" {
			t.Errorf("log holds %q", w.logs["run-1/1"])
		}
	})

	// Longer than patience as a whole, never silent for as long.
	steady := iotest.OneByteReader(&slowReader{rest: "0123456789", pause: 50 * time.Millisecond})
	req, _ := http.NewRequestWithContext(t.Context(), "POST", "http://"+s.Addresses().Agents+"/agent/v1/runs/run-1/attempts/1/logs?offset=0", steady)
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := ownclient.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 200 {
		t.Errorf("a slow and steady upload = %d, want 200", res.StatusCode)
	}
}

type slowReader struct {
	rest  string
	pause time.Duration
}

func (r *slowReader) Read(p []byte) (int, error) {
	if r.rest == "" {
		return 0, io.EOF
	}
	time.Sleep(r.pause)
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// TestSecondAgentOfAnID: it is refused with what to do, which the server's log and its
// audit trail have as well.
func TestSecondAgentOfAnID(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"claims", "presence"} {
		w, log := newWorld(), &strings.Builder{}
		w.failWith = &protocol.AgentTakenError{Agent: "here/plan", Host: "first-host"}
		url := serve(t, newServer(t, w, guarded(w), func(o *server.Options) {
			o.System.Logger = slog.New(slog.NewTextHandler(log, nil))
		}).Agents())
		var got answer
		for range 3 {
			got = request(t, "POST", url+"/agent/v1/"+path, "plan-token", `{"agent":"here/plan","host":"second-host","process":"p","folder":"f"}`)
		}
		if got.status != http.StatusConflict || !strings.Contains(got.body, "first-host") || !strings.Contains(got.body, "--id") {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
		for what, text := range map[string]string{"log": log.String(), "audit trail": fmt.Sprint(w.audit)} {
			if strings.Count(text, "first-host") != 1 || !strings.Contains(text, "second-host") || !strings.Contains(text, "--id") {
				t.Errorf("%s: the %s says %s", path, what, text)
			}
		}
	}
}

// TestWeakAgent: one whose isolation is too weak is refused with what to do, which the
// server's log and its audit trail have as well, and is counted.
func TestWeakAgent(t *testing.T) {
	t.Parallel()
	w, log, refused := newWorld(), &strings.Builder{}, []string{}
	w.failWith = &protocol.AgentIsolationError{Isolation: "none", Demanded: []string{"slots", "range"}}
	url := serve(t, newServer(t, w, guarded(w), func(o *server.Options) {
		o.System.Logger = slog.New(slog.NewTextHandler(log, nil))
		o.Agents.Refused = func(why string) { w.look(func() { refused = append(refused, why) }) }
	}).Agents())
	got := request(t, "POST", url+"/agent/v1/claims", "plan-token", `{"agent":"here/plan","host":"its-host","isolation":"none","process":"p","folder":"f"}`)
	if got.status != http.StatusForbidden || fmt.Sprint(refused) != "[isolation]" {
		t.Errorf("%d, counted %q", got.status, refused)
	}
	for what, text := range map[string]string{"answer": got.body, "log": log.String(), "audit trail": fmt.Sprint(w.audit)} {
		for _, want := range []string{"isolation none is weaker", "slots, range", "--isolation range", "holdfast.yaml"} {
			if !strings.Contains(text, want) {
				t.Errorf("the %s does not say %q: %s", what, want, text)
			}
		}
	}
}

// TestReadinessReportsAgents: how many of which kind there are, and what is lacking,
// but not their names: it is for everybody. A lack keeps nobody away.
func TestReadinessReportsAgents(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.agents = []protocol.AgentStatus{
		{ID: "secret-name-1", Living: true, Kinds: []holdfast.RunKind{"plan", "drift"}, Isolation: "slots"},
		{ID: "secret-name-2", Living: true, Kinds: []holdfast.RunKind{"drift", "plan"}, Isolation: "slots"},
		{ID: "secret-name-3", Kinds: []holdfast.RunKind{"apply"}, Isolation: "slots"},
	}
	url := serve(t, newServer(t, w, func(o *server.Options) {
		o.Health.Lacking = func() []string { return []string{"no living agent executes apply runs"} }
	}).API())
	got := request(t, "GET", url+"/readyz", "", "")
	want := `{"ready":true,"warnings":["no living agent executes apply runs"],"agents":[{"kinds":["drift","plan"],"isolation":"slots","count":2}]}`
	if got.status != http.StatusOK || got.body != want {
		t.Errorf("%d %s, want %s", got.status, got.body, want)
	}
	if list := request(t, "GET", url+"/api/v1/agents", viewerToken, ""); list.status != http.StatusOK || strings.Count(list.body, "secret-name") != 3 {
		t.Errorf("agents: %d %s", list.status, list.body)
	}
}
