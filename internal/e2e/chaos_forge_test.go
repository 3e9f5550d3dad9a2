package e2e_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
)

// GitHub answers with something else than it was asked for, now and then, for
// every kind of call: in the end everything is said, and said once.
func TestForgeFaultsLoseNothing(t *testing.T) {
	t.Parallel()
	lost := githubserver.BadGateway
	lost.After = true
	faults := []githubserver.Fault{
		githubserver.Unauthorized, githubserver.Forbidden, githubserver.NotFound, githubserver.Unprocessable,
		githubserver.BadGateway, lost, githubserver.HTML, githubserver.Garbage,
		githubserver.SecondaryLimit(time.Second),
	}
	w := newWorld(t, nil)
	w.start()
	const api = "/repos/{owner}/{repo}/"
	for _, fault := range faults {
		for _, route := range []string{
			"GET " + api + "pulls/{number}", "POST " + api + "issues/{number}/comments",
			"PATCH " + api + "issues/comments/{id}", "POST " + api + "statuses/{sha}",
		} {
			w.hub.Fail(1, route, fault)
		}
	}
	fleet := w.fleet()
	for i := range faults {
		fleet.open(cluster(fmt.Sprintf("alpha-%d", i), "nodes: 1"))
	}
	for i, pr := range fleet.pulls {
		pr.untilPlanned("1 to create")
		w.until("it is known that the plan was posted", func() (bool, string) {
			run := w.newest(fmt.Sprintf("alpha-%d", i), holdfast.RunPlan)
			return !run.PostedAt.IsZero(), string(run.Status)
		})
	}
	for _, pr := range fleet.pulls {
		pr.merge()
	}
	for _, pr := range fleet.pulls {
		pr.untilApplied("1 created")
		pr.untilComment("Merged as", "applied") // there is one, or this fails
		for sha, context := range map[string]string{pr.head: holdfast.ContextPlan, pr.merged: holdfast.ContextApply} {
			if n := timesSaid(fleet.hub.Statuses(sha), context); n != 1 {
				t.Errorf("%s of pull request %d was told a success %d times, want once", context, pr.number, n)
			}
		}
	}
	if strings.Contains(w.log.all(), githubserver.Token) {
		t.Error("the server logs its token")
	}
	if strings.Contains(w.log.all(), "<html>") {
		t.Error("the server logs a page of HTML")
	}
}

// timesSaid is how often a success was told in a context.
func timesSaid(statuses []githubserver.Status, context string) int {
	n := 0
	for _, status := range statuses {
		if status.Context == context && status.State == string(holdfast.StatusSuccess) {
			n++
		}
	}
	return n
}

// Deliveries that are not GitHub's are refused, each with a reason, and what
// they ask for is not done.
func TestForgedDeliveriesAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.addRepo("acme/other", settings{"webhookSecret": map[string]any{"file": "other-secret"}})
	w.write("other-secret", "it knows nothing of the fleet", 0o600)
	w.start()
	pr := w.fleet().open(cluster("alpha", "nodes: 2"))
	pr.untilPlanned("2 to create")
	pr.merge()
	pr.untilApplied()

	deliveries := w.fleet().hub.Deliveries()
	last := deliveries[len(deliveries)-1]
	// A refused body is not read: a client that sends all of it may meet a closed
	// connection before it reads the answer.
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ExpectContinueTimeout = patience
	client := &http.Client{Transport: transport}
	defer client.CloseIdleConnections()
	for name, test := range map[string]struct {
		event, body, secret string
		tamper              func(http.Header)
		status              int
	}{
		"as GitHub sent it":       {last.Event, string(last.Body), webhookSecret, nil, 200},
		"wrong secret":            {last.Event, string(last.Body), "guessed", nil, 401},
		"another repo's secret":   {last.Event, string(last.Body), "it knows nothing of the fleet", nil, 401},
		"no signature":            {last.Event, string(last.Body), webhookSecret, unsigned, 401},
		"old signature only":      {last.Event, string(last.Body), webhookSecret, oldOnly, 401},
		"changed on the way":      {last.Event, strings.Replace(string(last.Body), "acme", "acme ", 1), webhookSecret, sign(last, webhookSecret), 401},
		"not JSON":                {last.Event, `{"repository":{"full_name":"acme/fleet"},`, webhookSecret, nil, 400},
		"unknown event":           {"star", string(last.Body), webhookSecret, nil, 202},
		"a repository not ours":   {last.Event, strings.ReplaceAll(string(last.Body), "acme/fleet", "evil/fleet"), "guessed", nil, 401},
		"larger than GitHub does": {last.Event, strings.Repeat(" ", 26<<20) + string(last.Body), webhookSecret, nil, 413},
	} {
		delivery := githubserver.Delivery{ID: "forged", Event: test.event, Body: []byte(test.body)}
		req, err := http.NewRequest(http.MethodPost, w.hooks+"/webhooks/github", bytes.NewReader(delivery.Body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = githubserver.Headers(delivery, test.secret)
		if test.tamper != nil {
			test.tamper(req.Header)
		}
		if len(test.body) > 25<<20 {
			req.Header.Set("Expect", "100-continue")
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var body bytes.Buffer
		_, _ = body.ReadFrom(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != test.status {
			t.Errorf("%s: answered with %d %s, want %d", name, resp.StatusCode, &body, test.status)
		}
		if resp.StatusCode >= 400 && !strings.Contains(body.String(), `"error"`) {
			t.Errorf("%s: no reason was given: %s", name, &body)
		}
	}
}

func unsigned(h http.Header) {
	h.Del("X-Hub-Signature")
	h.Del("X-Hub-Signature-256")
}

func oldOnly(h http.Header) { h.Del("X-Hub-Signature-256") }

// sign puts another delivery's signature on this one.
func sign(other githubserver.Delivery, secret string) func(http.Header) {
	return func(h http.Header) {
		for _, key := range []string{"X-Hub-Signature", "X-Hub-Signature-256"} {
			h.Set(key, githubserver.Headers(other, secret).Get(key))
		}
	}
}
