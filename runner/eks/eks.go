package eks

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner/awsrole"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

const (
	// An API server takes a token for 15 minutes after its signature, whatever this says; the
	// request that it is may be sent within a minute.
	tokenLife   = 15 * time.Minute
	renewBefore = 3 * time.Minute
	presigned   = "60"

	// clusterHeader names the cluster in what is signed: a token is good for no other one.
	clusterHeader = "x-k8s-aws-id"
	tokenPrefix   = "k8s-aws-v1."
	// emptyBody is the SHA-256 sum of nothing.
	emptyBody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

	callTime = 30 * time.Second
)

// codes are what errors of DescribeCluster mean.
var codes = map[string]holdfast.Reason{"ResourceNotFoundException": holdfast.CauseRunnerClusterMissing}

// Cluster is a cluster of EKS: a Cloud of runner/kubernetes. It is safe for concurrent use.
type Cluster struct {
	of     runnerspec.EKSCluster
	config aws.Config
	client *eks.Client
	stsURL string // the address that tokens name
}

// Open returns a Cluster. It calls nobody. Token returns one of our issuer, for
// awsrole.Audience.
func Open(ctx context.Context, of runnerspec.EKSCluster, runner string, token func(context.Context) (string, error)) (*Cluster, error) {
	role := awsrole.Role{ARN: of.RoleARN, SessionName: of.SessionName, Region: of.STSRegion, Token: token}
	if role.SessionName == "" {
		role.SessionName = awsrole.SessionName(runner)
	}
	if role.Region == "" {
		role.Region = of.Region
	}
	config, err := awsrole.Config(ctx, role, of.Region)
	if err != nil {
		return nil, err
	}
	// Authenticators know AWS's own addresses alone, whichever way this machine takes to them.
	at, err := sts.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, sts.EndpointParameters{
		Region: &of.Region, UseDualStack: aws.Bool(false), UseFIPS: aws.Bool(false), UseGlobalEndpoint: aws.Bool(false),
	})
	if err != nil {
		return nil, fmt.Errorf("find the Security Token Service of region %s: %w", of.Region, err)
	}
	return &Cluster{of: of, config: config, client: eks.NewFromConfig(config), stsURL: at.URI.String()}, nil
}

// Endpoint asks EKS where the API server is, and for the authority of its certificate, PEM.
func (c *Cluster) Endpoint(ctx context.Context) (address string, ca []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	what := fmt.Sprintf("find cluster %s of EKS in %s", c.of.Name, c.of.Region)
	out, err := c.client.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &c.of.Name})
	if err != nil {
		return "", nil, awsrole.Explain(what, err, codes)
	}
	if out.Cluster == nil || aws.ToString(out.Cluster.Endpoint) == "" || out.Cluster.CertificateAuthority == nil {
		status := "unknown"
		if out.Cluster != nil {
			status = string(out.Cluster.Status)
		}
		return "", nil, &protocol.LaunchError{
			Reason: holdfast.CauseRunnerUnreachable, Err: fmt.Errorf("%s: it has no API server: its status is %s", what, status),
		}
	}
	ca, err = base64.StdEncoding.DecodeString(aws.ToString(out.Cluster.CertificateAuthority.Data))
	if err != nil {
		return "", nil, awsrole.Explain(what, errors.New("its certificate authority is not base64"), nil)
	}
	return aws.ToString(out.Cluster.Endpoint), ca, nil
}

// Token returns a token for the API server. If one was refused, the role is assumed again: its
// session may have been revoked.
func (c *Cluster) Token(ctx context.Context, refused string) (string, time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	what := "make a token for cluster " + c.of.Name
	if sessions, ok := c.config.Credentials.(*aws.CredentialsCache); ok && refused != "" {
		sessions.Invalidate()
	}
	session, err := c.config.Credentials.Retrieve(ctx)
	if err != nil {
		return "", time.Time{}, awsrole.Explain(what, err, nil)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.stsURL+"/?Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Expires="+presigned, http.NoBody)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("%s: %w", what, err)
	}
	req.Header.Set(clusterHeader, c.of.Name)
	now := time.Now()
	signed, _, err := v4.NewSigner().PresignHTTP(ctx, session, req, emptyBody, "sts", c.of.Region, now)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("%s: %w", what, err)
	}
	until := now.Add(tokenLife - renewBefore)
	if session.CanExpire && session.Expires.Before(until) {
		until = session.Expires
	}
	return tokenPrefix + base64.RawURLEncoding.EncodeToString([]byte(signed)), until, nil
}
