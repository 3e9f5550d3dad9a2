package client

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/server"
)

// items returns what a list has.
func items[T any](ctx context.Context, c *Client, path string, query url.Values) ([]T, error) {
	var list server.List[T]
	err := c.call(ctx, http.MethodGet, path, query, nil, &list)
	return list.Items, err
}

// clusterPath is the path of something of a cluster.
func clusterPath(cluster, of string) string { return "clusters/" + url.PathEscape(cluster) + "/" + of }

// Summaries returns the clusters that the query selects, without their details: that
// of GET /clusters.
func (c *Client) Summaries(ctx context.Context, query url.Values) ([]holdfast.ClusterSummary, error) {
	full := url.Values{}
	maps.Copy(full, query)
	full.Set("view", "summary")
	return items[holdfast.ClusterSummary](ctx, c, "clusters", full)
}

// History returns how a cluster's phase and conditions changed, the newest first.
func (c *Client) History(ctx context.Context, cluster string, limit int) ([]holdfast.Transition, error) {
	return items[holdfast.Transition](ctx, c, clusterPath(cluster, "history"), url.Values{"limit": {strconv.Itoa(limit)}})
}

// Family returns what a cluster depends on, and what depends on it.
func (c *Client) Family(ctx context.Context, cluster string) (family holdfast.Family, err error) {
	err = c.call(ctx, http.MethodGet, clusterPath(cluster, "family"), nil, nil, &family)
	return family, err
}

// Drift returns what the last check found on a cluster.
func (c *Client) Drift(ctx context.Context, cluster string) (report holdfast.DriftReport, err error) {
	err = c.call(ctx, http.MethodGet, clusterPath(cluster, "drift"), nil, nil, &report)
	return report, err
}

// DriftList returns the clusters that have drifted. The query is that of GET /drift.
func (c *Client) DriftList(ctx context.Context, query url.Values) ([]server.DriftLine, error) {
	return items[server.DriftLine](ctx, c, "drift", query)
}

// CheckDrift queues a check of a cluster for drift.
func (c *Client) CheckDrift(ctx context.Context, cluster string) (run holdfast.Run, err error) {
	err = c.call(ctx, http.MethodPost, clusterPath(cluster, "drift/check"), nil, struct{}{}, &run)
	return run, err
}

// Transfer hands a cluster to another repository, which defines it from then on.
func (c *Client) Transfer(ctx context.Context, cluster, repo string) (record holdfast.ClusterRecord, err error) {
	err = c.call(ctx, http.MethodPost, clusterPath(cluster, "transfer"), nil, server.TransferRequest{Repo: repo}, &record)
	return record, err
}

// Resources returns resources of clusters. The query is that of GET /resources.
func (c *Client) Resources(ctx context.Context, query url.Values) ([]holdfast.Resource, error) {
	return items[holdfast.Resource](ctx, c, "resources", query)
}

// Agents returns the agents that the server has heard of.
func (c *Client) Agents(ctx context.Context) ([]holdfast.AgentStatus, error) {
	return items[holdfast.AgentStatus](ctx, c, "agents", nil)
}

// Suspensions returns those of many clusters, and, unless only these are wanted,
// clusters that are suspended by themselves.
func (c *Client) Suspensions(ctx context.Context, onlyMany bool) ([]server.SuspensionAnswer, error) {
	query := url.Values{}
	if onlyMany {
		query.Set("many", "true")
	}
	return items[server.SuspensionAnswer](ctx, c, "suspensions", query)
}

// SuspendAll suspends or resumes the clusters of a project, or all.
func (c *Client) SuspendAll(ctx context.Context, req server.SuspendRequest, suspended bool) (answer server.SuspensionAnswer, err error) {
	err = c.call(ctx, http.MethodPost, suspendWord(suspended), nil, req, &answer)
	return answer, err
}

// Suspend suspends or resumes a cluster.
func (c *Client) Suspend(ctx context.Context, cluster string, suspended bool, reason string) (record holdfast.ClusterRecord, err error) {
	err = c.call(ctx, http.MethodPost, clusterPath(cluster, suspendWord(suspended)), nil, server.SuspendClusterRequest{Reason: reason}, &record)
	return record, err
}

func suspendWord(suspended bool) string {
	if suspended {
		return "suspend"
	}
	return "resume"
}
