package cloudapi

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// EKS has clusters.
type EKS struct {
	mu       sync.Mutex
	clusters map[string]managed
}

// managed is a cluster that a cloud runs.
type managed struct {
	endpoint string
	ca       []byte
	status   string
	// users are who has access: names in the cluster, by role ARN or service account.
	users map[string]string
}

// Add adds a cluster whose API server is at an https address. Users are who has an access
// entry: names in the cluster by role ARN.
func (e *EKS) Add(name, endpoint string, ca []byte, users map[string]string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.clusters == nil {
		e.clusters = map[string]managed{}
	}
	e.clusters[name] = managed{endpoint, ca, "ACTIVE", users}
}

func (e *EKS) cluster(name string) (managed, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c, ok := e.clusters[name]
	return c, ok
}

func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // of a test's own
	}
	return data
}

func (a *AWS) serveEKS(w http.ResponseWriter, r *http.Request) {
	value, err := a.describeCluster(r)
	answer(w, "application/json", value, err)
}

func (a *AWS) describeCluster(r *http.Request) ([]byte, error) {
	name, ok := strings.CutPrefix(r.URL.Path, "/eks/clusters/")
	if !ok || r.Method != http.MethodGet {
		return nil, refuse(http.StatusNotFound, "UnknownOperationException", "")
	}
	if _, _, err := a.authorize(r, "eks", "eks:DescribeCluster"); err != nil {
		return nil, err
	}
	c, ok := a.EKS.cluster(name)
	if !ok {
		return nil, refuse(http.StatusNotFound, "ResourceNotFoundException", "No cluster found for name: %s.", name)
	}
	return mustJSON(map[string]any{"cluster": map[string]any{
		"name": name, "status": c.status, "endpoint": c.endpoint, "version": "1.33",
		"certificateAuthority": map[string]string{"data": base64.StdEncoding.EncodeToString(c.ca)},
	}}), nil
}

// EKSUser returns who a token is in a cluster, as the authenticator of EKS says.
func (a *AWS) EKSUser(r *http.Request, cluster, token string) (string, error) {
	c, ok := a.EKS.cluster(cluster)
	text, is := strings.CutPrefix(token, "k8s-aws-v1.")
	if !ok || !is {
		return "", errors.New("it is not a token of AWS")
	}
	address, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(string(address))
	if err != nil {
		return "", err
	}
	q := u.Query()
	at, err := time.Parse("20060102T150405Z", q.Get("X-Amz-Date"))
	switch {
	case err != nil:
		return "", err
	case u.Scheme != "https" || u.Host != "sts."+a.Region+".amazonaws.com" || u.Path != "/":
		return "", fmt.Errorf("unexpected host or path %s%s", u.Host, u.Path)
	case q.Get("Action") != "GetCallerIdentity" || q.Get("X-Amz-Expires") != "60":
		return "", errors.New("unexpected action or expiry")
	case !strings.Contains(";"+q.Get("X-Amz-SignedHeaders")+";", ";x-k8s-aws-id;"):
		return "", errors.New("the cluster is not among the signed headers")
	case time.Since(at) > 15*time.Minute || time.Until(at) > time.Minute:
		return "", errors.New("it has expired")
	}
	session, err := a.caller(r.Context(), string(address), http.Header{"X-K8s-Aws-Id": {cluster}})
	if err != nil {
		return "", err
	}
	user, ok := c.users[session.Role]
	if !ok {
		return "", fmt.Errorf("%s has no access entry", session.Role)
	}
	return user, nil
}
