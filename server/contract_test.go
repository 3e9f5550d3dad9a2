package server_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/access"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/server"
)

// TestOperations holds the routes to their description, and the description to the
// parameters that are taken.
func TestOperations(t *testing.T) {
	t.Parallel()
	s := newServer(t, fleet(), func(o *server.Options) { o.API.Rescuer, o.API.Login = rescuer{}, logins(t) })
	var routes, described []string
	for _, route := range routesOf(t, s) {
		if strings.Contains(route, " /api/v1/") {
			routes = append(routes, regexp.MustCompile(`:(\w+)`).ReplaceAllString(route, "{$1}"))
		}
	}
	url := serve(t, s.API())
	fill := strings.NewReplacer("{name}", "prod-eu", "{cluster}", "prod-eu", "{run}", "run-1", "{runner}", "eu", "{id}", "tok-1")
	for _, op := range v1.Operations() {
		described = append(described, op.Method+" /api/v1"+op.Path)
		if op.Method != "GET" || op.Query == nil || op.ID == "streamEvents" {
			continue
		}
		for _, name := range op.Parameters() {
			got := request(t, "GET", url+"/api/v1"+fill.Replace(op.Path)+"?"+name+"=", viewerToken, "")
			if strings.Contains(got.body, "unknown parameter") {
				t.Errorf("%s does not take %s", op.ID, name)
			}
		}
	}
	slices.Sort(routes)
	slices.Sort(described)
	if diff := cmp.Diff(described, routes); diff != "" {
		t.Errorf("routes (-described +served):\n%s", diff)
	}
}

// TestRolesOfOperations walks all operations with a token of each role: one that is too weak is
// refused, and no other.
func TestRolesOfOperations(t *testing.T) {
	t.Parallel()
	s := newServer(t, fleet(), func(o *server.Options) {
		o.API.Rescuer, o.API.Tokens, o.API.Login = rescuer{}, nil, logins(t)
		for _, role := range access.Roles() {
			o.API.Tokens = append(o.API.Tokens, server.Token{Name: string(role), Role: role, SHA256: server.HashToken("token of " + string(role))})
		}
	})
	url := serve(t, s.API())
	fill := strings.NewReplacer("{name}", "prod-eu", "{cluster}", "prod-eu", "{run}", "run-1", "{runner}", "eu", "{id}", "tok-1")
	for _, op := range v1.Operations() {
		if op.ID == "streamEvents" {
			continue // it has no end
		}
		for _, role := range access.Roles() {
			got := request(t, op.Method, url+"/api/v1"+fill.Replace(op.Path)+"?nonsense=1", "token of "+string(role), "")
			if refused := got.status == 403; refused == role.Includes(op.Verb.Role()) {
				t.Errorf("%s with role %s = %d %s", op.ID, role, got.status, got.body)
			}
		}
	}
}

// TestUnknownParameters: no operation takes a parameter that it does not have, be its answer
// a list, an object or a stream, and none does anything before it refuses one.
func TestUnknownParameters(t *testing.T) {
	t.Parallel()
	w := fleet()
	url := serve(t, newServer(t, w, func(o *server.Options) { o.API.Rescuer, o.API.Login = rescuer{}, logins(t) }).API())
	fill := strings.NewReplacer("{name}", "prod-eu", "{cluster}", "prod-eu", "{run}", "run-1", "{runner}", "eu", "{id}", "tok-1")
	for _, op := range v1.Operations() {
		got := request(t, op.Method, url+"/api/v1"+fill.Replace(op.Path)+"?nonsense=1", adminToken, "")
		if got.status != 400 || got.header.Get("Content-Type") != v1.ProblemType || !strings.Contains(got.body, `unknown parameter \"nonsense\"`) {
			t.Errorf("%s answers %d %s %s", op.ID, got.status, got.header.Get("Content-Type"), got.body)
		}
	}
	if notes := w.noted(); len(notes) > 0 {
		t.Errorf("the server has done %q", notes)
	}
}
