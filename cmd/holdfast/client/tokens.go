package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// Tokens are the calls that are about personal tokens.
type Tokens struct{ c *Client }

// TokensOf returns the calls of a client that are about personal tokens.
func TokensOf(c *Client) Tokens { return Tokens{c} }

// List returns the caller's tokens; with all, everybody's.
func (t Tokens) List(ctx context.Context, all bool) ([]v1.Token, error) {
	return whole[v1.Token](ctx, t.c, "tokens", allOf(all))
}

// Create makes a token.
func (t Tokens) Create(ctx context.Context, req v1.TokenRequest) (made v1.NewToken, err error) {
	err = t.c.call(ctx, http.MethodPost, "tokens", nil, req, &made)
	return made, err
}

// Delete deletes a token of the caller; with all, anybody's.
func (t Tokens) Delete(ctx context.Context, id string, all bool) error {
	var nothing struct{}
	return t.c.call(ctx, http.MethodDelete, "tokens/"+url.PathEscape(id), allOf(all), nil, &nothing)
}

func allOf(all bool) url.Values {
	if all {
		return url.Values{"all": {"true"}}
	}
	return nil
}

// Once is the way into the console, good once.
type Once struct {
	URL   string    `json:"url"`
	Until time.Time `json:"until"`
}

// OnceOf asks for a code that begins a session in a browser, for whoever shows a token of
// the configuration.
func OnceOf(ctx context.Context, c *Client) (Once, error) {
	var made v1.OnceLogin
	if err := c.call(ctx, http.MethodPost, "sessions/once", nil, struct{}{}, &made); err != nil {
		return Once{}, err
	}
	address, err := c.base.Parse(made.Path)
	if err != nil {
		return Once{}, fmt.Errorf("read the address of the login: %w", err)
	}
	return Once{URL: address.String(), Until: made.Until}, nil
}
