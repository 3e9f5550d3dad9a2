package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
)

// streaming returns a client of a server whose n-th stream is what answer writes, and how
// its streams were asked for.
func streaming(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, n int)) (c *client.Client, asked func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		all = append(all, r.URL.String()+" "+r.Header.Get("Last-Event-ID"))
		n := len(all)
		mu.Unlock()
		answer(w, r, n)
	}))
	t.Cleanup(srv.Close)
	c, err := client.Connect(client.Settings{
		Server: srv.URL, UserAgent: "test/1", Getenv: func(name string) string { return map[string]string{"HOLDFAST_TOKEN": "t"}[name] },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

func sendEvent(w http.ResponseWriter, id int, event, data string) {
	fmt.Fprintf(w, "id:%d\nevent:%s\ndata:%s\n\n", id, event, data)
	_ = http.NewResponseController(w).Flush()
}

// TestEvents: a stream that breaks off is resumed after the last event that was taken.
func TestEvents(t *testing.T) {
	t.Parallel()
	c, asked := streaming(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		switch n {
		case 1:
			sendEvent(w, 5, "ready", "{}")
			fmt.Fprint(w, ": pulse\n\n")
			sendEvent(w, 6, "Run", `{"kind":"Run","name":"run-1","cluster":"prod-eu","new":"field"}`)
			fmt.Fprint(w, "id:7\nevent:Run\ndata:{") // cut off
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 3:
			sendEvent(w, 6, "ready", "{}")
			sendEvent(w, 7, "Cluster", `{"kind":"Cluster","name":"prod-eu","deleted":true}`)
			sendEvent(w, 9, "reset", `{}`)
		default:
			w.WriteHeader(http.StatusForbidden)
		}
	})
	var got []string
	err := c.Events(t.Context(), client.EventsOptions{Kinds: []holdfast.ChangeKind{holdfast.ChangeRun, holdfast.ChangeCluster}}, func(e client.Event) error {
		got = append(got, fmt.Sprintf("%d %s %s %t", e.ID, e.Type, e.Name, e.Deleted))
		return nil
	})
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Status != http.StatusForbidden {
		t.Errorf("Events = %v, want the refusal", err)
	}
	if diff := cmp.Diff([]string{"5 ready  false", "6 Run run-1 false", "7 Cluster prod-eu true", "9 reset  false"}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	path := "/api/v1/events?kind=Run&kind=Cluster "
	if diff := cmp.Diff([]string{path, path + "6", path + "6", path + "9"}, asked()); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

// TestEventsEnd: with what the caller says, with its context, and at once if the server
// cannot be reached in the first place.
func TestEventsEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	enough := errors.New("enough")
	c, asked := streaming(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		sendEvent(w, 3, "ready", "{}")
		<-r.Context().Done()
	})
	after := int64(3)
	if err := c.Events(ctx, client.EventsOptions{After: &after}, func(client.Event) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("Events = %v, want the caller's error", err)
	}
	if got := asked(); len(got) != 1 || got[0] != "/api/v1/events 3" {
		t.Errorf("asked %q", got)
	}
	err := c.Events(ctx, client.EventsOptions{}, func(client.Event) error {
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Events = %v, want that of the context", err)
	}
	away, _ := streaming(t, func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(http.StatusServiceUnavailable) })
	if err := away.Events(t.Context(), client.EventsOptions{}, func(client.Event) error { return nil }); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("Events = %v, want that the server is unavailable", err)
	}
}

// TestEventsOfADeadConnection: a stream in which nothing comes is not waited for.
func TestEventsOfADeadConnection(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	c, _ := streaming(t, func(w http.ResponseWriter, r *http.Request, n int) {
		if n > 1 {
			sendEvent(w, 2, "Run", `{"name":"run-2"}`)
		} else {
			sendEvent(w, 1, "ready", "{}")
		}
		<-r.Context().Done()
	})
	err := c.Events(t.Context(), client.EventsOptions{Silence: 200 * time.Millisecond}, func(e client.Event) error {
		if e.Name == "run-2" {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Errorf("Events = %v", err)
	}
}
