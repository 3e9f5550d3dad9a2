package gke

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

// Endpoints are where Google's APIs are; empty ones are Google's own.
type Endpoints struct {
	STS            string // https://sts.googleapis.com
	IAMCredentials string // https://iamcredentials.googleapis.com
	Container      string // https://container.googleapis.com
}

// Options are what a Cluster needs. All are required unless noted.
type Options struct {
	Cluster runnerspec.GKECluster
	// Token returns a token of our issuer, for an audience.
	Token     func(ctx context.Context, audience string) (string, error)
	Endpoints Endpoints    // optional
	Client    *http.Client // nil: one with a deadline
}

const (
	callTime = 20 * time.Second
	// renewBefore is how long before its end a token is replaced.
	renewBefore = 5 * time.Minute
	scope       = "https://www.googleapis.com/auth/cloud-platform"
)

// Cluster is a cluster of GKE: a Cloud of runner/kubernetes. It is safe for concurrent use.
type Cluster struct {
	opts Options
	turn chan struct{} // holds a value while nobody gets a token
	last accessToken   // of whoever has the turn
}

// accessToken is a token of Google.
type accessToken struct {
	text  string
	until time.Time // it is replaced then
}

// Open returns a Cluster. It calls nobody.
func Open(opts Options) (*Cluster, error) {
	g := opts.Cluster
	if g.Project == "" || g.Location == "" || g.Name == "" || g.WorkloadIdentityProvider == "" || opts.Token == nil {
		return nil, errors.New("cluster of GKE has no project, location, name, workload identity provider or token")
	}
	e := &opts.Endpoints
	e.STS = strings.TrimSuffix(cmp.Or(e.STS, "https://sts.googleapis.com"), "/")
	e.IAMCredentials = strings.TrimSuffix(cmp.Or(e.IAMCredentials, "https://iamcredentials.googleapis.com"), "/")
	e.Container = strings.TrimSuffix(cmp.Or(e.Container, "https://container.googleapis.com"), "/")
	if opts.Client == nil {
		opts.Client = &http.Client{Timeout: callTime}
	}
	c := &Cluster{opts: opts, turn: make(chan struct{}, 1)}
	c.turn <- struct{}{}
	return c, nil
}

// Audience is whom tokens for a provider have to be for.
func Audience(provider string) string { return "https://iam.googleapis.com/" + provider }

// found is what GKE says of a cluster.
type found struct {
	Status     string `json:"status"`
	Endpoint   string `json:"endpoint"` // an IP address
	MasterAuth struct {
		Certificate string `json:"clusterCaCertificate"`
	} `json:"masterAuth"`
	Private struct {
		Endpoint string `json:"privateEndpoint"`
	} `json:"privateClusterConfig"`
	ControlPlane struct {
		DNS struct {
			Endpoint string `json:"endpoint"`
		} `json:"dnsEndpointConfig"`
	} `json:"controlPlaneEndpointsConfig"`
}

// Endpoint asks GKE where the API server is, and for the authority of its certificate, PEM.
func (c *Cluster) Endpoint(ctx context.Context) (address string, ca []byte, err error) {
	g := c.opts.Cluster
	what := fmt.Sprintf("find cluster %s of GKE in %s of project %s", g.Name, g.Location, g.Project)
	at := fmt.Sprintf("%s/v1/projects/%s/locations/%s/clusters/%s", c.opts.Endpoints.Container,
		url.PathEscape(g.Project), url.PathEscape(g.Location), url.PathEscape(g.Name))
	var said found
	var answer *answerError
	for token, again := "", false; ; again = true {
		if token, _, err = c.Token(ctx, token); err != nil {
			return "", nil, err
		}
		err = c.call(ctx, request{address: at, bearer: token}, &said)
		if again || !errors.As(err, &answer) || answer.status != http.StatusUnauthorized {
			break // otherwise the token may have been revoked
		}
	}
	if err != nil {
		return "", nil, explain(what, err, map[int]holdfast.Reason{
			http.StatusNotFound: holdfast.CauseRunnerClusterMissing, http.StatusForbidden: holdfast.CauseCloudForbidden,
			http.StatusUnauthorized: holdfast.CauseCloudIdentityRefused, http.StatusBadRequest: holdfast.CauseRunnerClusterMissing,
		})
	}
	host := said.Endpoint
	if g.InternalIP {
		host = said.Private.Endpoint
	}
	switch {
	case host != "":
		if ca, err = base64.StdEncoding.DecodeString(said.MasterAuth.Certificate); err != nil {
			return "", nil, explain(what, errors.New("its certificate authority is not base64"), nil)
		}
		return "https://" + host, ca, nil
	case said.ControlPlane.DNS.Endpoint != "" && !g.InternalIP: // whose certificate is a public one
		return "https://" + said.ControlPlane.DNS.Endpoint, nil, nil
	case g.InternalIP:
		return "", nil, explain(what, fmt.Errorf("it has no internal address (status %s): remove internalIP", said.Status), nil)
	default:
		return "", nil, explain(what, fmt.Errorf("it has no API server: its status is %s", cmp.Or(said.Status, "unknown")), nil)
	}
}

// Token returns an access token, which the API server takes as Google's APIs do: another one
// than refused.
func (c *Cluster) Token(ctx context.Context, refused string) (string, time.Time, error) {
	select {
	case <-c.turn:
	case <-ctx.Done():
		return "", time.Time{}, context.Cause(ctx)
	}
	defer func() { c.turn <- struct{}{} }()
	if c.last.text != "" && c.last.text != refused && time.Now().Before(c.last.until) {
		return c.last.text, c.last.until, nil
	}
	token, err := c.exchange(ctx)
	if err == nil && c.opts.Cluster.ServiceAccount != "" {
		token, err = c.impersonate(ctx, token.text)
	}
	if err != nil {
		return "", time.Time{}, err
	}
	c.last = token
	return token.text, token.until, nil
}

// refusals are why Google gives no token.
var refusals = map[int]holdfast.Reason{
	http.StatusBadRequest: holdfast.CauseCloudIdentityRefused, http.StatusUnauthorized: holdfast.CauseCloudIdentityRefused,
	http.StatusForbidden: holdfast.CauseCloudIdentityRefused, http.StatusNotFound: holdfast.CauseCloudIdentityRefused,
}

// exchange gets a token of the workload identity for one of ours.
func (c *Cluster) exchange(ctx context.Context) (accessToken, error) {
	provider := c.opts.Cluster.WorkloadIdentityProvider
	ours, err := c.opts.Token(ctx, Audience(provider))
	if err != nil {
		return accessToken{}, &protocol.LaunchError{Reason: holdfast.CauseRunnerUnusable, Err: fmt.Errorf("make a token for Google: %w", err)}
	}
	var said struct {
		Token   string `json:"access_token"`
		Seconds int    `json:"expires_in"`
	}
	err = c.call(ctx, request{address: c.opts.Endpoints.STS + "/v1/token", form: url.Values{
		"grant_type":           {"urn:ietf:params:oauth:grant-type:token-exchange"},
		"audience":             {"//iam.googleapis.com/" + provider},
		"scope":                {scope},
		"requested_token_type": {"urn:ietf:params:oauth:token-type:access_token"},
		"subject_token_type":   {"urn:ietf:params:oauth:token-type:jwt"},
		"subject_token":        {ours},
	}}, &said)
	if err == nil && said.Token == "" {
		err = errors.New("the answer has no token")
	}
	if err != nil {
		return accessToken{}, explain("exchange a token at provider "+provider, err, refusals)
	}
	return accessToken{said.Token, endOf(time.Duration(said.Seconds) * time.Second)}, nil
}

// impersonate gets a token of the service account.
func (c *Cluster) impersonate(ctx context.Context, token string) (accessToken, error) {
	account := c.opts.Cluster.ServiceAccount
	var said struct {
		Token  string    `json:"accessToken"`
		Expire time.Time `json:"expireTime"`
	}
	err := c.call(ctx, request{
		address: c.opts.Endpoints.IAMCredentials + "/v1/projects/-/serviceAccounts/" + url.PathEscape(account) + ":generateAccessToken",
		bearer:  token, body: map[string]any{"scope": []string{scope}, "lifetime": "3600s"},
	}, &said)
	if err == nil && said.Token == "" {
		err = errors.New("the answer has no token")
	}
	if err != nil {
		return accessToken{}, explain("be service account "+account, err, refusals)
	}
	return accessToken{said.Token, endOf(time.Until(said.Expire))}, nil
}

// endOf is when a token is to be replaced that is good for a while: some time before its end,
// or after half of it.
func endOf(life time.Duration) time.Time { return time.Now().Add(life - min(renewBefore, life/2)) }
