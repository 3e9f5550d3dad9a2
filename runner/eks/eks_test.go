package eks_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/cloudapi"
	"github.com/holdfast-dev/holdfast/internal/testenv/relyingparty"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/awsrole"
	"github.com/holdfast-dev/holdfast/runner/eks"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

const (
	region = "eu-central-1"
	role   = "arn:aws:iam::123456789012:role/holdfast"
	api    = "https://api.example.com"
)

// lab is AWS with a cluster, and an issuer that its role trusts for runner "east".
type lab struct {
	aws     *cloudapi.AWS
	issuer  cloudapi.Issuer
	cluster runnerspec.EKSCluster
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{issuer: cloudapi.NewIssuer(t), cluster: runnerspec.EKSCluster{Region: region, Name: "prod", RoleARN: role}}
	l.aws = &cloudapi.AWS{Region: region, STS: &relyingparty.AWS{Party: l.issuer.Party, Trust: map[string]string{role: "holdfast:runner:east"}}}
	l.aws.Allow(role, "eks:DescribeCluster")
	l.aws.EKS.Add("prod", api, []byte("the authority"), map[string]string{role: "holdfast"})
	server := httptest.NewServer(l.aws)
	t.Cleanup(server.Close)
	t.Setenv("AWS_ENDPOINT_URL_STS", server.URL+"/sts")
	t.Setenv("AWS_ENDPOINT_URL_EKS", server.URL+"/eks")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	t.Setenv("HOME", t.TempDir())
	// What the machine may do is not what the runner may.
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAMACHINE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "of the machine")
	return l
}

func (l *lab) open(t *testing.T) *eks.Cluster {
	t.Helper()
	token := l.issuer.Token("east")
	c, err := eks.Open(t.Context(), l.cluster, "east", func(ctx context.Context) (string, error) { return token(ctx, awsrole.Audience) })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// user is who a token is, as the authenticator of a cluster says.
func (l *lab) user(t *testing.T, cluster, token string) (string, error) {
	t.Helper()
	return l.aws.EKSUser(httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil), cluster, token)
}

func TestClusterIsFoundAndItsTokensAreGood(t *testing.T) {
	l := newLab(t)
	c := l.open(t)
	address, ca, err := c.Endpoint(t.Context())
	if err != nil || address != api || string(ca) != "the authority" {
		t.Fatalf("found %q, %q, %v", address, ca, err)
	}
	token, until, err := c.Token(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(until); left < 5*time.Minute || left > 14*time.Minute {
		t.Errorf("the token is used for %s: authenticators take it for 15 minutes", left)
	}
	if who, err := l.user(t, "prod", token); err != nil || who != "holdfast" {
		t.Errorf("the token is of %q, %v", who, err)
	}
	l.aws.EKS.Add("staging", api, nil, map[string]string{role: "holdfast"})
	if who, err := l.user(t, "staging", token); err == nil {
		t.Errorf("the token is good for another cluster, too: %q", who)
	}
	if strings.Contains(token, "=") {
		t.Error("the token is padded, which authenticators do not take")
	}
	if got := strings.Join(l.aws.STS.Sessions(), "\n"); got != role+" holdfast-east 3600" {
		t.Errorf("sessions are %q: the role is assumed once", got)
	}
}

// A token that the API server has refused is not made from the same session again.
func TestTokenThatWasRefused(t *testing.T) {
	l := newLab(t)
	c := l.open(t)
	token, _, err := c.Token(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		refused  string
		sessions int
	}{{"", 1}, {token, 2}, {"", 2}} {
		if _, _, err := c.Token(t.Context(), test.refused); err != nil || len(l.aws.STS.Sessions()) != test.sessions {
			t.Errorf("refused %t: %d sessions, %v", test.refused != "", len(l.aws.STS.Sessions()), err)
		}
	}
}

// A session that is about to end is replaced, before a token would end with it.
func TestSessionIsRenewed(t *testing.T) {
	l := newLab(t)
	l.aws.STS.Life = 3 * time.Second
	c := l.open(t)
	for range 2 {
		token, until, err := c.Token(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		if who, err := l.user(t, "prod", token); err != nil {
			t.Errorf("the token is of %q, %v", who, err)
		}
		if time.Until(until) > l.aws.STS.Life {
			t.Errorf("the token is used until %s, beyond its session", until)
		}
	}
	if n := len(l.aws.STS.Sessions()); n != 2 {
		t.Errorf("the role was assumed %d times", n)
	}
}

// Each way in which AWS refuses has its reason.
func TestRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*lab)
		want   holdfast.Reason
		words  string
	}{
		"the role trusts somebody else": {
			func(l *lab) { l.aws.STS.Trust[role] = "holdfast:runner:west" }, holdfast.CauseCloudIdentityRefused, "Not authorized to perform sts:AssumeRoleWithWebIdentity",
		},
		"the token has ended": {
			func(l *lab) { l.issuer.Party.Now = func() time.Time { return time.Now().Add(2 * time.Hour) } },
			holdfast.CauseCloudIdentityRefused, "InvalidIdentityToken",
		},
		"there is no cluster":    {func(l *lab) { l.cluster.Name = "none" }, holdfast.CauseRunnerClusterMissing, "No cluster found for name: none"},
		"the role may not":       {func(l *lab) { l.aws.Allow(role) }, holdfast.CauseCloudForbidden, "not authorized to perform: eks:DescribeCluster"},
		"the region is another":  {func(l *lab) { l.aws.Region = "us-east-1" }, holdfast.CauseCloudIdentityRefused, "Credential should be scoped"},
		"the session has ended":  {func(l *lab) { l.aws.STS.Life = time.Nanosecond }, holdfast.CauseCloudIdentityRefused, "expired"},
		"EKS is out of order":    {func(l *lab) { l.aws.Break("eks:DescribeCluster", "ServerException") }, holdfast.CauseRunnerUnreachable, "out of order"},
		"the cluster is created": {func(l *lab) { l.aws.EKS.Add("prod", "", nil, nil) }, holdfast.CauseRunnerUnreachable, "it has no API server"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			test.change(l)
			_, _, err := l.open(t).Endpoint(t.Context())
			var refused *protocol.LaunchError
			if !errors.As(err, &refused) || refused.Reason != test.want || !strings.Contains(err.Error(), test.words) {
				t.Errorf("got %v, want %s: %s", err, test.want, test.words)
			}
		})
	}
	t.Run("nobody answers", func(t *testing.T) {
		l := newLab(t)
		t.Setenv("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:1")
		_, _, err := l.open(t).Token(t.Context(), "")
		var refused *protocol.LaunchError
		if !errors.As(err, &refused) || refused.Reason != holdfast.CauseRunnerUnreachable {
			t.Errorf("got %v", err)
		}
	})
}

// Whatever AWS, or a machine before it, sends instead of an answer: it says no more than that it
// cannot be reached, and all is well once AWS is.
func TestMoods(t *testing.T) {
	for _, mood := range cloudapi.Moods() {
		t.Run(string(mood), func(t *testing.T) {
			l := newLab(t)
			front := &cloudapi.Moody{API: l.aws}
			server := httptest.NewServer(front)
			t.Cleanup(server.Close)
			t.Setenv("AWS_ENDPOINT_URL_STS", server.URL+"/sts")
			t.Setenv("AWS_ENDPOINT_URL_EKS", server.URL+"/eks")
			c, fresh := l.open(t), l.open(t)
			if _, _, err := c.Endpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
			front.Is(mood)
			for what, of := range map[string]*eks.Cluster{"with a session": c, "without a session": fresh} {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				_, _, err := of.Endpoint(ctx)
				cancel()
				var refused *protocol.LaunchError
				if !errors.As(err, &refused) || refused.Reason != holdfast.CauseRunnerUnreachable {
					t.Errorf("%s: %v (%+v)", what, err, refused)
				}
			}
			front.Is(cloudapi.Well)
			for _, of := range []*eks.Cluster{c, fresh} {
				_, _, err := of.Endpoint(t.Context())
				for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); _, _, err = of.Endpoint(t.Context()) {
					time.Sleep(100 * time.Millisecond) // a call that hangs is waited for before
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
}
