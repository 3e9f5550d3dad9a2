package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/proposals"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

// Runners are runners, rules and environments, and what moves them.
type Runners struct {
	Records  RunnerRecords
	Operator RunnerOperator
}

// RunnerRecords are what is in force; *datastore.Store is one.
type RunnerRecords interface {
	Runners(ctx context.Context) ([]runnerspec.Record, error)
	RunnerRules(ctx context.Context) ([]runnerspec.RuleRecord, error)
	Environments(ctx context.Context, filter holdfast.EnvironmentFilter) ([]holdfast.Environment, error)
}

// RunnerOperator does what people ask for; *reconciler.Reconciler is one.
type RunnerOperator interface {
	// RefreshRunner pins an environment to what the rules say now; with dry it only says what
	// would change. ErrNotFound: it has not run, or no rule matches it. A
	// *holdfast.EnvironmentBusyError if one of its runs is running.
	RefreshRunner(ctx context.Context, env holdfast.EnvironmentKey, dry bool, actor string) (before, after holdfast.Environment, err error)
	// ProposeRunner makes a pull request that changes the document of a runner; Faults say
	// what is wrong with what is asked for.
	ProposeRunner(ctx context.Context, p proposals.RunnerChange) (proposals.RunnerOutcome, error)
}

type runnerAPI struct{ *apiServer }

func (s *runnerAPI) routes(api *gin.RouterGroup) {
	api.GET("/runners", s.listRunners)
	api.GET("/runners/:runner", s.getRunner)
	api.GET("/environments", s.listEnvironments)
	api.POST("/environments/refresh", s.refresh)
	api.POST("/runners", s.propose)
}

// fleetOf are all runners, the local one first.
func (s *runnerAPI) fleetOf(ctx context.Context) ([]runnerspec.Record, error) {
	records, err := s.opts.Runners.Records.Runners(ctx)
	local := runnerspec.Record{Document: runnerspec.Runner{Name: holdfast.LocalRunner, Type: runnerspec.Local}}
	return append([]runnerspec.Record{local}, records...), err
}

// living are the living agents of each runner, by name.
func (s *runnerAPI) living() map[string][]string {
	agents := make(map[string][]string)
	for _, a := range s.opts.Registry.Heard() {
		if a.Living {
			runner := cmp.Or(a.Runner, holdfast.LocalRunner)
			agents[runner] = append(agents[runner], a.ID)
		}
	}
	return agents
}

func (s *runnerAPI) listRunners(c *gin.Context) {
	p, err := pageOf(c, unsaidItems, maxItems, 1)
	if err != nil {
		s.fail(c, err)
		return
	}
	ctx := c.Request.Context()
	runners, err := s.fleetOf(ctx)
	environments, err2 := s.opts.Runners.Records.Environments(ctx, holdfast.EnvironmentFilter{})
	pinned := make(map[string]int)
	for _, env := range environments {
		pinned[env.Runner]++
	}
	agents := s.living()
	part, cursor := cut(p, runners, func(r runnerspec.Record) []string {
		if r.Document.Name == holdfast.LocalRunner {
			return []string{""} // it is the first one, whatever the others are called
		}
		return []string{r.Document.Name}
	})
	answerList(s.base, c, p, part, func(r runnerspec.Record) v1.Runner {
		return v1.RunnerOf(r, pinned[r.Document.Name], len(agents[r.Document.Name]))
	}, cursor, cmp.Or(err, err2))
}

func (s *runnerAPI) getRunner(c *gin.Context) {
	ctx, name := c.Request.Context(), c.Param("runner")
	runners, err := s.fleetOf(ctx)
	i := slices.IndexFunc(runners, func(r runnerspec.Record) bool { return r.Document.Name == name })
	if err == nil && i < 0 {
		err = named(fmt.Sprintf("runner %q", name), holdfast.ErrNotFound)
	}
	rules, err2 := s.opts.Runners.Records.RunnerRules(ctx)
	environments, err3 := s.opts.Runners.Records.Environments(ctx, holdfast.EnvironmentFilter{Runner: name})
	if err := cmp.Or(err, err2, err3); err != nil {
		s.fail(c, err)
		return
	}
	agents := s.living()[name]
	answer := v1.RunnerDetail{Runner: v1.RunnerOf(runners[i], len(environments), len(agents)), Pinned: convert(environments, v1.EnvironmentOf), IDs: agents}
	for _, rule := range rules {
		if rule.Document.Runner == name {
			answer.Rules = append(answer.Rules, v1.RunnerRuleOf(rule))
		}
	}
	c.JSON(http.StatusOK, answer)
}

func (s *runnerAPI) listEnvironments(c *gin.Context) {
	p, err := pageOf(c, unsaidItems, maxItems, 2)
	if err != nil {
		s.fail(c, err)
		return
	}
	filter := holdfast.EnvironmentFilter{Projects: reach(c, access.Read), Runner: c.Query("runner")}
	if project := c.Query("project"); project != "" {
		if !scope(filter.Projects).has(project) {
			answerList(s.base, c, p, nil, v1.EnvironmentOf, "", nil)
			return
		}
		filter.Projects = []string{project}
	}
	environments, err := s.opts.Runners.Records.Environments(c.Request.Context(), filter)
	part, cursor := cut(p, environments, func(e holdfast.Environment) []string { return []string{e.Project, e.Name} })
	answerList(s.base, c, p, part, v1.EnvironmentOf, cursor, err)
}

func (s *runnerAPI) refresh(c *gin.Context) {
	var req v1.RefreshRequest
	if err := decode(c, &req, true); err != nil {
		s.fail(c, err)
		return
	}
	if !s.mayTouchProject(c, access.Propose, req.Project) {
		return
	}
	env := holdfast.EnvironmentKey{Project: req.Project, Name: req.Environment}
	before, after, err := s.opts.Runners.Operator.RefreshRunner(c.Request.Context(), env, req.DryRun, caller(c).Name)
	if err != nil {
		s.fail(c, err)
		return
	}
	c.JSON(http.StatusOK, v1.Refresh{Before: v1.EnvironmentOf(before), After: v1.EnvironmentOf(after), DryRun: req.DryRun})
}

func (s *runnerAPI) propose(c *gin.Context) {
	var req v1.RunnerProposal
	if err := decode(c, &req, true); err != nil {
		s.fail(c, err)
		return
	}
	ctx, cancel := outlasting(c)
	defer cancel()
	made, err := s.opts.Runners.Operator.ProposeRunner(ctx, proposals.RunnerChange{
		Name: req.Name, Change: req.Change, Type: req.Type, Document: req.Document, Set: req.Set, Repo: req.Repo, Path: req.Path, By: caller(c).Name,
	})
	if err == nil {
		err = s.asked(c, made.PullRequest.PullRequestRef)
	}
	var faults holdfast.Faults
	switch {
	case errors.As(err, &faults):
		s.fail(c, badRequest("%v", err))
		return
	case err != nil:
		s.fail(c, err)
		return
	}
	c.JSON(http.StatusOK, v1.ProposedRunner{
		PullRequest: v1.PullRequestRef(made.PullRequest.PullRequestRef), State: string(made.PullRequest.State), URL: made.PullRequest.URL,
		Branch: made.PullRequest.Branch, Path: made.Path, Document: made.Document,
	})
}
