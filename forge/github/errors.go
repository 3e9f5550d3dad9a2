package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/go-github/v62/github"

	"github.com/holdfast-dev/holdfast"
)

// finalError is an error that no retry would fix. It is a holdfast.ErrRejected.
type finalError string

func (e finalError) Error() string { return string(e) }

func (e finalError) Is(target error) bool { return target == holdfast.ErrRejected }

// laterError is a write that GitHub refuses for a cause that somebody may remove, and that
// is tried again later: not a rate limit, but waited for like one.
type laterError struct{ limit holdfast.RateLimitError }

func later(now, until time.Time, cause error) error {
	return &laterError{holdfast.RateLimitError{RetryAt: until, Wait: until.Sub(now), Err: cause}}
}

func (e *laterError) Error() string {
	return fmt.Sprintf("%v; tried again at %s", e.limit.Err, e.limit.RetryAt.UTC().Format(time.RFC3339))
}

// Unwrap makes it one that says when to try again.
func (e *laterError) Unwrap() error { return &e.limit }

// translate turns an error of a call into one of Holdfast's: one of the errors of the
// root package, or an error that is final for that call. What was translated stays what
// it is.
func translate(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// The method and the URL add nothing that the caller does not know.
	if transport := (*url.Error)(nil); errors.As(err, &transport) {
		err = transport.Err
	}
	for _, known := range []error{
		holdfast.ErrNotFound, holdfast.ErrUnauthorized, holdfast.ErrForbidden, holdfast.ErrUnavailable, holdfast.ErrConflict,
		holdfast.ErrRejected,
	} {
		if errors.Is(err, known) {
			return err
		}
	}
	var answer *github.ErrorResponse
	var secondFactor *github.TwoFactorAuthError
	var syntax *json.SyntaxError
	var shape *json.UnmarshalTypeError
	switch {
	case errors.As(err, &answer):
		return translateAnswer(answer)
	case errors.As(err, &secondFactor):
		return fmt.Errorf("GitHub wants a second factor: %w", holdfast.ErrUnauthorized)
	case timedOut(err):
		return fmt.Errorf("no answer within %s: %w", callTimeout, holdfast.ErrUnavailable)
	case errors.As(err, &syntax), errors.As(err, &shape), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: the answer is not what GitHub documents: %w", holdfast.ErrUnavailable, err)
	default:
		return fmt.Errorf("%w: %w", holdfast.ErrUnavailable, err)
	}
}

// acceptedPermissions is the header in which GitHub says what a call needs.
const acceptedPermissions = "X-Accepted-GitHub-Permissions"

func translateAnswer(answer *github.ErrorResponse) error {
	status := answer.Response.StatusCode
	text := fmt.Sprintf("GitHub answered %d: %s", status, words(answer))
	switch {
	case status == http.StatusUnauthorized:
		return fmt.Errorf("%s: %w", text, holdfast.ErrUnauthorized)
	case status == http.StatusForbidden && answer.Response.Header.Get(acceptedPermissions) != "":
		return fmt.Errorf("%s (needs the permission %s): %w", text, clip(answer.Response.Header.Get(acceptedPermissions), 200), holdfast.ErrForbidden)
	case status == http.StatusForbidden, status == http.StatusUnavailableForLegalReasons:
		return fmt.Errorf("%s: %w", text, holdfast.ErrForbidden)
	case status == http.StatusNotFound, status == http.StatusGone:
		return fmt.Errorf("%s: %w", text, holdfast.ErrNotFound)
	case status >= 500, status == http.StatusRequestTimeout, status == http.StatusConflict, status < http.StatusBadRequest:
		return fmt.Errorf("%s: %w", text, holdfast.ErrUnavailable)
	default:
		return fmt.Errorf("%s: %w", text, holdfast.ErrRejected)
	}
}

// words returns GitHub's message with the details that it gives.
func words(answer *github.ErrorResponse) string {
	parts := []string{answer.Message}
	if answer.Message == "" {
		parts[0] = http.StatusText(answer.Response.StatusCode)
	}
	for _, detail := range answer.Errors {
		if detail.Message != "" {
			parts = append(parts, detail.Message)
		} else if detail.Field != "" {
			parts = append(parts, fmt.Sprintf("%s %s: %s", detail.Resource, detail.Field, detail.Code))
		}
	}
	return clip(strings.Join(parts, ": "), 500)
}

// clip shortens s to at most n characters and ends it with an ellipsis then.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
