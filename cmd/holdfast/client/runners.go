package client

import (
	"context"
	"net/http"
	"net/url"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// Runners are the calls that are about runners and environments.
type Runners struct{ c *Client }

// RunnersOf returns the calls of a client that are about runners and environments.
func RunnersOf(c *Client) Runners { return Runners{c} }

// List returns the runners, the local one first.
func (r Runners) List(ctx context.Context) ([]v1.Runner, error) {
	return whole[v1.Runner](ctx, r.c, "runners", nil)
}

// Get returns a runner, with its rules, environments and agents.
func (r Runners) Get(ctx context.Context, name string) (runner v1.RunnerDetail, err error) {
	err = r.c.call(ctx, http.MethodGet, "runners/"+url.PathEscape(name), nil, nil, &runner)
	return runner, err
}

// Environments returns the environments that have run. The query is that of GET /environments.
func (r Runners) Environments(ctx context.Context, query url.Values) ([]v1.Environment, error) {
	return whole[v1.Environment](ctx, r.c, "environments", query)
}

// Refresh pins an environment to the runner that the rules say now.
func (r Runners) Refresh(ctx context.Context, req v1.RefreshRequest) (refresh v1.Refresh, err error) {
	err = r.c.call(ctx, http.MethodPost, "environments/refresh", nil, req, &refresh)
	return refresh, err
}

// Propose makes a pull request that changes the document of a runner.
func (r Runners) Propose(ctx context.Context, req v1.RunnerProposal) (made v1.ProposedRunner, err error) {
	err = r.c.call(ctx, http.MethodPost, "runners", nil, req, &made)
	return made, err
}
