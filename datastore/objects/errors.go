package objects

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"gocloud.dev/gcerrors"

	"github.com/holdfast-dev/holdfast"
)

// errExists says that something exists under a key that was meant to be new.
var errExists = errors.New("it exists")

// kind is why something could not be done.
type kind string

const (
	kindAway        kind = "away"        // it does not answer, or has a failure of its own
	kindBusy        kind = "busy"        // it asks for fewer requests
	kindTLS         kind = "TLS"         // it is not trusted, or speaks no TLS
	kindCredentials kind = "credentials" // there are none, or it does not know them
	kindDenied      kind = "denied"      // the credentials may not do that
	kindNoBucket    kind = "no bucket"   // there is no such bucket
	kindRegion      kind = "region"      // the bucket is in another one
	kindMissing     kind = "missing"     // there is no such object
	kindExists      kind = "exists"      // there is such an object
	kindOther       kind = "other"       // it refused the request for a reason of its own
)

// passes reports whether trying again in a moment may help.
func (k kind) passes() bool { return k == kindAway || k == kindBusy || k == kindOther }

// ofStore reports whether it affects all objects, and not one.
func (k kind) ofStore() bool { return k != kindMissing && k != kindExists }

func (k kind) problem() string {
	switch k {
	case kindAway:
		return "the object store does not answer"
	case kindBusy:
		return "the object store is overloaded"
	case kindTLS:
		return "the object store's certificate is not trusted"
	case kindCredentials:
		return "the object store does not accept the server's credentials"
	case kindDenied:
		return "the object store denies the server a right that it needs"
	case kindNoBucket:
		return "the object store has no such bucket"
	case kindRegion:
		return "the object store has the bucket in another region"
	default:
		return "the object store refuses requests"
	}
}

// hints are what to do, where a store has no words of its own.
var hints = map[kind]string{
	kindAway:        "check that the endpoint is right and can be reached from here; the server continues automatically when it answers",
	kindBusy:        "the server continues automatically",
	kindTLS:         "name the authority that signed its certificate in datastore.blobs.caFile, and check that the endpoint begins with https:// only if it speaks TLS",
	kindCredentials: "check the credentials in datastore.blobs or in the server's environment: are they of this store, complete, and not expired?",
	kindDenied:      "give the credentials the right to write, read, list and delete objects in this bucket: docs/stores.md lists them",
	kindNoBucket:    "create the bucket, or correct its name in datastore.blobs.url: the server creates none",
	kindRegion:      "write the region of the bucket into datastore.blobs.url: ?region=...",
}

// Error says what could not be done with an object or its bucket, and why. It has nothing
// secret in it.
type Error struct {
	verb, object string
	kind         kind
	why          string
	hint         string
	cause        error // of the context or the system, to be found by errors.Is; nil if it was neither
}

func (e *Error) Error() string { return e.verb + " " + e.object + ": " + e.why }

// Hint says what to do.
func (e *Error) Hint() string { return e.hint }

// Unwrap returns what callers tell apart.
func (e *Error) Unwrap() []error {
	var all []error
	switch e.kind {
	case kindMissing:
		all = append(all, holdfast.ErrNotFound)
	case kindExists:
		all = append(all, errExists)
	default:
		all = append(all, holdfast.ErrUnavailable)
	}
	if e.cause != nil {
		all = append(all, e.cause)
	}
	return all
}

// explained returns err as an Error about an object. An error of a file stays what it is,
// except for a file that is not there.
func (b *Bucket) explained(verb, key string, err error) error {
	if err == nil {
		return nil
	}
	object := b.name + "/" + key
	if b.files != nil {
		if gcerrors.Code(err) == gcerrors.NotFound {
			return &Error{verb: verb, object: object, kind: kindMissing, why: "there is no such object"}
		}
		return fmt.Errorf("%s %s: %w", verb, object, err)
	}
	return b.failure(verb, object, err)
}

// failure says why something could not be done in a store that is not a folder.
func (b *Bucket) failure(verb, object string, err error) *Error {
	failure := &Error{verb: verb, object: object}
	failure.kind, failure.why, failure.cause = ofTransport(err)
	if b.cloud.explain != nil { // otherwise the store was not opened yet
		if said, ok := b.cloud.explain(err); ok {
			failure.kind, failure.why, failure.cause = said.kind(), said.String(), nil
		}
	}
	if gcerrors.Code(err) == gcerrors.FailedPrecondition {
		failure.kind = kindExists
	}
	if failure.kind == kindMissing && (verb == "write" || verb == "list") {
		failure.kind = kindNoBucket // what else could it lack
	}
	if failure.kind == kindMissing {
		failure.why = "there is no such object"
	}
	if failure.hint = b.cloud.hints[failure.kind]; failure.hint == "" {
		failure.hint = hints[failure.kind]
	}
	return failure
}

// answer is a store's answer to a request.
type answer struct {
	status  int
	code    string // a word of the store's
	message string
}

func (a answer) String() string {
	text := fmt.Sprintf("%d %s", a.status, http.StatusText(a.status))
	if a.code != "" && !strings.EqualFold(a.code, strings.ReplaceAll(http.StatusText(a.status), " ", "")) {
		text += " " + a.code
	}
	if message, _, _ := strings.Cut(strings.TrimSpace(a.message), "\n"); message != "" {
		text += ": " + strings.TrimSuffix(strings.TrimSpace(message), ".")
	}
	return text
}

// codes are what stores mean by their words.
var codes = map[string]kind{
	"NoSuchBucket": kindNoBucket, "ContainerNotFound": kindNoBucket, "ContainerBeingDeleted": kindNoBucket, "InvalidBucketName": kindNoBucket,
	"InvalidAccessKeyId": kindCredentials, "SignatureDoesNotMatch": kindCredentials, "ExpiredToken": kindCredentials, "InvalidToken": kindCredentials,
	"ExpiredTokenException": kindCredentials, "AuthenticationFailed": kindCredentials, "InvalidAuthenticationInfo": kindCredentials,
	"RequestTimeTooSkewed": kindCredentials, "NoAuthenticationInformation": kindCredentials,
	"AccessDenied": kindDenied, "AllAccessDisabled": kindDenied, "AuthorizationFailure": kindDenied,
	"AuthorizationPermissionMismatch": kindDenied, "InsufficientAccountPermissions": kindDenied, "AuthorizationSourceIPMismatch": kindDenied,
	"PermanentRedirect": kindRegion, "AuthorizationHeaderMalformed": kindRegion, "IllegalLocationConstraintException": kindRegion,
	"NoSuchKey": kindMissing, "BlobNotFound": kindMissing,
	"SlowDown": kindBusy, "TooManyRequests": kindBusy, "RequestLimitExceeded": kindBusy, "ServerBusy": kindBusy,
	"RequestTimeout": kindAway, "InternalError": kindAway, "ServiceUnavailable": kindAway, "OperationTimedOut": kindAway,
}

func (a answer) kind() kind {
	if k, ok := codes[a.code]; ok {
		return k
	}
	switch {
	case a.status == http.StatusUnauthorized:
		return kindCredentials
	case a.status == http.StatusForbidden:
		return kindDenied
	case a.status == http.StatusNotFound:
		return kindMissing
	case a.status == http.StatusPreconditionFailed:
		return kindExists
	case a.status == http.StatusMovedPermanently, a.status == http.StatusTemporaryRedirect:
		return kindRegion
	case a.status == http.StatusTooManyRequests:
		return kindBusy
	case a.status >= 500, a.status == http.StatusRequestTimeout:
		return kindAway
	default:
		return kindOther
	}
}

// credentialsError says that no credentials were found.
type credentialsError struct{ err error }

func (e *credentialsError) Error() string { return "find credentials: " + e.err.Error() }
func (e *credentialsError) Unwrap() error { return e.err }

// ofTransport says why a request got no answer.
func ofTransport(err error) (kind, string, error) {
	var credentials *credentialsError
	switch why := plain(err); {
	case isTLS(err):
		return kindTLS, why.Error(), nil
	case errors.As(err, &credentials):
		return kindCredentials, plain(credentials).Error(), nil
	case errors.Is(err, context.Canceled):
		return kindAway, "canceled", context.Canceled
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return kindAway, "no answer in time", nil
	default:
		return kindAway, why.Error(), systemCause(err)
	}
}

// plain is the innermost part of what a client of HTTP says: without the address, whose
// query may be a signature.
func plain(err error) error {
	var request *url.Error
	for errors.As(err, &request) {
		err = request.Err
	}
	return err
}

func isTLS(err error) bool {
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &verification) || errors.As(err, &record) || errors.As(err, &alert) ||
		errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid) ||
		strings.Contains(err.Error(), "server gave HTTP response to HTTPS client")
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
