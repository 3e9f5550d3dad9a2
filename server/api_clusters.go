package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/protocol"
)

// maxOutputs bounds the bytes of the values of outputs in an answer.
const maxOutputs = 8 << 20

// clusterFilter reads the parameters that select clusters; all is for the caller to
// read.
func clusterFilter(c *gin.Context) (filter holdfast.ClusterFilter, all bool, err error) {
	filter = holdfast.ClusterFilter{
		Names:       c.QueryArray("name"),
		Owner:       c.Query("owner"),
		Project:     c.Query("project"),
		Environment: c.Query("environment"),
		Phase:       holdfast.Phase(c.Query("phase")),
		Waiting:     holdfast.Reason(c.Query("waiting")),
		Drift:       holdfast.DriftStatus(c.Query("drift")),
	}
	if filter.Phase != "" && !slices.Contains(holdfast.Phases(), filter.Phase) {
		return filter, false, badRequest("phase %q: want one of %s", filter.Phase, words(holdfast.Phases()))
	}
	if filter.Waiting != "" && filter.Waiting != "*" && !filter.Waiting.Known() {
		return filter, false, &badRequestError{
			status: http.StatusBadRequest, text: fmt.Sprintf("waiting %.40q: want a reason, or * for any", filter.Waiting),
			hint: "docs/runs.md lists the reasons, and so does GET /api/v1/reasons",
		}
	}
	known := []holdfast.DriftStatus{"", holdfast.DriftNone, holdfast.DriftFound, holdfast.DriftFailed}
	if !slices.Contains(known, filter.Drift) {
		return filter, false, badRequest("drift %q: want none, drifted or failed", filter.Drift)
	}
	for _, label := range c.QueryArray("label") {
		key, value, ok := strings.Cut(label, "=")
		if !ok || key == "" {
			return filter, false, badRequest("label %q: want key=value", label)
		}
		if filter.Labels == nil {
			filter.Labels = map[string]string{}
		}
		filter.Labels[key] = value
	}
	all, err = yes(c, "all")
	return filter, all, err
}

func (s *clusterAPI) routes(api *gin.RouterGroup) {
	api.GET("/clusters", s.listClusters)
	api.GET("/overview", s.getOverview)
	api.GET("/clusters/:name", s.getCluster)
	api.GET("/clusters/:name/outputs", s.getOutputs)
	api.GET("/clusters/:name/history", s.listTransitions)
	api.GET("/clusters/:name/family", s.getFamily)
	api.GET("/resources", s.listResources)
	api.POST("/clusters/:name/transfer", s.postTransfer)
}

// listClusters answers with a line for each cluster.
func (s *clusterAPI) listClusters(c *gin.Context) {
	filter, all, err := clusterFilter(c)
	p, err2 := pageWithFields[v1.ClusterSummary](c, unsaidItems, maxLines, 1)
	if err = errors.Join(err, err2); err != nil {
		s.fail(c, err)
		return
	}
	filter.Deleted, filter.After, filter.Limit = all, p.part(0), p.limit
	ctx := c.Request.Context()
	summaries, err := s.summaries(c, filter)
	if err == nil {
		err = s.markSuspended(ctx, summaries)
	}
	key := func(c holdfast.ClusterSummary) []string { return []string{c.Name} }
	answerList(s.base, c, p, summaries, s.summaryOf, full(p, summaries, key), err)
}

// markSuspended says of summaries that they are suspended also where their
// project is, or the fleet.
func (s *clusterAPI) markSuspended(ctx context.Context, summaries []holdfast.ClusterSummary) error {
	suspensions, err := s.opts.Records.Suspensions(ctx)
	if err != nil || len(suspensions) == 0 {
		return err
	}
	projects := make(map[string]bool, len(suspensions))
	for _, suspension := range suspensions {
		projects[suspension.Project] = true
	}
	for i := range summaries {
		if projects[""] || projects[summaries[i].Project] {
			summaries[i].Suspended = true
		}
	}
	return nil
}

// hintRepositories is the hint to where the repositories are listed.
const hintRepositories = "`repositories` in holdfast.yaml names those that are"

// cluster returns the record that the path names, and answers if there is none.
func (s *apiServer) cluster(c *gin.Context) (holdfast.ClusterRecord, bool) {
	record, err := s.records(c).Cluster(c.Request.Context(), c.Param("name"))
	if err != nil {
		s.failCluster(c, err)
	}
	return record, err == nil
}

func (s *apiServer) failCluster(c *gin.Context, err error) {
	s.fail(c, named(fmt.Sprintf("cluster %q", c.Param("name")), err))
}

// clusterOf is what the API says of a cluster.
func (s *apiServer) clusterOf(r holdfast.ClusterRecord) v1.Cluster {
	r.Unwatched = r.Deletion == nil && s.unwatched(r.Owner)
	return v1.ClusterOf(r)
}

// summaryOf is what a list says of one.
func (s *apiServer) summaryOf(c holdfast.ClusterSummary) v1.ClusterSummary {
	c.Unwatched = c.Phase != holdfast.PhaseDeleted && s.unwatched(c.Owner)
	return v1.ClusterSummaryOf(c)
}

// unwatched reports whether nothing is done for the clusters of a repository.
func (s *apiServer) unwatched(repo string) bool {
	return repo != "" && !s.opts.Commander.Watches(repo)
}

func (s *clusterAPI) getCluster(c *gin.Context) {
	record, ok := s.cluster(c)
	if !ok {
		return
	}
	if !s.unwatched(record.Owner) {
		var err error
		if record.PlannedRun, err = s.opts.Commander.PlannedRun(c.Request.Context(), record.Name); err != nil {
			s.fail(c, err)
			return
		}
	}
	c.JSON(http.StatusOK, s.clusterOf(record))
}

func (s *clusterAPI) getOutputs(c *gin.Context) {
	if record, ok := s.cluster(c); ok {
		p, err := pageOf(c, maxItems, maxItems, 1)
		if err != nil {
			s.fail(c, err)
			return
		}
		outputs, err := s.outputs(c.Request.Context(), record.Applied.OutputsOf())
		slices.SortFunc(outputs, func(a, b v1.Output) int { return strings.Compare(a.Name, b.Name) })
		part, cursor := cut(p, outputs, func(o v1.Output) []string { return []string{o.Name} })
		answerList(s.base, c, p, part, func(o v1.Output) v1.Output { return o }, cursor, err)
	}
}

func (s *clusterAPI) listTransitions(c *gin.Context) {
	p, err := pageOf(c, unsaidItems, maxItems, 2)
	at, err2 := p.number(0)
	if err = errors.Join(err, err2); err != nil {
		s.fail(c, err)
		return
	}
	record, ok := s.cluster(c)
	if !ok {
		return
	}
	wanted := p.limit
	if p.after != nil {
		wanted = maxItems // the newest are kept, which are few
	}
	history, err := s.opts.Records.Transitions(c.Request.Context(), record.Name, wanted)
	if p.after != nil {
		history = after(history, time.Unix(0, at), p.part(1))
		history = history[:min(len(history), p.limit)]
	}
	key := func(t holdfast.Transition) []string { return []string{strconv.FormatInt(t.At.UnixNano(), 10), t.What} }
	answerList(s.base, c, p, history, v1.TransitionOf, full(p, history, key), err)
}

// after returns what a history, the newest first, has after the change of something at a
// time: or, if that is no longer kept, what is older.
func after(history []holdfast.Transition, at time.Time, what string) []holdfast.Transition {
	i := slices.IndexFunc(history, func(t holdfast.Transition) bool { return t.At.Equal(at) && t.What == what })
	if i >= 0 {
		return history[i+1:]
	}
	i = slices.IndexFunc(history, func(t holdfast.Transition) bool { return t.At.Before(at) })
	if i < 0 {
		return nil
	}
	return history[i:]
}

// postTransfer gives a cluster to another repository and answers with its
// record.
func (s *clusterAPI) postTransfer(c *gin.Context) {
	var req v1.TransferRequest
	if err := decode(c, &req, true); err != nil {
		s.fail(c, err)
		return
	}
	if req.Repo == "" {
		s.fail(c, badRequest("repo is missing: the repository that will define the cluster"))
		return
	}
	if _, ok := s.cluster(c); !ok {
		return
	}
	if err := s.opts.Commander.Transfer(c.Request.Context(), c.Param("name"), req.Repo, caller(c).Name); err != nil {
		if errors.Is(err, holdfast.ErrNotFound) { // the cluster is there: see above
			s.fail(c, missing(fmt.Sprintf("no repository %q is watched", req.Repo), hintRepositories))
			return
		}
		s.failCluster(c, err)
		return
	}
	s.getCluster(c)
}

func (s *clusterAPI) getFamily(c *gin.Context) {
	family, err := s.opts.Commander.Family(c.Request.Context(), c.Param("name"))
	if err == nil {
		family, err = s.familyFor(c, family)
	}
	if err != nil {
		s.failCluster(c, err)
		return
	}
	c.JSON(http.StatusOK, v1.FamilyOf(family))
}

// listResources searches what clusters consist of.
func (s *clusterAPI) listResources(c *gin.Context) {
	p, err := pageWithFields[v1.Resource](c, maxItems, maxLines, 2)
	if err != nil {
		s.fail(c, err)
		return
	}
	resources, err := s.records(c).Resources(c.Request.Context(), holdfast.ResourceFilter{
		Cluster: c.Query("cluster"), Type: c.Query("type"), ID: c.Query("id"), Address: c.Query("address"), Limit: p.limit,
		After: holdfast.ResourceMark{Cluster: p.part(0), Address: p.part(1)},
	})
	key := func(r holdfast.Resource) []string { return []string{r.Cluster, r.Address} }
	answerList(s.base, c, p, resources, v1.ResourceOf, full(p, resources, key), err)
}

// outputs returns what a run put out. v1.OutputOf leaves out what is secret; values that
// are too large together are left out, too.
func (s *clusterAPI) outputs(ctx context.Context, run string) ([]v1.Output, error) {
	if run == "" {
		return nil, nil
	}
	data, err := s.opts.Artefacts.Artefact(ctx, run, protocol.ArtefactOutputs)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("open outputs of run %s: %w", run, err)
	}
	defer data.Close()
	outputs, err := readOutputs(io.LimitReader(data, protocol.ArtefactLimit(protocol.ArtefactOutputs)), maxOutputs)
	if err != nil {
		return nil, fmt.Errorf("read outputs of run %s: %w", run, err)
	}
	return outputs, nil
}

// readOutputs reads a list of outputs one by one, and values until they have so many
// bytes together.
func readOutputs(from io.Reader, most int) ([]v1.Output, error) {
	decoder := json.NewDecoder(from)
	if start, err := decoder.Token(); err != nil || start != json.Delim('[') {
		return nil, err // null: there are none
	}
	var outputs []v1.Output
	for decoder.More() {
		var found holdfast.Output
		if err := decoder.Decode(&found); err != nil {
			return nil, err
		}
		output := v1.OutputOf(found)
		if len(output.Value) > most {
			output.Omitted, output.Value = int64(len(output.Value)), nil
		}
		most -= len(output.Value)
		outputs = append(outputs, output)
	}
	_, err := decoder.Token()
	return outputs, err
}
