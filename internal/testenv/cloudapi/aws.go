package cloudapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/holdfast-dev/holdfast/internal/testenv/relyingparty"
)

// AWS is a region of one account: the Security Token Service below /sts, EKS below /eks, and
// ECS below /ecs.
type AWS struct {
	STS    *relyingparty.AWS
	Region string
	EKS    EKS
	ECS    *ECS // nil: there is none

	mu     sync.Mutex
	allow  map[string][]string // actions by role ARN
	calls  map[string]int      // by action
	broken map[string]string   // action to the code of an error
}

// Allow gives a role actions, such as eks:DescribeCluster, and takes all others.
func (a *AWS) Allow(role string, actions ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.allow == nil {
		a.allow = map[string][]string{}
	}
	a.allow[role] = actions
}

// Break has an action fail with an error of that code; empty: no longer.
func (a *AWS) Break(action, code string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.broken == nil {
		a.broken = map[string]string{}
	}
	a.broken[action] = code
}

// Calls is how often an action was asked for by somebody who may.
func (a *AWS) Calls(action string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls[action]
}

func (a *AWS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, "/sts"):
		a.STS.ServeHTTP(w, r)
	case strings.HasPrefix(r.URL.Path, "/eks/"):
		a.serveEKS(w, r)
	case strings.HasPrefix(r.URL.Path, "/ecs") && a.ECS != nil:
		a.serveECS(w, r)
	default:
		http.NotFound(w, r)
	}
}

// awsError is an answer as services of AWS give it.
type awsError struct {
	status        int
	code, message string
	more          map[string]any
}

func (e *awsError) Error() string { return e.code + ": " + e.message }

func refuse(status int, code, format string, args ...any) *awsError {
	return &awsError{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

// authorize returns the session that has signed a request for a service, if it may do that.
func (a *AWS) authorize(r *http.Request, service, action string) (relyingparty.Session, []byte, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return relyingparty.Session{}, nil, err
	}
	session, err := a.signed(r, body, service)
	if err != nil {
		return session, nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.Contains(a.allow[session.Role], action) {
		return session, nil, refuse(http.StatusBadRequest, "AccessDeniedException",
			"User: %s/%s is not authorized to perform: %s because no identity-based policy allows the %[3]s action", session.Role, session.Name, action)
	}
	if code := a.broken[action]; code != "" {
		return session, nil, refuse(http.StatusBadRequest, code, "%s is out of order", action)
	}
	if a.calls == nil {
		a.calls = map[string]int{}
	}
	a.calls[action]++
	return session, body, nil
}

// signed verifies the signature of a request: it is made again with the secret of the session.
func (a *AWS) signed(r *http.Request, body []byte, service string) (relyingparty.Session, error) {
	fields := map[string]string{}
	for part := range strings.SplitSeq(strings.TrimPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 "), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		fields[name] = value
	}
	scope := strings.Split(fields["Credential"], "/")
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil || len(scope) != 5 {
		return relyingparty.Session{}, refuse(http.StatusForbidden, "MissingAuthenticationTokenException", "Missing Authentication Token")
	}
	session, err := a.session(scope[0], r.Header.Get("X-Amz-Security-Token"))
	if err != nil {
		return session, err
	}
	if scope[2] != a.Region || scope[3] != service || time.Since(at).Abs() > 5*time.Minute {
		return session, refuse(http.StatusForbidden, "InvalidSignatureException", "Credential should be scoped to %s in %s", service, a.Region)
	}
	again := &http.Request{
		Method: r.Method, Host: r.Host, Header: http.Header{}, ContentLength: int64(len(body)),
		URL: &url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery},
	}
	for name := range strings.SplitSeq(fields["SignedHeaders"], ";") {
		if name != "host" && name != "content-length" {
			again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
		}
	}
	sum := sha256.Sum256(body)
	credentials := aws.Credentials{AccessKeyID: scope[0], SecretAccessKey: session.Secret, SessionToken: session.Token}
	if err := v4.NewSigner().SignHTTP(r.Context(), credentials, again, hex.EncodeToString(sum[:]), service, a.Region, at); err != nil {
		return session, err
	}
	if again.Header.Get("Authorization") != r.Header.Get("Authorization") {
		return session, refuse(http.StatusForbidden, "InvalidSignatureException", "The request signature we calculated does not match the signature you provided")
	}
	return session, nil
}

// session is that of an access key, if it has not ended.
func (a *AWS) session(key, token string) (relyingparty.Session, error) {
	session, ok := a.STS.Session(key)
	switch {
	case !ok || session.Token != token:
		return session, refuse(http.StatusForbidden, "UnrecognizedClientException", "The security token included in the request is invalid.")
	case time.Now().After(session.Expires):
		return session, refuse(http.StatusForbidden, "ExpiredTokenException", "The security token included in the request is expired")
	}
	return session, nil
}

// caller returns who has presigned a request of GetCallerIdentity, as AWS's Security Token
// Service answers it: headers are those that are sent besides.
func (a *AWS) caller(ctx context.Context, address string, headers http.Header) (relyingparty.Session, error) {
	u, err := url.Parse(address)
	if err != nil {
		return relyingparty.Session{}, err
	}
	q := u.Query()
	scope := strings.Split(q.Get("X-Amz-Credential"), "/")
	at, err := time.Parse("20060102T150405Z", q.Get("X-Amz-Date"))
	if err != nil || len(scope) != 5 || scope[2] != a.Region || scope[3] != "sts" {
		return relyingparty.Session{}, errors.New("it is not presigned for sts")
	}
	session, err := a.session(scope[0], q.Get("X-Amz-Security-Token"))
	if err != nil {
		return session, err
	}
	signature := q.Get("X-Amz-Signature")
	for name := range q {
		if strings.HasPrefix(name, "X-Amz-") && name != "X-Amz-Expires" {
			q.Del(name)
		}
	}
	u.RawQuery = q.Encode()
	again, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return session, err
	}
	again.Header = headers
	sum := sha256.Sum256(nil)
	credentials := aws.Credentials{AccessKeyID: scope[0], SecretAccessKey: session.Secret, SessionToken: session.Token}
	made, _, err := v4.NewSigner().PresignHTTP(ctx, credentials, again, hex.EncodeToString(sum[:]), "sts", a.Region, at)
	if err != nil {
		return session, err
	}
	if ours, err := url.Parse(made); err != nil || ours.Query().Get("X-Amz-Signature") != signature || signature == "" {
		return session, errors.New("SignatureDoesNotMatch")
	}
	return session, nil
}

// answer writes a value, or an error, as services with JSON do.
func answer(w http.ResponseWriter, kind string, value []byte, err error) {
	w.Header().Set("Content-Type", kind)
	if err == nil {
		_, _ = io.Copy(w, bytes.NewReader(value))
		return
	}
	var known *awsError
	if !errors.As(err, &known) {
		known = refuse(http.StatusInternalServerError, "ServerException", "%v", err)
	}
	w.Header().Set("X-Amzn-Errortype", known.code)
	w.WriteHeader(known.status)
	said := map[string]any{"__type": known.code, "message": known.message}
	for name, more := range known.more {
		said[name] = more
	}
	_, _ = w.Write(mustJSON(said))
}
