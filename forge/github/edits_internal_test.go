package github

import (
	"net/http"
	"testing"
)

// The GraphQL API is next to the REST API, and a query there is not a write; a branch of that
// name is.
func TestGraphQL(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"":                          "https://api.github.com/graphql",
		"https://acme.ghe.com":      "https://api.acme.ghe.com/graphql",
		"https://git.acme.org":      "https://git.acme.org/api/graphql",
		"https://acme.org/x/api/v3": "https://acme.org/x/api/graphql",
		"https://proxy.acme.org/gh": "https://proxy.acme.org/gh/graphql",
	} {
		at, err := EndpointsOf(base)
		if err != nil {
			t.Fatal(err)
		}
		if got := graphQL(at.API).String(); got != want {
			t.Errorf("of %q it is at %s, want %s", base, got, want)
		}
		for url, write := range map[string]bool{want: false, at.API.JoinPath("repos/acme/app/git/refs/heads/graphql").String(): true} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := isWrite(req, at.API); got != write {
				t.Errorf("POST %s is a write: %t", url, got)
			}
		}
	}
}
