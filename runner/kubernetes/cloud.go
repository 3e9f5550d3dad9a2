package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/holdfast-dev/holdfast/protocol"
)

// Cloud has API servers, and says where one is and how to be known there. Its errors are a
// *protocol.LaunchError, as far as it is known what to do about them.
type Cloud interface {
	// Endpoint asks where the API server is now: an https address, and the authority of its
	// certificate, PEM; none means the system's.
	Endpoint(ctx context.Context) (address string, ca []byte, err error)
	// Token returns a bearer token, and until when it is to be used. It is another one than
	// refused, which the API server did not accept; empty: there is none.
	Token(ctx context.Context, refused string) (token string, until time.Time, err error)
}

// CloudServer is an API server that a cloud runs.
type CloudServer struct {
	Cloud    Cloud
	ProxyURL string
}

// placeholder stands for the address of an API server until it is known.
const placeholder = "https://api-server"

func (s CloudServer) config() (*rest.Config, error) {
	var proxied rest.Config
	if err := withProxy(&proxied, s.ProxyURL); err != nil {
		return nil, err
	}
	return &rest.Config{Host: placeholder, Transport: newRoute(s.Cloud, proxied.Proxy)}, nil
}

const (
	// failureKept is how long a failed question at the cloud is not asked again.
	failureKept = 3 * time.Second
	// endpointKept is how long an API server that cannot be reached is looked for where it
	// was: another cluster may have got its name.
	endpointKept = 30 * time.Second
	// freshToken is the age below which a token that was refused is not replaced.
	freshToken = 10 * time.Second
)

// route is the way to the API server of a cloud: it finds the server and a token when they
// are needed, and again when they are no longer good. It is safe for concurrent use.
type route struct {
	cloud Cloud
	proxy func(*http.Request) (*url.URL, error)

	turn  chan struct{} // holds a value while nobody asks the cloud
	known known         // of whoever has the turn
}

// known is what the cloud has said.
type known struct {
	way   *way // nil: not yet, or no longer
	token string
	made  time.Time
	until time.Time
	// refused is a token that is no longer good, although it should be.
	refused string

	failed time.Time // when it was last asked in vain
	err    error
}

// way leads to an API server.
type way struct {
	url       *url.URL
	transport http.RoundTripper
	found     time.Time
}

func newRoute(cloud Cloud, proxy func(*http.Request) (*url.URL, error)) *route {
	r := &route{cloud: cloud, proxy: proxy, turn: make(chan struct{}, 1)}
	r.turn <- struct{}{}
	return r
}

// take waits for the turn to ask the cloud.
func (r *route) take(ctx context.Context) error {
	select {
	case <-r.turn:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *route) give() { r.turn <- struct{}{} }

// ask returns what is known, and asks the cloud for what is not.
func (r *route) ask(ctx context.Context) (known, error) {
	if err := r.take(ctx); err != nil {
		return known{}, err
	}
	defer r.give()
	k := &r.known
	if k.err != nil && time.Since(k.failed) < failureKept {
		return known{}, k.err
	}
	k.err = r.complete(ctx, k)
	if k.err != nil {
		if ctx.Err() != nil { // whoever asked has gone: it says nothing of the cloud
			err := k.err
			k.err = nil
			return known{}, err
		}
		k.failed = time.Now()
		return known{}, k.err
	}
	return *k, nil
}

func (r *route) complete(ctx context.Context, k *known) error {
	if k.way == nil {
		address, ca, err := r.cloud.Endpoint(ctx)
		if err != nil {
			return err
		}
		if k.way, err = r.wayTo(address, ca); err != nil {
			return err
		}
	}
	if k.token == "" || !time.Now().Before(k.until) {
		token, until, err := r.cloud.Token(ctx, k.refused)
		if err != nil {
			return err
		}
		k.token, k.until, k.made, k.refused = token, until, time.Now(), ""
	}
	return nil
}

func (r *route) wayTo(address string, ca []byte) (*way, error) {
	at, err := url.Parse(address)
	if err != nil || at.Scheme != "https" || at.Host == "" {
		return nil, fmt.Errorf("the cloud says that the API server is at %q, which is not an https address", address)
	}
	transport, err := rest.TransportFor(&rest.Config{Host: address, TLSClientConfig: rest.TLSClientConfig{CAData: ca}, Proxy: r.proxy})
	if err != nil {
		return nil, fmt.Errorf("reach the API server at %s: %w", address, err)
	}
	return &way{url: at, transport: transport, found: time.Now()}, nil
}

// RoundTrip sends a request to where the API server is. A token that is refused although it
// should be good is replaced once: it may have been revoked.
func (r *route) RoundTrip(req *http.Request) (*http.Response, error) {
	k, err := r.ask(req.Context())
	if err != nil {
		closeBody(req)
		return nil, err
	}
	answer, err := k.send(req)
	if err != nil {
		r.lost(req.Context(), k.way)
		return nil, fmt.Errorf("%s: %w", k.way.url.Host, err)
	}
	if answer.StatusCode != http.StatusUnauthorized || time.Since(k.made) < freshToken {
		return answer, nil
	}
	again, ok := repeated(req)
	if !ok {
		return answer, nil
	}
	r.refused(req.Context(), k.token)
	if k, err = r.ask(req.Context()); err != nil {
		return answer, nil //nolint:nilerr // the API server's own answer says more
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10))
	_ = answer.Body.Close()
	return k.send(again)
}

// send sends a copy of the request, with the token.
func (k known) send(req *http.Request) (*http.Response, error) {
	sent := req.Clone(req.Context())
	sent.URL.Scheme, sent.URL.Host, sent.Host = k.way.url.Scheme, k.way.url.Host, ""
	if path := strings.TrimSuffix(k.way.url.Path, "/"); path != "" {
		sent.URL.Path = path + sent.URL.Path
	}
	sent.Header.Set("Authorization", "Bearer "+k.token)
	return k.way.transport.RoundTrip(sent)
}

// repeated is the request once more; false if its body cannot be had again.
func repeated(req *http.Request) (*http.Request, bool) {
	again := req.Clone(req.Context())
	switch {
	case req.Body == nil || req.Body == http.NoBody:
		return again, true
	case req.GetBody == nil:
		return nil, false
	}
	body, err := req.GetBody()
	again.Body = body
	return again, err == nil
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// lost has the API server looked for again, unless that was done just now.
func (r *route) lost(ctx context.Context, was *way) {
	if ctx.Err() != nil || r.take(ctx) != nil {
		return
	}
	defer r.give()
	if r.known.way == was && time.Since(was.found) > endpointKept {
		r.known.way = nil
	}
}

// refused has a new token made.
func (r *route) refused(ctx context.Context, token string) {
	if r.take(ctx) != nil {
		return
	}
	defer r.give()
	if r.known.token == token {
		r.known.token, r.known.refused = "", token
	}
}

// refusedByCloud returns why a cloud did not say what it was asked for; nil if it did.
func refusedByCloud(err error) *protocol.LaunchError {
	var refused *protocol.LaunchError
	if errors.As(err, &refused) {
		return refused
	}
	return nil
}
