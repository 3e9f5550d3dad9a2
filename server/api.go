package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

func (s *Server) apiRoutes() http.Handler {
	e := s.engine(false)
	open := e.Group("", s.requireHost)
	open.GET("/readyz", s.ready)
	if s.opts.Metrics != nil {
		open.GET("/metrics", gin.WrapH(s.opts.Metrics))
	}
	s.pageRoutes(e)
	base := e.Group("/api/v1")

	view := base.Group("", s.requireRole(RoleViewer))
	view.GET("/version", s.getVersion)
	view.GET("/whoami", s.getCaller)
	view.GET("/reasons", s.listReasons)
	view.GET("/openapi.json", s.getDescription)
	view.GET("/clusters", s.listClusters)
	view.GET("/clusters/:name", s.getCluster)
	view.GET("/clusters/:name/outputs", s.getOutputs)
	view.GET("/clusters/:name/history", s.listTransitions)
	view.GET("/clusters/:name/family", s.getFamily)
	view.GET("/clusters/:name/drift", s.getDrift)
	view.GET("/drift", s.listDrift)
	view.GET("/resources", s.listResources)
	view.GET("/suspensions", s.listSuspensions)
	view.GET("/templates", s.listTemplates)
	view.GET("/templates/:name", s.getTemplate)
	view.GET("/runs", s.listRuns)
	view.GET("/runs/:run", s.getRun)
	view.GET("/runs/:run/plan", s.getPlan)
	view.GET("/runs/:run/attempts", s.listAttempts)
	view.GET("/runs/:run/log", s.getLog)
	view.GET("/pullrequests", s.listPullRequests)
	view.GET("/pullrequests/get", s.getPullRequest)
	view.GET("/agents", s.listAgents)
	view.GET("/events", s.streamEvents)
	view.GET("/audit", s.listAudit)
	view.GET("/locks/:cluster", s.getLock)

	operate := base.Group("", s.requireRole(RoleOperator))
	operate.POST("/commands", s.postCommand)
	operate.POST("/reconcile", s.postReconcile)
	operate.POST("/clusters/:name/suspend", s.suspend(true))
	operate.POST("/clusters/:name/resume", s.suspend(false))
	operate.POST("/clusters/:name/drift/check", s.postDriftCheck)
	operate.POST("/clusters/:name/transfer", s.postTransfer)
	operate.POST("/upgrades", s.postUpgrade)
	operate.POST("/suspend", s.suspendAll(true))
	operate.POST("/resume", s.suspendAll(false))
	operate.DELETE("/locks/:cluster", s.deleteLock)
	s.stateRoutes(view, operate)
	return e
}

func (s *Server) getVersion(c *gin.Context) {
	c.JSON(http.StatusOK, v1.Version{Version: s.opts.Version, Time: s.opts.Now().UTC()})
}

func (s *Server) getCaller(c *gin.Context) {
	token := caller(c)
	c.JSON(http.StatusOK, v1.Caller{Name: token.Name, Role: string(token.Role), Projects: token.Projects})
}

// listReasons answers with what the words mean that say why something waits, was refused
// or failed.
func (s *Server) listReasons(c *gin.Context) {
	if !s.knownQuery(c, "limit", "cursor") {
		return
	}
	p, err := pageOf(c, maxItems, maxItems, 1)
	part, cursor := cut(p, holdfast.Reasons(), func(r holdfast.Reason) []string { return []string{string(r)} })
	answerList(s, c, p, part, v1.ReasonOf, cursor, err)
}

// getDescription answers with the description of the API.
func (s *Server) getDescription(c *gin.Context) {
	c.Data(http.StatusOK, "application/json; charset=utf-8", v1.OpenAPI())
}

// same is the conversion of what is what the API says already.
func same[T any](item T) T { return item }

func convert[From, To any](items []From, one func(From) To) []To {
	out := make([]To, len(items))
	for i, item := range items {
		out[i] = one(item)
	}
	return out
}

func (s *Server) listRuns(c *gin.Context) {
	if !s.knownQuery(c, "cluster", "repo", "number", "kind", "status", "limit", "cursor", "fields") {
		return
	}
	filter := holdfast.RunFilter{Cluster: c.Query("cluster")}
	for _, kind := range c.QueryArray("kind") {
		filter.Kinds = append(filter.Kinds, holdfast.RunKind(kind))
	}
	for _, status := range c.QueryArray("status") {
		filter.Statuses = append(filter.Statuses, holdfast.RunStatus(status))
	}
	var err error
	if c.Query("repo") != "" || c.Query("number") != "" {
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
	answerList(s, c, p, runs, v1.RunOf, full(p, runs, runKey), err)
}

func runKey(r holdfast.Run) []string {
	return []string{strconv.FormatInt(r.CreatedAt.UnixNano(), 10), r.ID}
}

// runPage reads which part of a list of runs is asked for, and which of their fields.
func runPage(c *gin.Context, filter *holdfast.RunFilter) (page, error) {
	p, err := pageOf(c, unsaidItems, maxItems, 2)
	if err != nil {
		return p, err
	}
	at, err := p.number(0)
	if err != nil {
		return p, err
	}
	filter.Limit = p.limit
	if p.after != nil {
		filter.After = holdfast.RunMark{CreatedAt: time.Unix(0, at).UTC(), ID: p.part(1)}
	}
	p.fields, err = fieldsOf[v1.Run](c)
	return p, err
}

func (s *Server) getRun(c *gin.Context) {
	run, err := s.records(c).Run(c.Request.Context(), c.Param("run"))
	if err != nil {
		s.fail(c, fmt.Errorf("run %q: %w", c.Param("run"), err))
		return
	}
	c.JSON(http.StatusOK, v1.RunOf(run))
}

func (s *Server) getPlan(c *gin.Context) {
	plan, err := s.opts.Records.Plan(c.Request.Context(), c.Param("run"))
	if err != nil {
		s.fail(c, fmt.Errorf("plan of run %q: %w", c.Param("run"), err))
		return
	}
	c.JSON(http.StatusOK, v1.PlanOf(plan))
}

func (s *Server) listAttempts(c *gin.Context) {
	if !s.knownQuery(c, "limit", "cursor") {
		return
	}
	ctx, id := c.Request.Context(), c.Param("run")
	if _, err := s.records(c).Run(ctx, id); err != nil {
		s.fail(c, fmt.Errorf("run %q: %w", id, err))
		return
	}
	p, err := pageOf(c, unsaidItems, maxItems, 1)
	if err != nil {
		s.fail(c, err)
		return
	}
	attempts, err := s.opts.Records.Attempts(ctx, id)
	part, cursor := cut(p, attempts, func(a holdfast.Attempt) []string { return []string{fmt.Sprintf("%09d", a.Attempt)} })
	answerList(s, c, p, part, v1.AttemptOf, cursor, err)
}

func (s *Server) listPullRequests(c *gin.Context) {
	if !s.knownQuery(c, "repo", "state", "cluster", "limit", "cursor") {
		return
	}
	filter := holdfast.PullRequestFilter{Repo: c.Query("repo"), Cluster: c.Query("cluster")}
	for _, state := range c.QueryArray("state") {
		filter.States = append(filter.States, holdfast.PullRequestState(state))
	}
	p, err := pageOf(c, unsaidItems, maxItems, 2)
	number, err2 := p.number(0)
	if err = errors.Join(err, err2); err != nil {
		s.fail(c, err)
		return
	}
	filter.Limit, filter.After = p.limit, holdfast.PullRequestRef{Number: int(number), Repo: p.part(1)}
	records, err := s.records(c).PullRequests(c.Request.Context(), filter)
	key := func(r holdfast.PullRequestRecord) []string { return []string{strconv.Itoa(r.Number), r.Repo} }
	answerList(s, c, p, records, v1.PullRequestOf, full(p, records, key), err)
}

func (s *Server) getPullRequest(c *gin.Context) {
	ctx := c.Request.Context()
	ref, err := pullRequestOf(c)
	if err == nil && ref.IsZero() {
		err = badRequest("number of the pull request is missing")
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	record, err := s.records(c).PullRequest(ctx, ref)
	if err != nil {
		s.fail(c, fmt.Errorf("pull request %s: %w", ref, err))
		return
	}
	answer := v1.PullRequestDetail{PullRequest: v1.PullRequestOf(record)}
	if answer.Comments, err = s.comments(ctx, ref); err == nil {
		answer.Statuses, err = s.statuses(ctx, record)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	if answer.Refused, err = s.refusedPosts(ctx, ref); err != nil {
		s.fail(c, err)
		return
	}
	c.JSON(http.StatusOK, answer)
}

// refusedPosts is what the forge does not take of what a pull request shall show.
func (s *Server) refusedPosts(ctx context.Context, ref holdfast.PullRequestRef) ([]v1.RefusedPost, error) {
	posts, err := s.opts.Posts.Posts(ctx, holdfast.PostFilter{PullRequest: ref})
	if err != nil {
		return nil, fmt.Errorf("list posts of %s: %w", ref, err)
	}
	var refused []v1.RefusedPost
	for _, post := range posts {
		if !post.GivenUp {
			continue
		}
		what := "of " + ref.String()
		switch post.Kind {
		case holdfast.PostStatus, holdfast.PostCheck:
			what = post.Status.Context + " of " + post.Status.Revision.Short()
		case holdfast.PostReaction:
			what = string(post.Reaction) + " at comment " + post.CommentID
		default: // one comment, answers, an issue
		}
		refused = append(refused, v1.RefusedPost{Kind: post.Kind, What: what, Reason: post.LastError})
	}
	return refused, nil
}

// comments returns those of the local forge, else the one that we posted
// elsewhere.
func (s *Server) comments(ctx context.Context, ref holdfast.PullRequestRef) ([]v1.Comment, error) {
	if s.opts.Local != nil {
		comments, err := s.opts.Local.LocalComments(ctx, ref)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return nil, fmt.Errorf("read comments of %s: %w", ref, err)
		}
		if len(comments) > 0 {
			return convert(comments, v1.CommentOf), nil
		}
	}
	post, ok, err := s.posted(ctx, "comment:"+ref.String())
	if err != nil || !ok || post.Body == "" {
		return nil, err
	}
	return []v1.Comment{{
		ID: post.ExternalID, Author: "holdfast", Bot: true,
		Body: post.Body, CreatedAt: post.PostedAt, UpdatedAt: post.PostedAt,
	}}, nil
}

func (s *Server) statuses(ctx context.Context, record holdfast.PullRequestRecord) ([]v1.CommitStatus, error) {
	var statuses []v1.CommitStatus
	revisions := slices.Compact([]holdfast.Revision{record.Head, record.MergeCommit})
	for _, rev := range revisions {
		if rev == "" {
			continue
		}
		of, err := s.statusesOf(ctx, record.Repo, rev)
		if err != nil {
			return nil, fmt.Errorf("read statuses of %s: %w", rev.Short(), err)
		}
		statuses = append(statuses, of...)
	}
	return statuses, nil
}

func (s *Server) statusesOf(ctx context.Context, repo string, rev holdfast.Revision) ([]v1.CommitStatus, error) {
	if s.opts.Local != nil {
		statuses, err := s.opts.Local.LocalStatuses(ctx, repo, rev)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return nil, err
		}
		if len(statuses) > 0 {
			return convert(statuses, v1.CommitStatusOf), nil
		}
	}
	var statuses []v1.CommitStatus
	for _, name := range []string{holdfast.ContextPlan, holdfast.ContextApply} {
		post, ok, err := s.posted(ctx, fmt.Sprintf("status:%s:%s:%s", repo, rev, name))
		if err != nil {
			return nil, err
		}
		if ok {
			statuses = append(statuses, v1.CommitStatusOf(post.Status))
		}
	}
	return statuses, nil
}

func (s *Server) posted(ctx context.Context, key string) (holdfast.Post, bool, error) {
	if s.opts.Posts == nil {
		return holdfast.Post{}, false, nil
	}
	post, err := s.opts.Posts.Post(ctx, key)
	if errors.Is(err, holdfast.ErrNotFound) {
		return holdfast.Post{}, false, nil
	} else if err != nil {
		return holdfast.Post{}, false, fmt.Errorf("read post %s: %w", key, err)
	}
	return post, true, nil
}

func (s *Server) listAgents(c *gin.Context) {
	if !s.knownQuery(c, "limit", "cursor") {
		return
	}
	p, err := pageOf(c, unsaidItems, maxItems, 1)
	if err != nil {
		s.fail(c, err)
		return
	}
	agents, err := s.opts.Registry.Agents(c.Request.Context())
	part, cursor := cut(p, agents, func(a holdfast.AgentStatus) []string { return []string{a.ID} })
	answerList(s, c, p, part, v1.AgentOf, cursor, err)
}

func (s *Server) listAudit(c *gin.Context) {
	if !s.knownQuery(c, "object", "limit", "cursor") {
		return
	}
	p, err := pageOf(c, unsaidItems, maxItems, 1)
	before, err2 := p.number(0)
	if err = errors.Join(err, err2); err != nil {
		s.fail(c, err)
		return
	}
	entries, place, err := s.opts.Records.AuditPage(c.Request.Context(), c.Query("object"), before, p.limit)
	cursor := full(p, entries, func(holdfast.AuditEntry) []string { return []string{strconv.FormatInt(place, 10)} })
	answerList(s, c, p, entries, v1.AuditEntryOf, cursor, err)
}

// knownQuery refuses parameters that do not exist: a misspelt filter would
// select everything.
func (s *Server) knownQuery(c *gin.Context, known ...string) bool {
	for key := range c.Request.URL.Query() {
		if !slices.Contains(known, key) {
			s.fail(c, &badRequestError{
				status: http.StatusBadRequest, text: fmt.Sprintf("unknown parameter %q", key),
				hint: "one of: " + strings.Join(known, ", "),
			})
			return false
		}
	}
	return true
}

// pullRequestOf reads repo and number; no number is the tracked branch.
func pullRequestOf(c *gin.Context) (holdfast.PullRequestRef, error) {
	ref := holdfast.PullRequestRef{Repo: c.Query("repo")}
	if ref.Repo == "" {
		return ref, badRequest("repo of the pull request is missing")
	}
	number := c.Query("number")
	if number == "" {
		return ref, nil
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 {
		return ref, badRequest("number %q is not one of a pull request", number)
	}
	ref.Number = n
	return ref, nil
}

// yes reads a parameter that is true or false; absent means false.
func yes(c *gin.Context, name string) (bool, error) {
	switch value := c.Query(name); value {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, badRequest("%s %q: want true or false", name, value)
	}
}
