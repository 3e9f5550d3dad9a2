package client

import (
	"context"
	"net/http"
	"net/url"

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
