package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/client"
)

// answering returns a client of a server that answers each call in the same way, and
// the last request that it got.
func answering(t *testing.T, status int, body string) (*client.Client, *http.Request) {
	t.Helper()
	seen := new(http.Request)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*seen = *r.Clone(r.Context())
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(srv.Close)
	c, err := client.Connect(client.Settings{
		Server: srv.URL + "/", UserAgent: "test/1",
		Getenv: func(name string) string { return map[string]string{"HOLDFAST_TOKEN": " t0k3n\n"}[name] },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, seen
}

func TestCall(t *testing.T) {
	t.Parallel()
	c, seen := answering(t, http.StatusOK, `{"items": [{"id": "run-1"}]}`)
	runs, err := c.Runs(t.Context(), url.Values{"cluster": {"a b"}})
	if err != nil || len(runs) != 1 || runs[0].ID != "run-1" {
		t.Fatalf("Runs = %v, %v", runs, err)
	}
	if got := seen.URL.String(); got != "/api/v1/runs?cluster=a+b" {
		t.Errorf("it asked for %s", got)
	}
	if got := seen.Header.Get("Authorization") + ", " + seen.UserAgent(); got != "Bearer t0k3n, test/1" {
		t.Errorf("it sent %q", got)
	}
	if _, err := c.Summaries(t.Context(), nil); err != nil || seen.URL.RawQuery != "limit=1000" {
		t.Errorf("Summaries asked for %s: %v", seen.URL, err)
	}
	if _, err := c.Cluster(t.Context(), "a/b"); err != nil || seen.URL.EscapedPath() != "/api/v1/clusters/a%2Fb" {
		t.Errorf("Cluster asked for %s: %v", seen.URL, err)
	}
	if _, err := c.Version(t.Context()); err != nil || seen.URL.Path != "/api/v1/version" {
		t.Errorf("Version asked for %s: %v", seen.URL, err)
	}
	if _, err := c.UnsavedStateInfo(t.Context(), "prod-eu"); err != nil || seen.URL.Path != "/api/v1/states/prod-eu" {
		t.Errorf("UnsavedStateInfo asked for %s: %v", seen.URL, err)
	}
}

// TestLists reads lists of three parts: all of one, and as much as is wanted of another.
func TestLists(t *testing.T) {
	t.Parallel()
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RequestURI())
		limit, from := 0, 0
		_, _ = fmt.Sscan(r.FormValue("limit"), &limit)
		_, _ = fmt.Sscan(r.FormValue("cursor"), &from)
		list := v1.List[v1.Run]{Items: make([]v1.Run, min(limit, 2300-from))}
		if from += len(list.Items); from < 2300 {
			list.Next = fmt.Sprint(from)
		}
		_ = json.NewEncoder(w).Encode(list)
	}))
	defer srv.Close()
	base, _ := url.Parse(srv.URL)
	c := client.New(base, "t", "test/1")
	if all, err := c.Summaries(t.Context(), url.Values{"project": {"p"}}); err != nil || len(all) != 2300 {
		t.Errorf("%d clusters, %v", len(all), err)
	}
	if runs, err := c.Runs(t.Context(), url.Values{"limit": {"1200"}}); err != nil || len(runs) != 1200 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
	want := []string{
		"/api/v1/clusters?limit=1000&project=p", "/api/v1/clusters?cursor=1000&limit=1000&project=p", "/api/v1/clusters?cursor=2000&limit=1000&project=p",
		"/api/v1/runs?limit=1000", "/api/v1/runs?cursor=1000&limit=200",
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Error(diff)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status int
		body   string
		is     error
		text   string
		hint   string
	}{
		{http.StatusNotFound, `{"error": "there is no run \"x\"", "hint": "look"}`, holdfast.ErrNotFound, `there is no run "x"`, "look"},
		{http.StatusLocked, `{"error": "it is locked"}`, holdfast.ErrLocked, "it is locked", ""},
		{http.StatusInternalServerError, `{"error": "an internal error"}`, holdfast.ErrUnavailable, "an internal error", ""},
		{http.StatusBadGateway, "<html>", holdfast.ErrUnavailable, "which is not a Holdfast response", "is this the address of the server's API?"},
		{http.StatusFound, "", nil, "which is not a Holdfast response", "is this the address of the server's API?"}, // nobody else gets the token
	} {
		c, _ := answering(t, tc.status, tc.body)
		_, err := c.Run(t.Context(), "x")
		var refused *client.Error
		if !errors.As(err, &refused) || refused.Status != tc.status || !strings.Contains(err.Error(), tc.text) || refused.Hint() != tc.hint {
			t.Errorf("%d %s: %v", tc.status, tc.body, err)
		}
		for _, kind := range []error{holdfast.ErrNotFound, holdfast.ErrLocked, holdfast.ErrUnavailable} {
			if got := errors.Is(err, kind); got != (tc.is != nil && errors.Is(tc.is, kind)) {
				t.Errorf("%d: it is %v: %t", tc.status, kind, got)
			}
		}
	}
}

// A run that has no plan yet is not an error.
func TestNoPlan(t *testing.T) {
	t.Parallel()
	c, _ := answering(t, http.StatusNotFound, `{"error": "none"}`)
	if plan, err := c.Plan(t.Context(), "run-1"); plan != nil || err != nil {
		t.Errorf("Plan = %v, %v", plan, err)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	c := client.New(&url.URL{Scheme: "http", Host: "127.0.0.1:1"}, "t", "test/1")
	_, err := c.Runs(t.Context(), nil)
	var silent *client.UnreachableError
	var hinted interface{ Hint() string }
	if !errors.As(err, &silent) || !errors.Is(err, holdfast.ErrUnavailable) || !errors.As(err, &hinted) {
		t.Errorf("nobody listens: %v", err)
	}
}
