package awsrole

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// Audience is whom tokens have to be for.
const Audience = "sts.amazonaws.com"

// Role is a role that is assumed.
type Role struct {
	ARN         string
	SessionName string
	Region      string // of the Security Token Service
	// Token returns a token of our issuer, for Audience.
	Token func(ctx context.Context) (string, error)
}

const (
	// renewBefore is how long before its end a session is renewed.
	renewBefore = 5 * time.Minute
	// callTime bounds each call, its retries included.
	callTime = 20 * time.Second
)

// Config returns how AWS is called in a region, as the role. It calls nobody: the role is
// assumed with the first call, and again before the session ends. Its type is that of the SDK,
// since clients are made of it.
func Config(ctx context.Context, role Role, region string) (aws.Config, error) {
	if role.ARN == "" || role.SessionName == "" || role.Token == nil {
		return aws.Config{}, errors.New("role has no ARN, session name or token")
	}
	load := func(region string, credentials aws.CredentialsProvider) (aws.Config, error) {
		cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(region), config.WithCredentialsProvider(credentials),
			config.WithRetryer(func() aws.Retryer { return retry.NewStandard() }), config.WithAppID("holdfast"))
		if err != nil {
			return cfg, fmt.Errorf("read the settings of AWS: %w", err)
		}
		return cfg, nil
	}
	anonymous, err := load(role.Region, aws.AnonymousCredentials{})
	if err != nil {
		return aws.Config{}, err
	}
	session := aws.NewCredentialsCache(&provider{role: role, client: sts.NewFromConfig(anonymous)},
		func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = renewBefore })
	return load(region, session)
}

// assuming is what codes mean of AssumeRoleWithWebIdentity: the role does not trust the token.
var assuming = map[string]holdfast.Reason{
	"AccessDenied": holdfast.CauseCloudIdentityRefused, "ValidationError": holdfast.CauseCloudIdentityRefused,
}

// provider assumes the role.
type provider struct {
	role   Role
	client *sts.Client
}

// Retrieve is that of an aws.CredentialsProvider. An error is a *protocol.LaunchError.
func (p *provider) Retrieve(ctx context.Context) (aws.Credentials, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	token, err := p.role.Token(ctx)
	if err != nil {
		return aws.Credentials{}, &protocol.LaunchError{
			Reason: holdfast.CauseRunnerUnusable, Err: fmt.Errorf("make a token for AWS: %w", err),
		}
	}
	out, err := p.client.AssumeRoleWithWebIdentity(ctx, &sts.AssumeRoleWithWebIdentityInput{
		RoleArn: &p.role.ARN, RoleSessionName: &p.role.SessionName, WebIdentityToken: &token,
	})
	if err != nil {
		return aws.Credentials{}, Explain("assume role "+p.role.ARN, err, assuming)
	}
	if out.Credentials == nil || out.Credentials.Expiration == nil {
		return aws.Credentials{}, Explain("assume role "+p.role.ARN, errors.New("the answer has no credentials"), nil)
	}
	return aws.Credentials{
		AccessKeyID: aws.ToString(out.Credentials.AccessKeyId), SecretAccessKey: aws.ToString(out.Credentials.SecretAccessKey),
		SessionToken: aws.ToString(out.Credentials.SessionToken), Source: "holdfast", CanExpire: true, Expires: *out.Credentials.Expiration,
	}, nil
}

// SessionName is what sessions of a runner are called in AWS, where its document says
// nothing: at most 64 characters.
func SessionName(runner string) string {
	name := "holdfast-" + runner
	return name[:min(len(name), 64)]
}
