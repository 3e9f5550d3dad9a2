package server_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/ownclient"
	"github.com/holdfast-dev/holdfast/server"
)

// TestPages: what comments and statuses link to is for holders of a token, who may
// give it as a password, and hides what is sensitive.
func TestPages(t *testing.T) {
	t.Parallel()
	url := serve(t, newServer(t, fleet()).API())
	get := func(path, password string) (int, http.Header, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if password != "" {
			req.SetBasicAuth("anybody", password)
		}
		resp, err := ownclient.Client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Header, string(body)
	}
	run, pr := server.RunPage("run-1"), server.PullRequestPage(holdfast.PullRequestRef{Repo: "shop", Number: 7})
	for path, want := range map[string][]string{run: {"apply of prod-eu for shop#7", "    size: 1 -> 2", "(sensitive value)"}, pr: {"Pull request shop#7", "/runs/run-1"}} {
		status, header, body := get(path, viewerToken)
		if status != http.StatusOK || header.Get("Content-Type") != "text/plain; charset=utf-8" || header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s = %d %v", path, status, header)
		}
		for _, s := range want {
			if !strings.Contains(body, s) {
				t.Errorf("%s lacks %q: %s", path, s, body)
			}
		}
		if strings.Contains(body, "s3cret") {
			t.Errorf("%s shows a secret: %s", path, body)
		}
		for _, password := range []string{"", "wrong"} {
			status, header, body := get(path, password)
			if status != http.StatusUnauthorized || !strings.HasPrefix(header.Get("WWW-Authenticate"), "Basic ") || strings.Contains(body, "prod-eu") {
				t.Errorf("%s with %q = %d %v %s", path, password, status, header, body)
			}
		}
	}
	if status, _, _ := get("/pullrequests/x/shop", viewerToken); status != http.StatusNotFound {
		t.Errorf("status %d of what is not a pull request", status)
	}
	if status, _, _ := get("/runs/run-9", viewerToken); status != http.StatusNotFound {
		t.Errorf("status %d of a run that is not there", status)
	}
	// A password opens pages only.
	if status, _, _ := get("/api/v1/runs", viewerToken); status != http.StatusUnauthorized {
		t.Errorf("status %d of the API with a password", status)
	}
}
