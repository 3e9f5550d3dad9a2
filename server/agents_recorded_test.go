package server_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/ownclient"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/server"
)

// recordedExchange is what an agent of the previous protocol has said, and was answered by a server of
// that protocol. The end-to-end tests record it.
type recordedExchange struct {
	Method, Path string
	Run          bool
	Header       map[string]string
	Body         string
	Binary       []byte
	Status       int
	Answer       json.RawMessage
}

// TestRecordedProtocol: requests of agents of the previous protocol are answered as they were by
// its servers: with the same status, and with everything that they were told then.
func TestRecordedProtocol(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/protocol/previous.json")
	if err != nil {
		t.Fatal(err)
	}
	var exchanges []recordedExchange
	if err := json.Unmarshal(data, &exchanges); err != nil {
		t.Fatal(err)
	}
	w := newWorld()
	url := serve(t, newServer(t, w, func(o *server.Options) {
		o.Agents.Tokens = []server.AgentToken{{Name: "edge", SHA256: server.HashToken(agentToken), Kinds: everyKind}}
	}).Agents())
	current, last := make(map[string]string), "" // tokens, by run
	answered := make(map[string]bool)
	for _, e := range exchanges {
		token := agentToken
		if e.Run {
			token = current[runOfPath(e.Path)]
			if token == "" { // a state's path names no run
				token = last
			}
		} else if e.Status == http.StatusOK {
			var a protocol.Assignment
			if err := json.Unmarshal(e.Answer, &a); err != nil {
				t.Fatal(err)
			}
			run := holdfast.Run{ID: a.Run, Cluster: a.Cluster, Kind: a.Kind, RunSpec: holdfast.RunSpec{StateLocation: a.StateLocation, Bundle: a.Bundle}}
			run.Fence = a.Fence - 10
			w.bundles[a.Bundle] = "bundle"
			last = w.start(run)
			current[a.Run], a.Token = last, last
			w.claims <- a
		}
		answered[e.Method+" "+e.Path] = true
		got := replay(t, url, e, token)
		if got.status != e.Status {
			t.Errorf("%s %s: %d %s, and %d was recorded", e.Method, e.Path, got.status, got.body, e.Status)
			continue
		}
		if len(e.Answer) > 0 {
			lacks(t, e.Method+" "+e.Path, e.Answer, []byte(got.body))
		}
	}
	if len(answered) < 8 {
		t.Errorf("%d requests were recorded: they are more", len(answered))
	}
}

func runOfPath(path string) string {
	_, rest, _ := strings.Cut(path, "/runs/")
	run, _, _ := strings.Cut(rest, "/")
	return run
}

func replay(t *testing.T, url string, e recordedExchange, token string) answer {
	t.Helper()
	body := e.Binary
	if e.Body != "" {
		body = []byte(e.Body)
	}
	if !e.Run { // nobody waits for a run
		var claim map[string]any
		if err := json.Unmarshal(body, &claim); err != nil {
			t.Fatal(err)
		}
		claim["wait"] = 1
		if e.Status == http.StatusOK { // it is there, and a claim that does not wait may miss it
			claim["wait"] = int64(10 * time.Second)
		}
		body, _ = json.Marshal(claim)
	}
	req, err := http.NewRequestWithContext(t.Context(), e.Method, url+e.Path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range e.Header {
		req.Header.Set(name, value)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := ownclient.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{status: res.StatusCode, body: string(text)}
}

// lacks reports the fields that an answer had and has no longer.
func lacks(t *testing.T, what string, recorded, now []byte) {
	t.Helper()
	var was, is map[string]any
	if json.Unmarshal(recorded, &was) != nil {
		return
	}
	if err := json.Unmarshal(now, &is); err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	for name := range was {
		if _, there := is[name]; !there {
			t.Errorf("%s is answered without %q", what, name)
		}
	}
}
