package server_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/server"
)

// fakeIssuer says which run it was asked for.
type fakeIssuer struct{}

func (fakeIssuer) Issue(_ context.Context, run holdfast.Run, audience string) (protocol.IdentityToken, error) {
	if audience != "sts.amazonaws.com" {
		return protocol.IdentityToken{}, fmt.Errorf("no identity for %s: %w", audience, holdfast.ErrForbidden)
	}
	return protocol.IdentityToken{Token: fmt.Sprintf("%s %s %d", run.ID, run.Kind, run.Attempt), Lifetime: time.Hour}, nil
}
func (fakeIssuer) Paths() []string { return []string{"/.well-known/jwks.json"} }
func (fakeIssuer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write([]byte("keys"))
}

func TestTokensOfRuns(t *testing.T) {
	t.Parallel()
	w := newWorld()
	mine := w.start(planRun("run-1"))
	others := w.start(applyRun("run-2"))
	ended := w.start(applyRun("run-3"))
	w.end("run-3", holdfast.RunErrored)
	s := newServer(t, w, func(o *server.Options) { o.Agents.Issuer = fakeIssuer{} })
	url := serve(t, s.Agents())
	const ask = `{"fence":10,"audience":"sts.amazonaws.com"}`
	for name, test := range map[string]struct {
		run, token, body string
		want             int
		says             string
	}{
		"its own":             {"run-1", mine, ask, 200, `"token":"run-1 plan 1","lifetime":3600000000000`},
		"another run's":       {"run-2", mine, ask, 403, "belongs to another attempt"},
		"an apply's by name":  {"run-1", mine, `{"fence":10,"audience":"sts.amazonaws.com","kind":"apply","phase":"apply","sub":"x"}`, 200, "run-1 plan 1"},
		"of the other":        {"run-2", others, ask, 200, "run-2 apply 1"},
		"another audience":    {"run-1", mine, `{"fence":10,"audience":"https://evil.example.com"}`, 403, "no identity"},
		"no audience":         {"run-1", mine, `{"fence":10}`, 403, "no identity"},
		"an old fence":        {"run-1", mine, `{"fence":9,"audience":"sts.amazonaws.com"}`, 409, "fence"},
		"of a run that ended": {"run-3", ended, ask, 409, "over"},
		"without token":       {"run-1", "", ask, 401, ""},
		"the agent's token":   {"run-1", agentToken, ask, 401, ""},
		"an API token":        {"run-1", adminToken, ask, 401, ""},
	} {
		got := request(t, "POST", url+"/agent/v1/runs/"+test.run+"/attempts/1/tokens", test.token, test.body)
		if got.status != test.want || !strings.Contains(got.body, test.says) {
			t.Errorf("%s: %d %s, want %d %q", name, got.status, got.body, test.want, test.says)
		}
		if got.status == http.StatusOK && got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: the answer may be kept: %v", name, got.header)
		}
	}
	for handler, want := range map[string]int{serve(t, s.Public()): 200, serve(t, s.API()): 404} {
		if got := request(t, "GET", handler+"/.well-known/jwks.json", "", ""); got.status != want {
			t.Errorf("keys = %d %s, want %d", got.status, got.body, want)
		}
	}
	none := serve(t, newServer(t, w).Agents())
	if got := request(t, "POST", none+"/agent/v1/runs/run-1/attempts/1/tokens", mine, ask); got.status != 404 || !strings.Contains(got.body, "issues no tokens") {
		t.Errorf("without an issuer: %d %s", got.status, got.body)
	}
}
