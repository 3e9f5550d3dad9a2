package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// claim asks for a run as an agent of the server's own machine does, over its socket, and
// returns the answer's status and body.
func (w *world) claim(tokenFile, body string) (status int, answer string) {
	w.t.Helper()
	token, err := os.ReadFile(w.path("data", tokenFile))
	if err != nil {
		w.t.Fatal(err)
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", w.path("data", "run", "agent.sock"))
	}}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequest(http.MethodPost, "http://agent/agent/v1/claims", strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if len(token) > 0 {
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// Whoever has got hold of the token of the agent that plans claims no apply with
// it, neither in that agent's name nor in that of the one that applies: the merged
// apply that waits stays where it is, and the attempt is on record.
func TestTokenOfAPlanClaimsNoApply(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	needRoot(w)
	w.start()
	identity, err := os.ReadFile(w.path("data", "identity"))
	if err != nil {
		t.Fatal(err)
	}
	id := strings.TrimSpace(string(identity))
	for _, kinds := range []string{`["apply"]`, `["plan","apply"]`, `["destroy"]`, `[]`} {
		status, answer := w.claim("agent-plan.token", fmt.Sprintf(`{"agent":"%s/agent","kinds":%s}`, id, kinds))
		if status != http.StatusForbidden || !strings.Contains(answer, "that of agent") {
			t.Errorf("as the agent that applies, for %s: %d %s", kinds, status, answer)
		}
	}
	status, answer := w.claim("agent-plan.token", fmt.Sprintf(`{"agent":"%s/agent-plan","kinds":["apply"]}`, id))
	if status != http.StatusForbidden || !strings.Contains(answer, "may claim plan, drift") {
		t.Errorf("in its own name: %d %s", status, answer)
	}
	w.write("data/no.token", "", 0o600)
	if status, answer := w.claim("no.token", fmt.Sprintf(`{"agent":"%s/agent","kinds":["apply"]}`, id)); status != http.StatusUnauthorized {
		t.Errorf("without a token, as root: %d %s", status, answer)
	}
	var trail struct{ Items []v1.AuditEntry }
	w.getJSON("audit", url.Values{}, &trail)
	refused := 0
	for _, entry := range trail.Items {
		if entry.Action == "claim.refuse" && entry.Actor == "local/agent-plan" {
			refused++
		}
	}
	if refused != 2 { // one for each reason
		t.Errorf("on record: %+v", trail.Items)
	}
	if _, metrics := w.get(w.api + "/metrics"); !strings.Contains(metrics, `holdfast_claim_refusals_total{reason="agent"} 4`) {
		t.Errorf("metrics do not count the refused claims")
	}
	// The agents on the server's machine continue with their own tokens.
	w.fleet().open(worker("beta", "1", "true")).untilPlanned("2 to create")
}
