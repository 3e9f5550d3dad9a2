package github_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/forge/github"
)

func TestEndpoints(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string][2]string{
		"":                                  {"https://api.github.com/", "https://github.com"},
		"https://api.github.com":            {"https://api.github.com/", "https://github.com"},
		"https://github.com/":               {"https://api.github.com/", "https://github.com"},
		"https://www.GitHub.com":            {"https://api.github.com/", "https://github.com"},
		"https://acme.ghe.com":              {"https://api.acme.ghe.com/", "https://acme.ghe.com"},
		"https://api.acme.ghe.com/":         {"https://api.acme.ghe.com/", "https://acme.ghe.com"},
		"https://acme.ghe.com/api/v3":       {"https://api.acme.ghe.com/", "https://acme.ghe.com"},
		"https://ghe.example.com/":          {"https://ghe.example.com/api/v3/", "https://ghe.example.com"},
		"https://ghe.example.com:8443":      {"https://ghe.example.com:8443/api/v3/", "https://ghe.example.com:8443"},
		"https://ghe.example.com/api/v3":    {"https://ghe.example.com/api/v3/", "https://ghe.example.com"},
		"https://api.example.com/":          {"https://api.example.com/api/v3/", "https://api.example.com"},
		"https://proxy.example.com/hub":     {"https://proxy.example.com/hub/", "https://proxy.example.com"},
		"https://p.example.com/hub/api/v3/": {"https://p.example.com/hub/api/v3/", "https://p.example.com/hub"},
		"https://notgithub.com":             {"https://notgithub.com/api/v3/", "https://notgithub.com"},
		"https://ghe.com.example.com":       {"https://ghe.com.example.com/api/v3/", "https://ghe.com.example.com"},
	} {
		got, err := github.EndpointsOf(raw)
		if err != nil || got.API.String() != want[0] || got.Web.String() != want[1] {
			t.Errorf("%q: API %s, web %s, %v; want %s and %s", raw, got.API, got.Web, err, want[0], want[1])
		}
	}
}

func TestEndpointsOwn(t *testing.T) {
	t.Parallel()
	at, err := github.EndpointsOf("https://api.acme.ghe.com")
	if err != nil {
		t.Fatal(err)
	}
	for clone, want := range map[string]bool{
		"https://acme.ghe.com/a/b.git":          true,
		"https://ACME.ghe.com:443/a/b.git":      true,
		"http://acme.ghe.com/a/b.git":           false,
		"https://github.com/a/b.git":            false,
		"https://acme.ghe.com.evil.example/a/b": false,
		"git@acme.ghe.com:a/b.git":              false,
		"/srv/git/b.git":                        false,
	} {
		if got := at.OwnsURL(clone); got != want {
			t.Errorf("%s: %v, want %v", clone, got, want)
		}
	}
}
