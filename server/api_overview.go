package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/server/fleet"
)

const (
	// mostNeeds is how many things that wait for people an overview lists.
	mostNeeds = 20
	// foundMost is how many resources a search looks at.
	foundMost = maxLines
)

// searchFilter adds to a filter what a list of clusters can be searched by, of what the
// caller's token sees.
func (s *clusterAPI) searchFilter(c *gin.Context, filter holdfast.ClusterFilter) (fleet.Filter, error) {
	f := fleet.Filter{
		Projects: reach(c, access.Read), ClusterFilter: filter, Provider: c.Query("provider"), Search: strings.TrimSpace(c.Query("q")),
	}
	f.Template = c.Query("template")
	if !strings.ContainsAny(f.Search, "._") { // every address of a resource has one, and no name of a cluster
		return f, nil
	}
	resources, err := s.records(c).Resources(c.Request.Context(), holdfast.ResourceFilter{Address: f.Search, Limit: foundMost})
	if err != nil {
		return f, err
	}
	f.Found = make(map[string]bool)
	for _, r := range resources {
		f.Found[r.Cluster] = true
	}
	return f, nil
}

// summaries are the clusters of a list: what needs a search is looked up in memory.
func (s *clusterAPI) summaries(c *gin.Context, filter holdfast.ClusterFilter) ([]holdfast.ClusterSummary, error) {
	ctx := c.Request.Context()
	if c.Query("q") == "" && c.Query("provider") == "" && c.Query("template") == "" {
		return s.records(c).ClusterSummaries(ctx, filter)
	}
	f, err := s.searchFilter(c, filter)
	if err != nil {
		return nil, err
	}
	lines, err := s.fleet.Lines(ctx)
	if err != nil {
		return nil, err
	}
	return f.Select(lines), nil
}

func (s *clusterAPI) getOverview(c *gin.Context) {
	ctx := c.Request.Context()
	filter, _, err := clusterFilter(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	f, err := s.searchFilter(c, filter)
	if err != nil {
		s.fail(c, err)
		return
	}
	lines, err := s.fleet.Lines(ctx)
	if err != nil {
		s.fail(c, err)
		return
	}
	o := f.Overview(lines)
	answer := v1.Overview{
		Total: o.Total, Matching: o.Matching, Projects: convert(o.Projects, facetOf), Environments: convert(o.Environments, facetOf),
		Providers: convert(o.Providers, facetOf), Templates: convert(o.Templates, facetOf), Phases: convert(o.Phases, facetOf),
		Drift: convert(o.Drift, facetOf), NeedsTotal: len(o.Waiting),
	}
	if answer.Needs, err = s.needs(ctx, s.records(c), o.Waiting); err != nil {
		s.fail(c, err)
		return
	}
	c.JSON(http.StatusOK, answer)
}

func facetOf(n fleet.Count) v1.FacetCount { return v1.FacetCount{Value: n.Value, Count: n.N} }

// needs opens the records of the clusters that wait, as summaries do not say since when. If
// there are many, only those that have not changed for the longest are looked at.
func (s *clusterAPI) needs(ctx context.Context, from Records, waiting []holdfast.ClusterSummary) ([]v1.Need, error) {
	waiting = waiting[:min(len(waiting), 5*mostNeeds)]
	if len(waiting) == 0 {
		return nil, nil
	}
	names := make([]string, len(waiting))
	for i, line := range waiting {
		names[i] = line.Name
	}
	records, err := from.Clusters(ctx, holdfast.ClusterFilter{Names: names})
	if err != nil {
		return nil, err
	}
	needs := convert(records, v1.NeedOf)
	slices.SortStableFunc(needs, func(a, b v1.Need) int { return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Cluster, b.Cluster)) })
	return needs[:min(len(needs), mostNeeds)], nil
}
