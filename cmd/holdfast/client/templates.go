package client

import (
	"context"
	"net/http"
	"net/url"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// Templates returns the templates that clusters use, by name.
func (c *Client) Templates(ctx context.Context) ([]v1.Template, error) {
	return whole[v1.Template](ctx, c, "templates", nil)
}

// Template returns one of them; ErrNotFound if nothing uses it.
func (c *Client) Template(ctx context.Context, name string) (status v1.Template, err error) {
	err = c.call(ctx, http.MethodGet, "templates/"+url.PathEscape(name), nil, nil, &status)
	return status, err
}

// Upgrade asks for proposals of upgrades now, and returns them.
func (c *Client) Upgrade(ctx context.Context, req v1.UpgradeRequest) ([]v1.Upgrade, error) {
	var list v1.List[v1.Upgrade]
	err := c.call(ctx, http.MethodPost, "upgrades", nil, req, &list)
	return list.Items, err
}
