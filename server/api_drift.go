package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

func (s *driftAPI) routes(api *gin.RouterGroup) {
	api.GET("/drift", s.listDrift)
	api.GET("/clusters/:name/drift", s.getDrift)
	api.POST("/clusters/:name/drift/check", s.postDriftCheck)
}

func (s *driftAPI) getDrift(c *gin.Context) {
	report, err := s.opts.Commander.Drift(c.Request.Context(), c.Param("name"))
	if err != nil {
		s.failCluster(c, err)
		return
	}
	c.JSON(http.StatusOK, v1.DriftReportOf(report))
}

// postDriftCheck answers with the run that checks.
func (s *driftAPI) postDriftCheck(c *gin.Context) {
	run, err := s.opts.Commander.CheckDrift(c.Request.Context(), c.Param("name"), caller(c).Name)
	if err != nil {
		s.failCluster(c, err)
		return
	}
	c.JSON(http.StatusAccepted, v1.RunOf(run))
}

// listDrift answers with the clusters whose last check found something or
// failed; with all=true, also with those that are as they were applied, or were not
// checked.
func (s *driftAPI) listDrift(c *gin.Context) {
	filter, all, err := clusterFilter(c)
	p, err2 := pageWithFields[v1.DriftLine](c, unsaidItems, maxLines, 1)
	if err = errors.Join(err, err2); err != nil {
		s.fail(c, err)
		return
	}
	summaries, err := driftSummaries(c.Request.Context(), s.records(c), filter, all, p)
	var lines []v1.DriftLine
	if err == nil {
		lines, err = s.driftLines(c.Request.Context(), s.records(c), summaries)
	}
	cursor := full(p, summaries, func(l holdfast.ClusterSummary) []string { return []string{l.Name} })
	answerList(s.base, c, p, lines, same, cursor, err)
}

// driftSummaries returns the part of the list that is asked for, by name.
func driftSummaries(
	ctx context.Context, from Records, filter holdfast.ClusterFilter, all bool, p page,
) ([]holdfast.ClusterSummary, error) {
	filter.After, filter.Limit = p.part(0), p.limit
	if all || filter.Drift != "" {
		return from.ClusterSummaries(ctx, filter)
	}
	var found []holdfast.ClusterSummary
	for _, status := range []holdfast.DriftStatus{holdfast.DriftFound, holdfast.DriftFailed} {
		filter.Drift = status
		part, err := from.ClusterSummaries(ctx, filter)
		if err != nil {
			return nil, err
		}
		found = append(found, part...)
	}
	slices.SortFunc(found, func(a, b holdfast.ClusterSummary) int { return strings.Compare(a.Name, b.Name) })
	return found[:min(len(found), p.limit)], nil
}

// driftLines opens the records of drifted clusters alone: of the others a
// summary says it all.
func (s *driftAPI) driftLines(ctx context.Context, from Records, summaries []holdfast.ClusterSummary) ([]v1.DriftLine, error) {
	var names []string
	for _, summary := range summaries {
		if summary.Drift == holdfast.DriftFound || summary.Drift == holdfast.DriftFailed {
			names = append(names, summary.Name)
		}
	}
	records := make(map[string]holdfast.ClusterRecord, len(names))
	if len(names) > 0 {
		found, err := from.Clusters(ctx, holdfast.ClusterFilter{Names: names})
		if err != nil {
			return nil, err
		}
		for _, record := range found {
			records[record.Name] = record
		}
	}
	lines := make([]v1.DriftLine, len(summaries))
	for i, summary := range summaries {
		record, ok := records[summary.Name]
		if !ok {
			lines[i] = lineOf(summary)
			continue
		}
		var err error
		if lines[i], err = s.driftLine(ctx, record); err != nil {
			return nil, err
		}
	}
	return lines, nil
}

func lineOf(s holdfast.ClusterSummary) v1.DriftLine {
	return v1.DriftLine{
		Cluster: s.Name, Owner: s.Owner, Project: s.Project, Environment: s.Environment,
		State:      v1.DriftState{Status: s.Drift, Counts: v1.DriftCounts(s.DriftCounts), CheckedAt: s.CheckedAt, Due: s.DriftDue},
		NotApplied: s.Applied.Revision != "" && !s.UpToDate, Waiting: s.Waiting,
	}
}

func (s *driftAPI) driftLine(ctx context.Context, r holdfast.ClusterRecord) (v1.DriftLine, error) {
	doc := r.Desired.Document
	if doc.Name == "" {
		doc = r.Applied.Document // a cluster that was removed
	}
	line := v1.DriftLine{
		Cluster: r.Name, Owner: r.Owner, Project: doc.Project, Environment: doc.Environment, State: v1.DriftStateOf(r.Drift),
		OnDrift:    doc.Drift.OnDrift,
		NotApplied: !r.Applied.SourceDigest.Equal(r.Desired.SourceDigest), Waiting: r.Waiting,
	}
	if line.OnDrift == "" {
		line.OnDrift = "report"
	}
	if line.OnDrift == "ignore" {
		return line, nil
	}
	keys := []string{"issue:drift:" + r.Name, "issue:drift:" + r.Name + ":" + r.Owner} // of one that came from elsewhere
	if r.Drift.Status == holdfast.DriftFound {
		keys = append(keys, "issue:drift-summary:"+r.Owner)
	}
	for _, key := range keys {
		post, ok, err := s.posted(ctx, key)
		if err != nil {
			return line, err
		}
		// The local forge's ids are not issues that people could open, and a number of
		// another repository is that of another issue here.
		if _, number := strconv.Atoi(post.ExternalID); ok && !post.Closed && number == nil && post.Repo == r.Owner {
			line.Issue = post.ExternalID
			break
		}
	}
	return line, nil
}
