package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/outgoing"
)

// Type is what a channel is.
type Type string

// The types.
const (
	Slack   Type = "slack"   // an incoming webhook of Slack, or of what understands its messages
	Teams   Type = "teams"   // a workflow of Microsoft Teams that posts cards
	Webhook Type = "webhook" // JSON of our own
)

// Types are all types.
func Types() []Type { return []Type{Slack, Teams, Webhook} }

// Options are what a Channel needs.
type Options struct {
	Type Type
	// URL returns the address. It is a secret, and is asked for with each request.
	URL func() (string, error)
	// SigningKey returns the key by which requests of type Webhook are signed; nil: they are not.
	SigningKey func() (string, error)
	Template   string // see Template; empty: the usual words
}

// Channel is where notifications are sent. It is safe for concurrent use.
type Channel struct {
	opts   Options
	words  *words
	client *http.Client
}

const (
	timeout     = 10 * time.Second // of a request, from its begin to the end of the answer
	answerLimit = 4 << 10          // bytes of an answer that are read
)

// New returns a Channel. Its template is executed once, with an example.
func New(opts Options) (*Channel, error) {
	w, err := newWords(opts.Type, opts.Template)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one
	return &Channel{opts: opts, words: w, client: &http.Client{
		Timeout: timeout, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Send sends notifications, all as one message where the type has such messages, and
// returns how many were sent, from the first on. The error is a *holdfast.RateLimitError if
// the host says when to come again, an ErrRejected if it does not want such a request, and
// otherwise an ErrUnavailable.
func (c *Channel) Send(ctx context.Context, notifications []outgoing.Notification) (sent int, err error) {
	bodies, err := c.words.bodies(notifications)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", holdfast.ErrRejected, err)
	}
	for i, body := range bodies {
		if err := c.send(ctx, body); err != nil {
			return i, err // with several bodies each has one notification
		}
	}
	return len(notifications), nil
}

// body is one request.
type body struct {
	id   string // of the notification, or of the first of several
	json []byte
}

func (c *Channel) send(ctx context.Context, b body) error {
	address, err := c.opts.URL()
	if err != nil {
		return fmt.Errorf("%w: the address cannot be read: %w", holdfast.ErrUnavailable, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(b.json))
	if err != nil || req.URL.Host == "" || req.URL.Scheme != "https" && req.URL.Scheme != "http" {
		return holdfast.ErrorOf(holdfast.ErrRejected, "the address is not an http or https URL")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "holdfast")
	if c.opts.Type == Webhook {
		req.Header.Set("Holdfast-Notification", b.id)
		if err := c.sign(req, b.json); err != nil {
			return err
		}
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return fmt.Errorf("%w: %w", holdfast.ErrUnavailable, withoutAddress(err))
	}
	defer func() { _ = resp.Body.Close() }()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	return verdict(resp, heard(answer, address))
}

// SignatureHeader has the HMAC-SHA256 of the body, as sha256=HEX.
const SignatureHeader = "Holdfast-Signature"

func (c *Channel) sign(req *http.Request, body []byte) error {
	if c.opts.SigningKey == nil {
		return nil
	}
	key, err := c.opts.SigningKey()
	if err != nil {
		return fmt.Errorf("%w: the signing key cannot be read: %w", holdfast.ErrUnavailable, err)
	}
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write(body)
	req.Header.Set(SignatureHeader, "sha256="+hex.EncodeToString(mac.Sum(nil)))
	return nil
}

// withoutAddress is why a request has got no answer, without where it went.
func withoutAddress(err error) error {
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return errors.New("the request failed")
}

// shortestSecret is how many bytes a part of an address has at least that may be a secret.
const shortestSecret = 6

// heard is what an answer says, in a few words of one line, without the address.
func heard(answer []byte, address string) string {
	text := strings.ReplaceAll(string(answer), address, "URL")
	if u, err := url.Parse(address); err == nil {
		password, _ := u.User.Password()
		parts := []string{u.EscapedPath(), u.Path, u.RawQuery, password}
		parts = append(parts, strings.Split(u.Path, "/")...) // hosts name the part that they do not know
		for _, values := range u.Query() {
			parts = append(parts, values...) // where Teams has its signature
		}
		for _, part := range parts {
			if len(part) >= shortestSecret {
				text = strings.ReplaceAll(text, part, "…")
			}
		}
	}
	return shorten(oneLine(text), 200)
}

// verdict is what an answer means.
func verdict(resp *http.Response, answer string) error {
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return nil
	}
	words := "it answered " + strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode)
	if answer != "" {
		words += ": " + answer
	}
	switch code := resp.StatusCode; {
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		err := holdfast.ErrorOf(holdfast.ErrUnavailable, "%s", words)
		if seconds, bad := strconv.Atoi(resp.Header.Get("Retry-After")); bad == nil && seconds >= 0 {
			wait := min(time.Duration(min(seconds, 3600))*time.Second, time.Hour)
			return &holdfast.RateLimitError{Wait: wait, RetryAt: time.Now().Add(wait), Err: err}
		}
		return err
	case code >= 500, code == http.StatusRequestTimeout, code == http.StatusTooEarly:
		return holdfast.ErrorOf(holdfast.ErrUnavailable, "%s", words)
	default:
		return holdfast.ErrorOf(holdfast.ErrRejected, "%s", words)
	}
}
