package gke_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/cloudapi"
	"github.com/holdfast-dev/holdfast/internal/testenv/relyingparty"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/gke"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

const (
	provider = "projects/123456/locations/global/workloadIdentityPools/holdfast/providers/holdfast"
	subject  = "holdfast:runner:east"
	account  = "runs@acme.iam.gserviceaccount.com"
)

// lab is Google with a cluster, and an issuer that its provider trusts.
type lab struct {
	google    *cloudapi.Google
	issuer    cloudapi.Issuer
	cluster   runnerspec.GKECluster
	endpoints gke.Endpoints
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{issuer: cloudapi.NewIssuer(t), cluster: runnerspec.GKECluster{
		Project: "acme", Location: "europe-west3", Name: "prod", WorkloadIdentityProvider: provider, ServiceAccount: account,
	}}
	l.google = &cloudapi.Google{
		Project: "acme", Viewers: []string{account},
		Tokens: &relyingparty.Google{Party: l.issuer.Party, Provider: provider, Accounts: map[string]string{account: subject}},
	}
	l.google.Add("europe-west3", "prod", "10.0.0.1", []byte("the authority"), map[string]string{account: "holdfast"})
	server := httptest.NewServer(l.google)
	t.Cleanup(server.Close)
	l.endpoints = gke.Endpoints{STS: server.URL, IAMCredentials: server.URL, Container: server.URL + "/"}
	return l
}

func (l *lab) open(t *testing.T) *gke.Cluster {
	t.Helper()
	c, err := gke.Open(gke.Options{Cluster: l.cluster, Token: l.issuer.Token("east"), Endpoints: l.endpoints})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestClusterIsFoundAndItsTokensAreGood(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*lab)
		who    string
	}{
		"as a service account": {func(*lab) {}, account},
		"as the identity itself": {func(l *lab) {
			l.cluster.ServiceAccount, l.google.Viewers = "", []string{subject}
		}, subject},
		"by its internal address": {func(l *lab) { l.cluster.InternalIP = true }, account},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			test.change(l)
			c := l.open(t)
			address, ca, err := c.Endpoint(t.Context())
			if err != nil || address != "https://10.0.0.1" || string(ca) != "the authority" {
				t.Fatalf("found %q, %q, %v", address, ca, err)
			}
			token, until, err := c.Token(t.Context(), "")
			who, ok := l.google.Tokens.Principal(token)
			if err != nil || !ok || who != test.who {
				t.Errorf("the token is of %q, %t, %v", who, ok, err)
			}
			if left := time.Until(until); left > 56*time.Minute || left < 30*time.Minute {
				t.Errorf("it is used for %s of its hour", left)
			}
			before := l.google.Tokens.Tokens()
			if again, _, err := c.Token(t.Context(), ""); err != nil || again != token || l.google.Tokens.Tokens() != before {
				t.Errorf("another token was made: %q, %v", again, err)
			}
		})
	}
}

// A token that was revoked is replaced, by whoever has found that out.
func TestTokenIsRevoked(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	c := l.open(t)
	token, _, err := c.Token(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	l.google.Tokens.Revoke()
	if again, _, err := c.Token(t.Context(), ""); err != nil || again != token {
		t.Errorf("without a word it is %q, %v", again, err)
	}
	other, _, err := c.Token(t.Context(), token)
	if _, ok := l.google.Tokens.Principal(other); err != nil || !ok {
		t.Errorf("then it is %q, %v", other, err)
	}
	l.google.Tokens.Revoke()
	if _, _, err := c.Endpoint(t.Context()); err != nil {
		t.Errorf("the cluster is not found with a new one: %v", err)
	}
}

func TestTokenIsRenewed(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.google.Tokens.Life = 2 * time.Second
	c := l.open(t)
	first, until, err := c.Token(t.Context(), "")
	if err != nil || time.Until(until) > time.Second {
		t.Fatalf("a token for two seconds is used until %s, %v", until, err)
	}
	for {
		token, _, err := c.Token(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := l.google.Tokens.Principal(token); !ok {
			t.Fatal("a token that has ended is used")
		}
		if token != first {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Each way in which Google refuses has its reason.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*lab)
		want   holdfast.Reason
		words  string
	}{
		"the token has ended": {
			func(l *lab) { l.issuer.Party.Now = func() time.Time { return time.Now().Add(2 * time.Hour) } },
			holdfast.CauseCloudIdentityRefused, "invalid_grant",
		},
		"another provider": {
			func(l *lab) { l.cluster.WorkloadIdentityProvider += "-2" }, holdfast.CauseCloudIdentityRefused, "providers/holdfast-2",
		},
		"another account": {
			func(l *lab) { l.cluster.ServiceAccount = "admin@acme.iam.gserviceaccount.com" }, holdfast.CauseCloudIdentityRefused, "be service account admin@",
		},
		"there is no cluster":    {func(l *lab) { l.cluster.Name = "none" }, holdfast.CauseRunnerClusterMissing, "clusters/none"},
		"the account may not":    {func(l *lab) { l.google.Viewers = nil }, holdfast.CauseCloudForbidden, "container.clusters.get"},
		"nobody answers":         {func(l *lab) { l.endpoints.STS = "http://127.0.0.1:1" }, holdfast.CauseRunnerUnreachable, "refused"},
		"the cluster has no API": {func(l *lab) { l.google.Add("europe-west3", "prod", "", nil, nil) }, holdfast.CauseRunnerUnreachable, "its status is RUNNING"},
		"it has no internal address": {func(l *lab) {
			l.cluster.InternalIP = true
			l.google.Add("europe-west3", "prod", "", nil, nil)
		}, holdfast.CauseRunnerUnreachable, "internalIP"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			test.change(l)
			_, _, err := l.open(t).Endpoint(t.Context())
			var refused *protocol.LaunchError
			if !errors.As(err, &refused) || refused.Reason != test.want || !strings.Contains(err.Error(), test.words) {
				t.Errorf("got %v, want %s: %s", err, test.want, test.words)
			}
		})
	}
}

// Whatever Google, or a machine before it, sends instead of an answer: it says no more than that it
// cannot be reached, and all is well once Google is.
func TestMoods(t *testing.T) {
	t.Parallel()
	for _, mood := range cloudapi.Moods() {
		t.Run(string(mood), func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			front := &cloudapi.Moody{API: l.google}
			server := httptest.NewServer(front)
			t.Cleanup(server.Close)
			l.endpoints = gke.Endpoints{STS: server.URL, IAMCredentials: server.URL, Container: server.URL}
			c, fresh := l.open(t), l.open(t)
			if _, _, err := c.Endpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
			front.Is(mood)
			for what, of := range map[string]*gke.Cluster{"with a token": c, "without a token": fresh} {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				_, _, err := of.Endpoint(ctx)
				cancel()
				var refused *protocol.LaunchError
				if !errors.As(err, &refused) || refused.Reason != holdfast.CauseRunnerUnreachable || strings.Contains(err.Error(), "invalid character") {
					t.Errorf("%s: %v (%+v)", what, err, refused)
				}
			}
			front.Is(cloudapi.Well)
			for _, of := range []*gke.Cluster{c, fresh} {
				if _, _, err := of.Endpoint(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
