package login

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
)

// Provider is an identity provider, as it knows this server.
type Provider struct {
	Name        string // on the login page
	Issuer      string
	ClientID    string
	Secret      func() (string, error) // nil: a public client, which proves itself by PKCE alone
	Redirect    string                 // our callback, as people reach it
	Scopes      []string               // besides openid
	NameClaim   string                 // by which people are called
	GroupsClaim string                 // whose value is a list of groups
	Client      *http.Client           // nil: one with a timeout of 10 s
}

const (
	// patience is for one answer of the provider.
	patience = 10 * time.Second
	// skew is how far the provider's clock may be ahead or behind.
	skew = 2 * time.Minute
	// maxAnswer bounds what the provider answers with, in bytes.
	maxAnswer = 1 << 20
	// retryAfter is how long a provider that could not be reached is not asked again.
	retryAfter = 2 * time.Second
)

// provider remembers what the provider says of itself, once it has said it.
type provider struct {
	Provider
	client *http.Client
	now    func() time.Time

	asking singleflight.Group // for discovery: one request at a time

	mu       sync.Mutex // guards the fields below, and is held over no call
	found    *oidc.Provider
	trouble  error     // of the last try
	failedAt time.Time // by the process's clock
}

func newProvider(p Provider, now func() time.Time) (*provider, error) {
	for _, need := range []struct{ what, is string }{{"issuer", p.Issuer}, {"client ID", p.ClientID}, {"redirect", p.Redirect}} {
		if need.is == "" {
			return nil, errors.New("provider has no " + need.what)
		}
	}
	client := p.Client
	if client == nil {
		client = &http.Client{Timeout: patience}
	}
	bounded := *client
	bounded.Transport = boundedTransport{client.Transport}
	return &provider{Provider: p, client: &bounded, now: now}, nil
}

// boundedTransport cuts answers off that are far too large.
type boundedTransport struct{ next http.RoundTripper }

func (b boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	next := b.next
	if next == nil {
		next = http.DefaultTransport
	}
	res, err := next.RoundTrip(r)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxAnswer), res.Body}
	}
	return res, err
}

// with returns a context by which the libraries use our client.
func (p *provider) with(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, p.client)
}

// discovered returns what the provider says of itself. An ErrUnavailable if it cannot be
// reached: requests wait for one that asks, and after a failure nobody asks for a moment.
func (p *provider) discovered(ctx context.Context) (*oidc.Provider, error) {
	if found, trouble := p.known(); found != nil || trouble != nil {
		return found, trouble
	}
	answer := p.asking.DoChan("", func() (any, error) {
		// It is for all who wait: none of them ends it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		found, err := oidc.NewProvider(p.with(ctx), p.Issuer)
		return found, p.learn(found, err)
	})
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case a := <-answer:
		found, _ := a.Val.(*oidc.Provider)
		return found, a.Err
	}
}

// known is what the provider has said, or why it could not be asked a moment ago.
func (p *provider) known() (*oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found == nil && time.Since(p.failedAt) < retryAfter {
		return nil, p.trouble
	}
	return p.found, nil
}

// learn remembers an answer, or why there was none.
func (p *provider) learn(found *oidc.Provider, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.trouble, p.failedAt = holdfast.ErrorOf(holdfast.ErrUnavailable, "identity provider %s: %v", p.Issuer, err), time.Now()
		return p.trouble
	}
	p.found, p.trouble = found, nil
	return nil
}

// config is the exchange with the provider.
func (p *provider) config(ctx context.Context) (*oauth2.Config, *oidc.Provider, error) {
	found, err := p.discovered(ctx)
	if err != nil {
		return nil, nil, err
	}
	config := &oauth2.Config{
		ClientID: p.ClientID, Endpoint: found.Endpoint(), RedirectURL: p.Redirect, Scopes: append([]string{oidc.ScopeOpenID}, p.Scopes...),
	}
	if p.Secret != nil {
		if config.ClientSecret, err = p.Secret(); err != nil {
			return nil, nil, fmt.Errorf("read secret of the identity provider's client: %w", err)
		}
	}
	return config, found, nil
}

// start returns where a browser goes to log in.
func (p *provider) start(ctx context.Context, a attempt) (string, error) {
	config, _, err := p.config(ctx)
	if err != nil {
		return "", err
	}
	return config.AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)), nil
}

// claims are what the provider says of somebody.
type claims map[string]any

func (c claims) text(name string) string {
	text, _ := c[name].(string)
	return text
}

// list is a claim with one text or several; known reports that there is one at all.
func (c claims) list(name string) (list []string, known bool) {
	switch value := c[name].(type) {
	case string:
		return []string{value}, true
	case []any:
		for _, item := range value {
			if text, ok := item.(string); ok {
				list = append(list, text)
			}
		}
		return list, true
	default:
		return nil, false
	}
}

// finish exchanges the code for what the provider says of the person who has logged in. A
// refusal is an ErrForbidden; a provider that cannot be reached is an ErrUnavailable.
func (p *provider) finish(ctx context.Context, a attempt, code string) (claims, error) {
	config, found, err := p.config(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(p.with(ctx), patience)
	defer cancel()
	token, err := config.Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return nil, exchangeError(err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return nil, holdfast.ErrorOf(holdfast.ErrForbidden, "the identity provider sent no ID token")
	}
	verifier := found.VerifierContext(ctx, &oidc.Config{
		ClientID: p.ClientID, Now: func() time.Time { return p.now().Add(-skew) }, // when it expires; the library has more patience with when it begins
	})
	verified, err := verifier.Verify(ctx, raw)
	if err != nil {
		return nil, verifyError(err)
	}
	if verified.Nonce != a.Nonce {
		return nil, holdfast.ErrorOf(holdfast.ErrForbidden, "the ID token belongs to another login")
	}
	said := make(claims)
	if err := verified.Claims(&said); err != nil {
		return nil, fmt.Errorf("read claims: %w", err)
	}
	if verified.Subject == "" {
		return nil, holdfast.ErrorOf(holdfast.ErrForbidden, "the ID token has no subject")
	}
	return said, p.addInfo(ctx, found, token, verified.Subject, said)
}

// addInfo adds what only the provider's userinfo says, if something is missing.
func (p *provider) addInfo(ctx context.Context, found *oidc.Provider, token *oauth2.Token, subject string, said claims) error {
	_, groups := said.list(p.GroupsClaim)
	if groups && said.text(p.NameClaim) != "" || found.UserInfoEndpoint() == "" {
		return nil
	}
	info, err := found.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return holdfast.ErrorOf(holdfast.ErrUnavailable, "userinfo of the identity provider: %v", err)
	}
	if info.Subject != subject {
		return holdfast.ErrorOf(holdfast.ErrForbidden, "the identity provider's userinfo is about another subject")
	}
	more := make(claims)
	if err := info.Claims(&more); err != nil {
		return fmt.Errorf("read claims of userinfo: %w", err)
	}
	for name, value := range more {
		if _, ok := said[name]; !ok {
			said[name] = value
		}
	}
	return nil
}

// exchangeError tells a refusal from a provider that is unavailable. What the provider has
// written is not repeated, except for its code of the error.
func exchangeError(err error) error {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && refused.Response != nil && refused.Response.StatusCode < http.StatusInternalServerError {
		return holdfast.ErrorOf(holdfast.ErrForbidden, "the identity provider refuses the login: %.60q", refused.ErrorCode)
	}
	return awayError(err)
}

// verifyError tells a token that is not good from keys that could not be fetched.
func verifyError(err error) error {
	var expired *oidc.TokenExpiredError
	var network *url.Error
	switch {
	case errors.As(err, &expired):
		return holdfast.ErrorOf(holdfast.ErrForbidden, "the ID token has expired: the clocks of this server and of the identity provider may differ")
	case errors.As(err, &network), errors.Is(err, context.DeadlineExceeded):
		return awayError(err)
	default:
		return holdfast.ErrorOf(holdfast.ErrForbidden, "the ID token is not valid: %v", err)
	}
}

func awayError(err error) error {
	var network *url.Error
	if errors.As(err, &network) {
		err = network.Err // without the address, which can have secrets in it
	}
	return holdfast.ErrorOf(holdfast.ErrUnavailable, "the identity provider cannot be reached: %v", err)
}

// person is who has logged in.
func (d *Desk) person(said claims) access.Person {
	name := said.text(d.provider.NameClaim)
	if verified, ok := said["email_verified"].(bool); d.provider.NameClaim == "email" && ok && !verified {
		name = "" // anybody can say it
	}
	groups, _ := said.list(d.provider.GroupsClaim)
	groups = slices.Compact(slices.Sorted(slices.Values(groups)))
	subject := said.text("sub")
	return access.Person{
		ID: access.PersonID{Issuer: d.provider.Issuer, Subject: subject}, Name: d.actor(name, subject), Groups: groups, SeenAt: d.opts.Now().UTC(),
	}
}
