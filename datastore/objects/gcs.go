package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"gocloud.dev/blob"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/holdfast-dev/holdfast/datastore/objects/address"
	"github.com/holdfast-dev/holdfast/datastore/objects/gcs"
)

var gcsHints = map[kind]string{
	kindCredentials: "check datastore.blobs.secret, the JSON of a service account's key, or without it what the server's environment has: GOOGLE_APPLICATION_CREDENTIALS, workload identity, or the machine's service account",
	kindDenied:      "give the service account the role Storage Object User (roles/storage.objectUser) on this bucket",
}

func openGCS(ctx context.Context, opts Options, at address.Address, within limits) (*blob.Bucket, cloud, error) {
	client, err := newClient(within, opts.CAFile)
	if err != nil {
		return nil, cloud{}, err
	}
	// Tokens are fetched by the same client, and for as long as the server lives.
	ctx = context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, client)
	var tokens oauth2.TokenSource
	if opts.Secret != nil {
		tokens = &serviceAccount{ctx: ctx, secret: opts.Secret}
	} else {
		found, err := google.FindDefaultCredentials(ctx, gcs.Scope)
		if err != nil {
			return nil, cloud{}, &credentialsError{err}
		}
		tokens = found.TokenSource
	}
	authorized := &http.Client{Transport: &bearer{tokens: oauth2.ReuseTokenSource(nil, tokens), next: client.Transport}}
	bucket := blob.NewBucket(gcs.New(authorized, at.Endpoint(), at.Bucket))
	return bucket, cloud{explain: explainGCS, options: putGCS, hints: gcsHints}, nil
}

// bearer adds a token to each request.
type bearer struct {
	tokens oauth2.TokenSource
	next   http.RoundTripper
}

// RoundTrip is that of an http.RoundTripper.
func (b *bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := b.tokens.Token()
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, noToken(err)
	}
	req = req.Clone(req.Context())
	token.SetAuthHeader(req)
	return b.next.RoundTrip(req)
}

// noToken distinguishes a refusal from a token service that is unavailable.
func noToken(err error) error {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && refused.Response.StatusCode < 500 {
		var said struct {
			Code string `json:"error"`
			Text string `json:"error_description"`
		}
		_ = json.Unmarshal(refused.Body, &said) // it may be anything
		return &credentialsError{fmt.Errorf("no token: %s %s %s", refused.Response.Status, said.Code, said.Text)}
	}
	return err
}

// serviceAccount gets tokens with the key of a service account, which it reads each time.
type serviceAccount struct {
	ctx    context.Context //nolint:containedctx // it has the client, and is never done
	secret func() (string, error)

	mu sync.Mutex // one at a time
}

// Token is that of an oauth2.TokenSource.
func (s *serviceAccount) Token() (*oauth2.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, err := s.secret()
	if err != nil {
		return nil, &credentialsError{err}
	}
	found, err := google.CredentialsFromJSON(s.ctx, []byte(key), gcs.Scope)
	if err != nil {
		return nil, &credentialsError{errors.New("the secret is not the JSON of a service account's key")} // theirs may quote it
	}
	return found.TokenSource.Token()
}

func putGCS(size int64, sum []byte) *blob.WriterOptions {
	return &blob.WriterOptions{BeforeWrite: func(as func(any) bool) error {
		var upload *gcs.Upload
		if as(&upload) {
			upload.Size, upload.MD5 = size, sum
		}
		return nil
	}}
}

func explainGCS(err error) (answer, bool) {
	var failure *gcs.Error
	if !errors.As(err, &failure) {
		return answer{}, false
	}
	said := answer{status: failure.Status, message: failure.Message}
	if failure.Status == http.StatusNotFound && strings.Contains(failure.Message, "bucket does not exist") {
		said.code = "NoSuchBucket"
	}
	return said, true
}
