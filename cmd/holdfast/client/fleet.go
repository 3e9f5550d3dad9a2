package client

import (
	"context"
	"maps"
	"math"
	"net/http"
	"net/url"
	"strconv"

	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// largePart is how many items of a long list are asked for at once.
const largePart = 1000

// items reads as many items of a list as the parameter limit says; without one, as many
// as the server gives at once.
func items[T any](ctx context.Context, c *Client, path string, query url.Values) ([]T, error) {
	wanted, err := strconv.Atoi(query.Get("limit"))
	if err != nil || wanted <= largePart { // what is not a number is the server's to refuse
		list, err := part[T](ctx, c, path, query)
		return list.Items, err
	}
	return parts[T](ctx, c, path, query, wanted)
}

// whole reads a list until its end.
func whole[T any](ctx context.Context, c *Client, path string, query url.Values) ([]T, error) {
	return parts[T](ctx, c, path, query, math.MaxInt)
}

func parts[T any](ctx context.Context, c *Client, path string, query url.Values, wanted int) ([]T, error) {
	asked := url.Values{}
	maps.Copy(asked, query)
	var found []T
	for {
		asked.Set("limit", strconv.Itoa(min(wanted-len(found), largePart)))
		list, err := part[T](ctx, c, path, asked)
		if err != nil {
			return nil, err
		}
		found = append(found, list.Items...)
		if list.Next == "" || len(list.Items) == 0 || len(found) >= wanted {
			return found, nil
		}
		asked.Set("cursor", list.Next)
	}
}

func part[T any](ctx context.Context, c *Client, path string, query url.Values) (list v1.List[T], err error) {
	err = c.call(ctx, http.MethodGet, path, query, nil, &list)
	return list, err
}

// clusterPath is the path of something of a cluster.
func clusterPath(cluster, of string) string { return "clusters/" + url.PathEscape(cluster) + "/" + of }

// Summaries returns the clusters that the query selects, without their details: that
// of GET /clusters.
func (c *Client) Summaries(ctx context.Context, query url.Values) ([]v1.ClusterSummary, error) {
	return whole[v1.ClusterSummary](ctx, c, "clusters", query)
}

// History returns how a cluster's phase and conditions changed, the newest first.
func (c *Client) History(ctx context.Context, cluster string, limit int) ([]v1.Transition, error) {
	return items[v1.Transition](ctx, c, clusterPath(cluster, "history"), url.Values{"limit": {strconv.Itoa(limit)}})
}

// Family returns what a cluster depends on, and what depends on it.
func (c *Client) Family(ctx context.Context, cluster string) (family v1.Family, err error) {
	err = c.call(ctx, http.MethodGet, clusterPath(cluster, "family"), nil, nil, &family)
	return family, err
}

// Drift returns what the last check found on a cluster.
func (c *Client) Drift(ctx context.Context, cluster string) (report v1.DriftReport, err error) {
	err = c.call(ctx, http.MethodGet, clusterPath(cluster, "drift"), nil, nil, &report)
	return report, err
}

// DriftList returns the clusters that have drifted. The query is that of GET /drift.
func (c *Client) DriftList(ctx context.Context, query url.Values) ([]v1.DriftLine, error) {
	return whole[v1.DriftLine](ctx, c, "drift", query)
}

// CheckDrift queues a check of a cluster for drift.
func (c *Client) CheckDrift(ctx context.Context, cluster string) (run v1.Run, err error) {
	err = c.call(ctx, http.MethodPost, clusterPath(cluster, "drift/check"), nil, struct{}{}, &run)
	return run, err
}

// Transfer hands a cluster to another repository, which defines it from then on.
func (c *Client) Transfer(ctx context.Context, cluster, repo string) (record v1.Cluster, err error) {
	err = c.call(ctx, http.MethodPost, clusterPath(cluster, "transfer"), nil, v1.TransferRequest{Repo: repo}, &record)
	return record, err
}

// Resources returns resources of clusters. The query is that of GET /resources.
func (c *Client) Resources(ctx context.Context, query url.Values) ([]v1.Resource, error) {
	return items[v1.Resource](ctx, c, "resources", query)
}

// Queue returns the runs that wait for an agent, in their order. The query is that of
// GET /queue: limit.
func (c *Client) Queue(ctx context.Context, query url.Values) ([]v1.QueuedRun, error) {
	return items[v1.QueuedRun](ctx, c, "queue", query)
}

// Agents returns the agents that the server has heard of.
func (c *Client) Agents(ctx context.Context) ([]v1.Agent, error) {
	return whole[v1.Agent](ctx, c, "agents", nil)
}

// Replicas returns the servers that have the database, by identity.
func Replicas(ctx context.Context, c *Client) ([]v1.Replica, error) {
	return whole[v1.Replica](ctx, c, "replicas", nil)
}

// Suspensions returns those of many clusters, and, unless only these are wanted,
// clusters that are suspended one by one.
func (c *Client) Suspensions(ctx context.Context, onlyMany bool) ([]v1.Suspension, error) {
	query := url.Values{}
	if onlyMany {
		query.Set("many", "true")
	}
	return whole[v1.Suspension](ctx, c, "suspensions", query)
}

// SuspendAll suspends or resumes the clusters of a project, or all.
func (c *Client) SuspendAll(ctx context.Context, req v1.SuspendRequest, suspended bool) (answer v1.Suspension, err error) {
	err = c.call(ctx, http.MethodPost, suspendWord(suspended), nil, req, &answer)
	return answer, err
}

// Suspend suspends or resumes a cluster.
func (c *Client) Suspend(ctx context.Context, cluster string, suspended bool, reason string) (record v1.Cluster, err error) {
	err = c.call(ctx, http.MethodPost, clusterPath(cluster, suspendWord(suspended)), nil, v1.SuspendClusterRequest{Reason: reason}, &record)
	return record, err
}

func suspendWord(suspended bool) string {
	if suspended {
		return "suspend"
	}
	return "resume"
}
