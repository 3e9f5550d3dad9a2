package objects

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"

	"github.com/holdfast-dev/holdfast/datastore/objects/address"
)

// s3Hints are what to do where S3 has its own words.
var s3Hints = map[kind]string{
	kindCredentials: "check datastore.blobs.accessKey and its secret or, without them, what the server's environment has: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a web identity, or the instance's role; and the machine's clock",
	kindDenied:      "give the credentials s3:PutObject, s3:GetObject and s3:DeleteObject on the objects, and s3:ListBucket on the bucket",
}

func openS3(ctx context.Context, opts Options, at address.Address, within limits) (*blob.Bucket, cloud, error) {
	client, err := newClient(within, opts.CAFile, os.Getenv("AWS_CA_BUNDLE"))
	if err != nil {
		return nil, cloud{}, err
	}
	// Checksums: the MD5 sum of each upload is what all stores of this kind compare.
	load := []func(*config.LoadOptions) error{
		config.WithRequestChecksumCalculation(aws.RequestChecksumCalculationWhenRequired),
		config.WithResponseChecksumValidation(aws.ResponseChecksumValidationWhenRequired),
	}
	if region := at.Region(); region != "" {
		load = append(load, config.WithRegion(region))
	}
	if opts.Secret != nil {
		load = append(load, config.WithCredentialsProvider(aws.NewCredentialsCache(accessKey{opts, within.secret})))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, cloud{}, err
	}
	endpoint := at.Endpoint()
	if cfg.Region == "" {
		if endpoint == "" {
			return nil, cloud{}, errors.New("no region: add ?region=... to datastore.blobs.url, or set AWS_REGION")
		}
		cfg.Region = "us-east-1" // what stores that have none expect in a signature
	}
	service := s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.HTTPClient, o.Retryer, o.HTTPSignerV4 = client, aws.NopRetryer{}, signer{}
		o.Credentials = aws.NewCredentialsCache(boundedCredentials{cfg.Credentials, within.call})
		if endpoint != "" {
			o.BaseEndpoint = &endpoint
		}
		o.UsePathStyle = at.PathStyle()
	})
	bucket, err := s3blob.OpenBucket(ctx, service, at.Bucket, &s3blob.Options{
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
	})
	return bucket, cloud{explain: explainS3, options: putS3, hints: s3Hints}, err
}

// signer signs with the secret that it is given. The SDK's signer keeps what it has derived from
// a secret for a day, by the id of the access key: the id stays when the secret is changed.
type signer struct{}

// SignHTTP is that of the SDK, without what it keeps.
func (signer) SignHTTP(
	ctx context.Context, credentials aws.Credentials, req *http.Request, payload, service, region string, at time.Time,
	options ...func(*v4.SignerOptions),
) error {
	asInS3 := func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }
	return v4.NewSigner(asInS3).SignHTTP(ctx, credentials, req, payload, service, region, at, options...)
}

// boundedCredentials does not wait forever for those that a service hands out.
type boundedCredentials struct {
	from   aws.CredentialsProvider
	within time.Duration
}

func (b boundedCredentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	ctx, cancel := context.WithTimeout(ctx, b.within)
	defer cancel()
	found, err := b.from.Retrieve(ctx)
	var known *credentialsError
	if err != nil && !errors.As(err, &known) {
		err = &credentialsError{err}
	}
	return found, err
}

// accessKey is the access key of the configuration, read again now and then.
type accessKey struct {
	opts Options
	age  time.Duration // after which it is read again
}

func (k accessKey) Retrieve(context.Context) (aws.Credentials, error) {
	secret, err := k.opts.Secret()
	if err != nil {
		return aws.Credentials{}, &credentialsError{err}
	}
	return aws.Credentials{
		AccessKeyID: k.opts.AccessKey, SecretAccessKey: secret, Source: "holdfast",
		CanExpire: true, Expires: time.Now().Add(k.age),
	}, nil
}

// putS3 writes an object by one request, which is stored whole or not at all, and
// leaves no parts behind: there are 5 GiB to one.
func putS3(size int64, sum []byte) *blob.WriterOptions {
	return &blob.WriterOptions{
		BufferSize:     int(max(size+1, 5<<20)), // of a part: nothing is allocated for a body that can be read again
		MaxConcurrency: 1,
		BeforeWrite: func(as func(any) bool) error {
			var put *s3.PutObjectInput
			if as(&put) {
				put.ContentMD5 = aws.String(base64.StdEncoding.EncodeToString(sum))
				put.ContentLength = aws.Int64(size)
			}
			return nil
		},
	}
}

func explainS3(err error) (answer, bool) {
	var failed *credentialsError
	var response *awshttp.ResponseError
	if errors.As(err, &failed) || !errors.As(err, &response) || response.HTTPStatusCode() == 0 {
		return answer{}, false
	}
	said := answer{status: response.HTTPStatusCode()}
	var api smithy.APIError
	if errors.As(err, &api) {
		said.code, said.message = api.ErrorCode(), api.ErrorMessage()
	}
	if region := response.HTTPResponse().Header.Get("X-Amz-Bucket-Region"); region != "" && said.kind() == kindRegion {
		said.message = "the bucket is in " + region
	}
	return said, true
}
