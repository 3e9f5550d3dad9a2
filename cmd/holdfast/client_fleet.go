package main

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/server"
)

// items returns what a list has.
func items[T any](ctx context.Context, c *client, path string, query url.Values) ([]T, error) {
	var list server.List[T]
	err := c.call(ctx, http.MethodGet, path, query, nil, &list)
	return list.Items, err
}

// clusterPath is the path of something of a cluster.
func clusterPath(cluster, of string) string { return "clusters/" + url.PathEscape(cluster) + "/" + of }

func (c *client) summaries(ctx context.Context, query url.Values) ([]holdfast.ClusterSummary, error) {
	query.Set("view", "summary")
	return items[holdfast.ClusterSummary](ctx, c, "clusters", query)
}

func (c *client) history(ctx context.Context, cluster string, limit int) ([]holdfast.Transition, error) {
	return items[holdfast.Transition](ctx, c, clusterPath(cluster, "history"), url.Values{"limit": {strconv.Itoa(limit)}})
}

func (c *client) family(ctx context.Context, cluster string) (family holdfast.Family, err error) {
	err = c.call(ctx, http.MethodGet, clusterPath(cluster, "family"), nil, nil, &family)
	return family, err
}

func (c *client) drift(ctx context.Context, cluster string) (report holdfast.DriftReport, err error) {
	err = c.call(ctx, http.MethodGet, clusterPath(cluster, "drift"), nil, nil, &report)
	return report, err
}

func (c *client) driftList(ctx context.Context, query url.Values) ([]server.DriftLine, error) {
	return items[server.DriftLine](ctx, c, "drift", query)
}

func (c *client) checkDrift(ctx context.Context, cluster string) (run holdfast.Run, err error) {
	err = c.call(ctx, http.MethodPost, clusterPath(cluster, "drift/check"), nil, struct{}{}, &run)
	return run, err
}

func (c *client) transfer(ctx context.Context, cluster, repo string) (record holdfast.ClusterRecord, err error) {
	err = c.call(ctx, http.MethodPost, clusterPath(cluster, "transfer"), nil, server.TransferRequest{Repo: repo}, &record)
	return record, err
}

func (c *client) resources(ctx context.Context, query url.Values) ([]holdfast.Resource, error) {
	return items[holdfast.Resource](ctx, c, "resources", query)
}

// suspensions returns those of many clusters, and, unless only these are wanted,
// clusters that are suspended by themselves.
func (c *client) suspensions(ctx context.Context, onlyMany bool) ([]server.SuspensionAnswer, error) {
	query := url.Values{}
	if onlyMany {
		query.Set("many", "true")
	}
	return items[server.SuspensionAnswer](ctx, c, "suspensions", query)
}

func (c *client) suspendAll(ctx context.Context, req server.SuspendRequest, suspended bool) (answer server.SuspensionAnswer, err error) {
	err = c.call(ctx, http.MethodPost, suspendWord(suspended), nil, req, &answer)
	return answer, err
}

func (c *client) suspend(ctx context.Context, cluster string, suspended bool) (record holdfast.ClusterRecord, err error) {
	err = c.call(ctx, http.MethodPost, clusterPath(cluster, suspendWord(suspended)), nil, struct{}{}, &record)
	return record, err
}

func suspendWord(suspended bool) string {
	if suspended {
		return "suspend"
	}
	return "resume"
}
