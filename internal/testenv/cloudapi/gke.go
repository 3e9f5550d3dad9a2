package cloudapi

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/testenv/relyingparty"
)

// Google is the token service, the part of IAM that impersonates, and the container API of one
// project.
type Google struct {
	Tokens  *relyingparty.Google
	Project string
	// Viewers are who may ask for clusters (container.clusters.get): accounts or subjects.
	Viewers []string

	mu       sync.Mutex
	clusters map[string]managed // by LOCATION/NAME
}

// Add adds a cluster whose API server is at an address without scheme. Users are whom IAM
// gives access to it: names in the cluster by account or subject.
func (g *Google) Add(location, name, endpoint string, ca []byte, users map[string]string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.clusters == nil {
		g.clusters = map[string]managed{}
	}
	g.clusters[location+"/"+name] = managed{endpoint, ca, "RUNNING", users}
}

func (g *Google) cluster(location, name string) (managed, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, ok := g.clusters[location+"/"+name]
	return c, ok
}

func (g *Google) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rest, ok := strings.CutPrefix(r.URL.Path, "/v1/projects/"+g.Project+"/locations/")
	location, name, is := strings.Cut(rest, "/clusters/")
	if !ok || !is || r.Method != http.MethodGet {
		g.Tokens.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fail := func(status int, word, format string, args ...any) {
		w.WriteHeader(status)
		_, _ = w.Write(mustJSON(map[string]any{"error": map[string]any{"code": status, "status": word, "message": fmt.Sprintf(format, args...)}}))
	}
	principal, ok := g.Tokens.Principal(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	c, known := g.cluster(location, name)
	switch {
	case !ok:
		fail(http.StatusUnauthorized, "UNAUTHENTICATED", "Request had invalid authentication credentials.")
	case !slices.Contains(g.Viewers, principal):
		fail(http.StatusForbidden, "PERMISSION_DENIED", "Required \"container.clusters.get\" permission(s) for \"projects/%s/locations/%s/clusters/%s\".", g.Project, location, name)
	case !known:
		fail(http.StatusNotFound, "NOT_FOUND", "Not found: projects/%s/locations/%s/clusters/%s.", g.Project, location, name)
	default:
		_, _ = w.Write(mustJSON(map[string]any{
			"name": name, "location": location, "status": c.status, "endpoint": c.endpoint,
			"masterAuth":           map[string]string{"clusterCaCertificate": base64.StdEncoding.EncodeToString(c.ca)},
			"privateClusterConfig": map[string]string{"privateEndpoint": c.endpoint},
		}))
	}
}

// User returns who a token is in a cluster.
func (g *Google) User(location, name, token string) (string, error) {
	principal, ok := g.Tokens.Principal(token)
	c, known := g.cluster(location, name)
	switch {
	case !ok:
		return "", errors.New("the token has ended, or is not one of Google's")
	case !known || c.users[principal] == "":
		return "", fmt.Errorf("%s has no access", principal)
	}
	return c.users[principal], nil
}
