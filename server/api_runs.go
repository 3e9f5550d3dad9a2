package server

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

func (s *runAPI) routes(api *gin.RouterGroup) {
	api.GET("/runs", s.listRuns)
	api.GET("/queue", s.listQueue)
	api.GET("/runs/:run", s.getRun)
	api.GET("/runs/:run/plan", s.getPlan)
	api.GET("/runs/:run/attempts", s.listAttempts)
	api.GET("/runs/:run/log", s.getLog)
}

func (s *runAPI) listRuns(c *gin.Context) {
	filter := holdfast.RunFilter{Cluster: c.Query("cluster")}
	var err, err2 error
	filter.Kinds, err = wordsOf(c, "kind", runKinds)
	filter.Statuses, err2 = wordsOf(c, "status", runStatuses)
	err = cmp.Or(err, err2)
	if err == nil && (c.Query("repo") != "" || c.Query("number") != "") {
		var ref holdfast.PullRequestRef
		ref, err = pullRequestOf(c)
		filter.PullRequest = &ref
	}
	var p page
	if err == nil {
		p, err = runPage(c, &filter)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	runs, err := s.records(c).Runs(c.Request.Context(), filter)
	answerList(s.base, c, p, runs, v1.RunOf, full(p, runs, runKey), err)
}

// listQueue lists the runs that wait to be handed out. Its cursor is a position.
func (s *runAPI) listQueue(c *gin.Context) {
	p, err := pageOf(c, unsaidItems, maxItems, 1)
	after, err2 := p.place()
	if err = cmp.Or(err, err2); err != nil {
		s.fail(c, err)
		return
	}
	queue, err := s.opts.Registry.Queue(c.Request.Context(), holdfast.QueueFilter{
		Projects: reach(c, access.Read), Runner: c.Query("runner"), After: int(after), Limit: p.limit,
	})
	position := func(r holdfast.QueuedRun) []string { return []string{strconv.Itoa(r.Position)} }
	cursor := full(p, queue, position)
	if scoped, ok := s.records(c).(*scopedRecords); ok && err == nil {
		queue, err = scoped.queue(c.Request.Context(), queue)
	}
	answerList(s.base, c, p, queue, v1.QueuedRunOf, cursor, err)
}

// What runs can be asked for by.
var (
	runKinds = []holdfast.RunKind{
		holdfast.RunPlan, holdfast.RunApply, holdfast.RunDrift, holdfast.RunDestroy, holdfast.RunState, holdfast.RunUnlock,
	}
	runStatuses = []holdfast.RunStatus{
		holdfast.RunQueued, holdfast.RunRetrying, holdfast.RunRunning, holdfast.RunPlanned, holdfast.RunApplied,
		holdfast.RunNoChanges, holdfast.RunErrored, holdfast.RunCanceled, holdfast.RunInterrupted,
	}
)

func runKey(r holdfast.Run) []string {
	return []string{strconv.FormatInt(r.CreatedAt.UnixNano(), 10), r.ID}
}

// runPage reads which part of a list of runs is asked for, and which of their fields.
func runPage(c *gin.Context, filter *holdfast.RunFilter) (page, error) {
	p, err := pageWithFields[v1.Run](c, unsaidItems, maxItems, 2)
	at, err2 := p.number(0)
	if err = cmp.Or(err, err2); err != nil {
		return p, err
	}
	filter.Limit = p.limit
	if p.after != nil {
		filter.After = holdfast.RunMark{CreatedAt: time.Unix(0, at).UTC(), ID: p.part(1)}
	}
	return p, nil
}

func (s *runAPI) getRun(c *gin.Context) {
	run, err := s.records(c).Run(c.Request.Context(), c.Param("run"))
	if err != nil {
		s.fail(c, named(fmt.Sprintf("run %q", c.Param("run")), err))
		return
	}
	c.JSON(http.StatusOK, v1.RunOf(run))
}

func (s *runAPI) getPlan(c *gin.Context) {
	plan, err := s.opts.Records.Plan(c.Request.Context(), c.Param("run"))
	if err != nil {
		s.fail(c, named(fmt.Sprintf("plan of run %q", c.Param("run")), err))
		return
	}
	c.JSON(http.StatusOK, v1.PlanOf(plan))
}

func (s *runAPI) listAttempts(c *gin.Context) {
	ctx, id := c.Request.Context(), c.Param("run")
	if _, err := s.records(c).Run(ctx, id); err != nil {
		s.fail(c, named(fmt.Sprintf("run %q", id), err))
		return
	}
	p, err := pageOf(c, unsaidItems, maxItems, 1)
	if err != nil {
		s.fail(c, err)
		return
	}
	attempts, err := s.opts.Records.Attempts(ctx, id)
	part, cursor := cut(p, attempts, func(a holdfast.Attempt) []string { return []string{fmt.Sprintf("%09d", a.Attempt)} })
	answerList(s.base, c, p, part, v1.AttemptOf, cursor, err)
}
