package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/testenv/ownclient"
)

// events is a stream of what changes, as a console follows it.
type events struct {
	w    *world
	last string // ID of the newest event
	next func() (event, data string, ok bool)
}

// follow opens the stream after an event; an empty ID begins now.
func (w *world) follow(last string) *events {
	w.t.Helper()
	token, err := os.ReadFile(w.path("data", "admin.token"))
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	w.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.api+"/api/v1/events", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	res, err := ownclient.Client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		w.t.Fatalf("events after %q: status %s", last, res.Status)
	}
	e := &events{w: w, last: last}
	lines := bufio.NewScanner(res.Body)
	e.next = func() (event, data string, ok bool) {
		for lines.Scan() {
			switch name, value, _ := strings.Cut(lines.Text(), ":"); name {
			case "id":
				e.last = value
			case "event":
				event = value
			case "data":
				data = value
			case "":
				if event != "" {
					return event, data, true
				}
			}
		}
		return "", "", false
	}
	return e
}

// until reads events until one of each has come.
func (e *events) until(want ...string) {
	e.w.t.Helper()
	missing := make(map[string]bool)
	for _, text := range want {
		missing[text] = true
	}
	for len(missing) > 0 {
		event, data, ok := e.next()
		if !ok {
			e.w.t.Fatalf("the stream ended after %q without %v", e.last, missing)
		}
		for text := range missing {
			if strings.Contains(event+" "+data, text) {
				delete(missing, text)
			}
		}
	}
}

// Who follows events learns of everything, also of what happened between two
// connections.
func TestEventsAreFollowedAcrossARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	stream := w.follow("")
	stream.until("ready")
	pr := w.fleet().open(cluster("alpha", "nodes: 1"))
	pr.untilPlanned("1 cluster: 1 to create")
	stream.until(`PullRequest {"kind":"PullRequest","name":"`+fmt.Sprintf("%s#%d", w.fleet().name, pr.number)+`"}`, `Run {"kind":"Run"`)

	w.stop()
	for _, _, ok := stream.next(); ok; _, _, ok = stream.next() {
	}
	w.launch()
	pr.merge()
	pr.untilApplied("applied 1 cluster: 1 created")
	w.follow(stream.last).until("ready", `Cluster {"kind":"Cluster","name":"alpha","cluster":"alpha"}`, `Run {"kind":"Run"`, "PullRequest")
}
