package apicheck_test

import (
	"net/http"
	"strings"
	"testing"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/internal/testenv/apicheck"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	const problem = `{"type":"urn:holdfast:problem:not-found","title":"Not found","status":404,"instance":"/api/v1/runs/x"}`
	for name, tc := range map[string]struct {
		request string
		status  int
		media   string
		body    string
		want    string // in the error; empty: there is none
	}{
		"as it is described":   {"GET /api/v1/runs", 200, "application/json; charset=utf-8", `{"items":[]}`, ""},
		"not of the API":       {"GET /healthz", 200, "text/plain", "ok", ""},
		"an unknown operation": {"GET /api/v1/rnus", 200, "application/json", `{}`, "is not described"},
		"an unknown field":     {"GET /api/v1/runs", 200, "application/json", `{"items":[],"more":true}`, "more"},
		"a missing field":      {"GET /api/v1/runs/x", 200, "application/json", `{"id":"x"}`, "missing"},
		"null":                 {"GET /api/v1/runs", 200, "application/json", `{"items":null}`, "want array"},
		"another status":       {"POST /api/v1/reconcile", 200, "application/json", `{}`, "described is 202"},
		"another media type":   {"GET /api/v1/runs/x/log", 200, "application/json", `{}`, `described is "text/plain"`},
		"a problem":            {"GET /api/v1/runs/x", 404, v1.ProblemType, problem, ""},
		"a problem of another": {"GET /api/v1/runs/y", 404, v1.ProblemType, problem, "is not that of"},
		"an error in JSON":     {"GET /api/v1/runs/x", 404, "application/json", `{"error":"not found"}`, "not with a problem"},
	} {
		method, address, _ := strings.Cut(tc.request, " ")
		err := apicheck.Check(method, address, apicheck.Answer{
			Status: tc.status, Header: http.Header{"Content-Type": {tc.media}}, Body: []byte(tc.body),
		})
		expect(t, name, err, tc.want)
	}
}

func TestCheckRequest(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		request, body string
		want          string // in the error; empty: there is none
	}{
		"parameters":           {"GET /api/v1/clusters?name=a&name=b&limit=3&fields=phase", "", ""},
		"an unknown parameter": {"GET /api/v1/clusters?names=a", "", `"names" is not described`},
		"none are described":   {"GET /api/v1/version?name=a", "", `"name" is not described`},
		"a body":               {"POST /api/v1/reconcile", `{"repo":"shop"}`, ""},
		"an unknown field":     {"POST /api/v1/reconcile", `{"repos":"shop"}`, "repos"},
		"another type":         {"POST /api/v1/reconcile", `{"repo":7}`, "want string"},
		"no body is described": {"POST /api/v1/clusters/a/drift/check", `{"force":true}`, "a body is not described"},
		"an empty one":         {"POST /api/v1/clusters/a/drift/check", "{}", ""},
		"an unknown operation": {"POST /api/v1/clusters/a/check", "", "is not described"},
		"not of the API":       {"POST /webhooks/github", "{", ""},
	} {
		method, address, _ := strings.Cut(tc.request, " ")
		expect(t, name, apicheck.CheckRequest(method, address, []byte(tc.body)), tc.want)
	}
}

func expect(t *testing.T, name string, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s: %v, want an error with %q", name, err, want)
	}
}
