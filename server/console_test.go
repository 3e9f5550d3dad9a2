package server_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/ownclient"
)

// browse asks for a page as a browser does.
func browse(t *testing.T, url, token string) (status int, header http.Header, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html,application/xhtml+xml")
	if token != "" {
		req.SetBasicAuth("anybody", token)
	}
	resp, err := ownclient.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(data)
}

// console is a fleet with something on every page.
func console() *world {
	w := fleet()
	w.summaries = []holdfast.ClusterSummary{{Name: "prod-eu", Owner: "shop", Project: "payments", Environment: "production", Phase: holdfast.PhaseActive}}
	return w
}

// TestConsole: every page is for those whom the API knows, says what the API says, hides
// what that hides, and forbids the browser everything that it does not need.
func TestConsole(t *testing.T) {
	t.Parallel()
	url := serve(t, newServer(t, console()).API())
	for path, want := range map[string]string{
		"/": "prod-eu", "/?q=prod": "prod-eu", "/clusters/prod-eu": "prod-eu", "/clusters/prod-eu?tab=outputs": "secret: never shown", "/clusters/prod-eu?tab=runs": "run-1",
		"/clusters/prod-eu?tab=drift": "Drift", "/clusters/prod-eu?tab=history": "Audit", "/clusters/prod-eu?tab=resources": "Resources",
		"/runs/run-1": "(sensitive value)", "/pullrequests": "shop#7", "/pullrequests/7/shop": "prod-eu", "/queue": "Agents", "/drift": "Drift", "/templates": "Templates",
		"/audit": "Audit", "/settings": "viewer",
	} {
		status, header, body := browse(t, url+path, viewerToken)
		if status != http.StatusOK || !strings.HasPrefix(header.Get("Content-Type"), "text/html") || !strings.Contains(body, want) {
			t.Errorf("%s = %d %s, want %q in it: %.2000s", path, status, header.Get("Content-Type"), want, body)
		}
		for name, part := range map[string]string{"Content-Security-Policy": "default-src 'none'; script-src 'self'", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"} {
			if !strings.Contains(header.Get(name), part) {
				t.Errorf("%s has %s: %q", path, name, header.Get(name))
			}
		}
		for _, secret := range []string{"s3cret", "hunter22hunter", "12345678"} {
			if strings.Contains(body, secret) {
				t.Errorf("%s shows a secret", path)
			}
		}
		for _, token := range []string{"", "wrong"} {
			if status, _, body := browse(t, url+path, token); status != http.StatusUnauthorized || strings.Contains(body, "prod-eu") {
				t.Errorf("%s with %q = %d %s", path, token, status, body)
			}
		}
	}
	for _, path := range []string{"/clusters/nobody", "/runs/run-9", "/pullrequests/99/shop", "/templates/none", "/pullrequests/x/shop"} {
		status, header, body := browse(t, url+path, viewerToken)
		if status != http.StatusNotFound || !strings.HasPrefix(header.Get("Content-Type"), "text/html") || !strings.Contains(body, "Not found") {
			t.Errorf("%s = %d %.300s", path, status, body)
		}
	}
}

// TestConsoleOfOneProject: what is of another project is not there, in the same words as
// what does not exist, and is counted nowhere.
func TestConsoleOfOneProject(t *testing.T) {
	t.Parallel()
	w := console()
	s := scoped(t, w)
	w.summaries = append(w.summaries, holdfast.ClusterSummary{Name: "search-eu", Owner: "shop", Project: "web", Environment: "production", Phase: holdfast.PhaseFailed})
	url := serve(t, s.API())
	_, _, body := browse(t, url+"/", webToken)
	if strings.Contains(body, "prod-eu") || strings.Contains(body, "payments") || !strings.Contains(body, "search-eu") || !strings.Contains(body, "1 cluster in 1 project") {
		t.Errorf("fleet of one project: %.3000s", body)
	}
	hidden, _, one := browse(t, url+"/clusters/prod-eu", webToken)
	absent, _, other := browse(t, url+"/clusters/prod-xx", webToken)
	if hidden != http.StatusNotFound || absent != http.StatusNotFound || strings.ReplaceAll(one, "prod-eu", "prod-xx") != other {
		t.Errorf("%d and %d: hidden and absent are told apart", hidden, absent)
	}
	for _, path := range []string{"/queue", "/templates", "/audit", "/settings", "/drift", "/pullrequests"} {
		if status, _, body := browse(t, url+path, webToken); status != http.StatusOK || strings.Contains(body, "prod-eu") {
			t.Errorf("%s = %d", path, status)
		}
	}
}
