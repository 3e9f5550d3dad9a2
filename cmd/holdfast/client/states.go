package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// UnsavedState opens the state that a run of a cluster could not save, for the
// caller to close; ErrNotFound if there is none.
func (c *Client) UnsavedState(ctx context.Context, cluster string) (io.ReadCloser, error) {
	res, err := c.send(ctx, http.MethodGet, "states/"+url.PathEscape(cluster)+"/file", nil, nil)
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// UnsavedStateInfo returns what is known of that state, without what is in it.
func (c *Client) UnsavedStateInfo(ctx context.Context, cluster string) (u v1.UnsavedState, err error) {
	err = c.call(ctx, http.MethodGet, "states/"+url.PathEscape(cluster), nil, nil, &u)
	return u, err
}

// PushState queues the push of the state that could not be saved, or of data, JSON,
// in its place.
func (c *Client) PushState(ctx context.Context, cluster string, data []byte) (run v1.Run, err error) {
	var body any
	if data != nil {
		body = json.RawMessage(data)
	}
	err = c.call(ctx, http.MethodPost, "states/"+url.PathEscape(cluster)+"/push", nil, body, &run)
	return run, err
}

// WaiveState gives up the state that could not be saved, and returns it.
func (c *Client) WaiveState(ctx context.Context, cluster, reason string) (u v1.UnsavedState, err error) {
	err = c.call(ctx, http.MethodPost, "states/"+url.PathEscape(cluster)+"/waive", nil, v1.WaiveRequest{Reason: reason}, &u)
	return u, err
}

// BackendLock returns the lock of a cluster's own backend that a run found last.
func (c *Client) BackendLock(ctx context.Context, cluster string) (lock v1.BackendLock, err error) {
	err = c.call(ctx, http.MethodGet, "states/"+url.PathEscape(cluster)+"/lock", nil, nil, &lock)
	return lock, err
}

// UnlockBackend queues the run that releases it.
func (c *Client) UnlockBackend(ctx context.Context, cluster string, req v1.UnlockRequest) (run v1.Run, err error) {
	err = c.call(ctx, http.MethodPost, "states/"+url.PathEscape(cluster)+"/unlock", nil, req, &run)
	return run, err
}

// MigrateState queues the run that moves a cluster's state to where it is to be, or says what
// it would do.
func MigrateState(ctx context.Context, c *Client, cluster string, req v1.MigrateStateRequest) (m v1.StateMigration, err error) {
	err = c.call(ctx, http.MethodPost, "states/"+url.PathEscape(cluster)+"/migrate", nil, req, &m)
	return m, err
}
