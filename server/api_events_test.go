package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/ownclient"
	"github.com/holdfast-dev/holdfast/server"
)

// follow opens a stream of events and returns what reads the next one, as
// "ID EVENT DATA".
func follow(t *testing.T, url, last string) (next func() string, res *http.Response) {
	t.Helper()
	return followAs(t, viewerToken, url, last)
}

func followAs(t *testing.T, token, url, last string) (next func() string, res *http.Response) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	res, err = ownclient.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	lines := bufio.NewScanner(res.Body)
	return func() string {
		t.Helper()
		var id, event, data string
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ":")
			switch name {
			case "id":
				id = value
			case "event":
				event = value
			case "data":
				data = value
			case "":
				if event != "" {
					return id + " " + event + " " + data
				}
			}
		}
		return fmt.Sprintf("the end: %v", lines.Err())
	}, res
}

func TestEvents(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.change(holdfast.ChangeRun, "run-1")
	url := serve(t, newServer(t, w).API()) + "/api/v1/events"

	next, res := follow(t, url, "")
	if got := res.Header.Get("Content-Type"); !strings.HasPrefix(got, "text/event-stream") || res.Header.Get("X-Accel-Buffering") != "no" {
		t.Errorf("headers = %v, want those of a stream that no proxy keeps back", res.Header)
	}
	if got, want := next(), "1 ready {}"; got != want {
		t.Errorf("without an ID it begins with %q, want %q: what was before is not sent", got, want)
	}
	w.change(holdfast.ChangeCluster, "prod-eu")
	w.change(holdfast.ChangePullRequest, "fleet#7")
	for _, want := range []string{`2 Cluster {"kind":"Cluster","name":"prod-eu"}`, `3 PullRequest {"kind":"PullRequest","name":"fleet#7"}`} {
		if got := next(); got != want {
			t.Errorf("event %q, want %q", got, want)
		}
	}

	only, _ := follow(t, url+"?kind=PullRequest&after=1", "")
	for _, want := range []string{"1 ready {}", `3 PullRequest {"kind":"PullRequest","name":"fleet#7"}`} {
		if got := only(); got != want {
			t.Errorf("pull requests only: event %q, want %q", got, want)
		}
	}
}

func TestEventsResume(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.forgotten = 10
	var want []string
	for i := range 1203 { // more than is read at once
		w.change(holdfast.ChangeRun, fmt.Sprintf("run-%d", i))
		want = append(want, fmt.Sprintf(`%d Run {"kind":"Run","name":"run-%d"}`, 11+i, i))
	}
	url := serve(t, newServer(t, w).API()) + "/api/v1/events"

	next, _ := follow(t, url+"?after=11", "10") // the header is the browser's, and newer than its address
	var got []string
	if first := next(); first != "10 ready {}" {
		t.Errorf("resumed with %q", first)
	}
	for range want {
		got = append(got, next())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events after 10 (-want +got):\n%s", diff)
	}

	// What is no longer known has to be read again.
	next, _ = follow(t, url, "9")
	for _, want := range []string{"9 ready {}", "1213 reset {}"} {
		if got := next(); got != want {
			t.Errorf("after what is forgotten: event %q, want %q", got, want)
		}
	}
	w.change(holdfast.ChangeRun, "run-x")
	if got := next(); got != `1214 Run {"kind":"Run","name":"run-x"}` {
		t.Errorf("after the reset: event %q", got)
	}
}

func TestEventsRefused(t *testing.T) {
	t.Parallel()
	url := serve(t, newServer(t, newWorld()).API()) + "/api/v1/events"
	for query, want := range map[string]int{"?kind=Secret": 400, "?after=x": 400, "?after=-1": 400, "?what=1": 400} {
		if got := request(t, "GET", url+query, viewerToken, ""); got.status != want {
			t.Errorf("%s: %d, want %d: %s", query, got.status, want, got.body)
		}
	}
	if got := request(t, "GET", url, "", ""); got.status != 401 {
		t.Errorf("without a token: %d, want 401", got.status)
	}
}

// A stream ends with the server, so that it does not keep it from stopping.
func TestEventsEndWithTheServer(t *testing.T) {
	t.Parallel()
	at, stopIntake, _ := listening(t, fleet())
	next, _ := follow(t, "http://"+at.API+"/api/v1/events", "")
	if got := next(); !strings.HasSuffix(got, " ready {}") {
		t.Fatalf("begins with %q", got)
	}
	if err := stopIntake(); err != nil {
		t.Errorf("intake ended with %v", err)
	}
	if got := next(); got != "the end: <nil>" {
		t.Errorf("after the stop: %q, want the end", got)
	}
}

// One token does not take the streams of all.
func TestEventsOfOneToken(t *testing.T) {
	t.Parallel()
	url := serve(t, newServer(t, newWorld()).API()) + "/api/v1/events"
	for i := range 64 {
		if next, res := follow(t, url, ""); res.StatusCode != http.StatusOK || next() != "0 ready {}" {
			t.Fatalf("stream %d: %s", i, res.Status)
		}
	}
	if got := request(t, "GET", url, viewerToken, ""); got.status != http.StatusServiceUnavailable {
		t.Errorf("the 65th stream of a token: %d, want 503", got.status)
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+operatorToken)
	res, err := ownclient.Client.Do(req)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("another token: %v, %v", res, err)
	}
	res.Body.Close()
}

// A client that does not read is disconnected, and keeps nobody else waiting.
func TestEventsOfASlowClient(t *testing.T) {
	t.Parallel()
	const many = 60_000
	w := newWorld()
	name := strings.Repeat("x", 150)
	for range many {
		w.changes = append(w.changes, holdfast.Change{Seq: int64(len(w.changes) + 1), Kind: holdfast.ChangeRun, Name: name})
	}
	url := serve(t, newServer(t, w, func(o *server.Options) { o.Limits.Patience = 200 * time.Millisecond }).API())
	slow, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := fmt.Fprintf(slow, "GET /api/v1/events?after=0 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", viewerToken); err != nil {
		t.Fatal(err)
	}
	if last := readChanges(t, url+"/api/v1/events", many); last != many {
		t.Errorf("who reads got as far as %d of %d", last, many)
	}
	time.Sleep(time.Second) // for the other one to be cut off
	if err := slow.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(slow)
	if errors.Is(err, os.ErrDeadlineExceeded) || strings.Contains(string(data), fmt.Sprintf("id:%d\n", many)) {
		t.Errorf("who did not read got %d bytes, %v; want them cut off", len(data), err)
	}
}

// readChanges follows the changes up to the given one, and returns the last that came. On
// a busy machine it may be disconnected, too: as any client, it then goes on from there.
func readChanges(t *testing.T, url string, until int64) (last int64) {
	t.Helper()
	for range 100 {
		next, res := follow(t, fmt.Sprintf("%s?after=%d", url, last), "")
		for last < until {
			id, _, ok := strings.Cut(next(), " ")
			seq, err := strconv.ParseInt(id, 10, 64)
			if err != nil || !ok { // it has ended
				break
			}
			last = seq
		}
		res.Body.Close()
		if last >= until {
			break
		}
	}
	return last
}
