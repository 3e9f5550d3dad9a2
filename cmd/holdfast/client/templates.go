package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/server"
)

// Templates returns the templates that clusters use, by name.
func (c *Client) Templates(ctx context.Context) ([]holdfast.TemplateStatus, error) {
	return items[holdfast.TemplateStatus](ctx, c, "templates", nil)
}

// Template returns one of them; ErrNotFound if nothing uses it.
func (c *Client) Template(ctx context.Context, name string) (status holdfast.TemplateStatus, err error) {
	err = c.call(ctx, http.MethodGet, "templates/"+url.PathEscape(name), nil, nil, &status)
	return status, err
}

// Upgrade asks for proposals of upgrades now, and returns them.
func (c *Client) Upgrade(ctx context.Context, req holdfast.UpgradeRequest) ([]holdfast.Upgrade, error) {
	var list server.List[holdfast.Upgrade]
	err := c.call(ctx, http.MethodPost, "upgrades", nil, req, &list)
	return list.Items, err
}
