package webhook_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// recorded calls do with each recorded payload of an event.
func recorded(t testing.TB, event string, do func(body string)) {
	t.Helper()
	file, err := os.Open("testdata/" + event + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		do(lines.Text())
	}
	if lines.Err() != nil {
		t.Fatal(lines.Err())
	}
}

func TestRecordedDeliveries(t *testing.T) {
	t.Parallel()
	looked := map[string]bool{
		"opened": true, "synchronize": true, "reopened": true, "closed": true, "edited": true,
		"ready_for_review": true, "converted_to_draft": true, "submitted": true, "dismissed": true,
	}
	for event, least := range map[string]int{"push": 9, "pull_request": 35, "issue_comment": 12, "ping": 5, "pull_request_review": 5} {
		t.Run(event, func(t *testing.T) {
			t.Parallel()
			seen := 0
			recorded(t, event, func(body string) {
				seen++
				h, w := newHandler(t)
				var p struct{ Action string }
				if err := json.Unmarshal([]byte(body), &p); err != nil {
					t.Fatal(err)
				}
				want, requests := http.StatusOK, 1
				switch {
				case event == "ping":
					requests = 0
				case event == "issue_comment", event != "push" && !looked[p.Action]:
					want, requests = http.StatusAccepted, 0 // all on issues
				}
				got := serve(h, delivery(event, body))
				if got.Code != want || len(w.requests) != requests {
					t.Errorf("%s %d was answered %d %s, and %v", p.Action, seen, got.Code, got.Body, w.requests)
				}
			})
			if seen < least {
				t.Errorf("replayed %d deliveries, want %d", seen, least)
			}
		})
	}
}

// TestRecordedComment makes the recorded comment one on a pull request.
func TestRecordedComment(t *testing.T) {
	t.Parallel()
	replayed := 0
	recorded(t, "issue_comment", func(body string) {
		if strings.Contains(body, `"action":"deleted"`) {
			return
		}
		replayed++
		var payload map[string]map[string]any
		_ = json.Unmarshal([]byte(body), &payload) // all but the action
		payload["issue"]["pull_request"] = map[string]any{"url": "https://api.github.com/repos/x/y/pulls/1"}
		payload["comment"]["body"] = "/holdfast approve -c prod-eu"
		payload["comment"]["updated_at"] = payload["comment"]["created_at"]
		delete(payload, "action")
		raw, err := json.Marshal(payload)
		if err != nil {
			t.Fatal(err)
		}
		body = `{"action":"created",` + string(raw[1:])
		h, w := newHandler(t)
		got := serve(h, delivery("issue_comment", body))
		if got.Code != http.StatusOK || len(w.commands) != 1 {
			t.Fatalf("answered %d %s, stored %v", got.Code, got.Body, w.commands)
		}
		for _, c := range w.commands {
			if c.Verb != holdfast.VerbApprove || c.Author != "Codertocat" || c.CreatedAt.IsZero() || c.CreatedAt.Location() != time.UTC || c.PullRequest.Number != 1 {
				t.Errorf("stored %+v", c)
			}
		}
	})
	if replayed == 0 {
		t.Error("replayed nothing")
	}
}

func FuzzDelivery(f *testing.F) {
	for _, event := range []string{"push", "pull_request", "issue_comment", "ping"} {
		recorded(f, event, func(body string) {
			f.Add(event, strings.ReplaceAll(body, "Codertocat/Hello-World", "acme/app"))
		})
	}
	f.Add("issue_comment", commentBody("acme/app", 1, "alice", "User", "/holdfast plan", "created"))
	f.Fuzz(func(t *testing.T, event, body string) {
		h, w := newHandler(t)
		if got := serve(h, delivery(event, body)); got.Code >= 500 {
			t.Errorf("%s %q was answered %d", event, body, got.Code)
		}
		for _, r := range w.requests {
			if r.Repo == "" || r.Repo == "other" || r.Repo == "open" || r.PullRequest < 0 {
				t.Errorf("%s %q asked for %+v", event, body, r)
			}
		}
	})
}

func BenchmarkHandlerServe(b *testing.B) {
	h, w := newHandler(b)
	var body string
	recorded(b, "push", func(line string) {
		if len(line) > len(body) {
			body = line
		}
	})
	r := delivery("push", body)
	raw := []byte(body)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		try := r.Clone(context.Background())
		try.Body, try.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
		if got := serve(h, try); got.Code != http.StatusOK {
			b.Fatalf("answered %d %s", got.Code, got.Body)
		}
		w.requests = w.requests[:0]
	}
}
