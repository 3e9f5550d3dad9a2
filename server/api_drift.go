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

func (s *driftAPI) routes(view, operate *gin.RouterGroup) {
	view.GET("/drift", s.listDrift)
	view.GET("/clusters/:name/drift", s.getDrift)
	operate.POST("/clusters/:name/drift/check", s.postDriftCheck)
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
		s.failCluster(c, withoutConflict(err))
		return
	}
	c.JSON(http.StatusAccepted, v1.RunOf(run))
}

// listDrift answers with the clusters whose last check found something or
// failed; with all=true, with those that are as they were applied, or were not
// checked, too.
func (s *driftAPI) listDrift(c *gin.Context) {
	if !s.knownQuery(c, append(slices.Clone(filterWords), "limit", "cursor")...) {
		return
	}
	filter, all, err := clusterFilter(c)
	p, err2 := pageOf(c, unsaidItems, maxLines, 1)
	if err = errors.Join(err, err2); err != nil {
		s.fail(c, err)
		return
	}
	lines, err := s.driftLines(c.Request.Context(), s.records(c), filter, all)
	part, cursor := cut(p, lines, func(l v1.DriftLine) []string { return []string{l.Cluster} })
	answerList(s.base, c, p, part, same, cursor, err)
}

// driftLines opens the records of drifted clusters alone: of the others a
// summary says it all.
func (s *driftAPI) driftLines(ctx context.Context, from Records, filter holdfast.ClusterFilter, all bool) ([]v1.DriftLine, error) {
	var lines []v1.DriftLine
	bad := []holdfast.DriftStatus{holdfast.DriftFound, holdfast.DriftFailed}
	if filter.Drift != "" {
		bad = slices.DeleteFunc(bad, func(status holdfast.DriftStatus) bool { return status != filter.Drift })
		all = filter.Drift == holdfast.DriftNone
	}
	for _, status := range bad {
		found := filter
		found.Drift = status
		records, err := from.Clusters(ctx, found)
		if err != nil {
			return nil, err
		}
		for _, record := range records {
			line, err := s.driftLine(ctx, record)
			if err != nil {
				return nil, err
			}
			lines = append(lines, line)
		}
	}
	if all {
		summaries, err := from.ClusterSummaries(ctx, filter)
		if err != nil {
			return nil, err
		}
		for _, summary := range summaries {
			if summary.Drift == holdfast.DriftNone || summary.Drift == holdfast.DriftUnchecked {
				lines = append(lines, lineOf(summary))
			}
		}
	}
	slices.SortFunc(lines, func(a, b v1.DriftLine) int { return strings.Compare(a.Cluster, b.Cluster) })
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

// withoutConflict leaves out of a conflict's text that it is one: the reason in
// it says it better.
func withoutConflict(err error) error {
	if err == nil || !errors.Is(err, holdfast.ErrConflict) {
		return err
	}
	text, ok := strings.CutSuffix(err.Error(), ": "+holdfast.ErrConflict.Error())
	if !ok {
		return err
	}
	return conflictError(text)
}

// conflictError is a holdfast.ErrConflict that says only why.
type conflictError string

func (e conflictError) Error() string        { return string(e) }
func (e conflictError) Is(target error) bool { return target == holdfast.ErrConflict }
