package server

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/report"
	"github.com/holdfast-dev/holdfast/server/session"
)

// Pages of plain text are what comments and statuses link to. They read only, so
// that a browser may be asked for a token as the password; commands take a bearer
// token.

// RunPage returns the path of a run's page: what it did, and all of its plan.
func RunPage(run string) string { return "/runs/" + url.PathEscape(run) }

// PullRequestPage returns the path of a pull request's page: its runs.
func PullRequestPage(ref holdfast.PullRequestRef) string {
	return "/pullrequests/" + strconv.Itoa(ref.Number) + "/" + (&url.URL{Path: ref.Repo}).EscapedPath()
}

func (s *pageAPI) routes(e *gin.Engine) {
	pages := e.Group("", s.askPassword, s.admit)
	pages.GET("/runs/:run", s.runPage)
	pages.GET("/pullrequests/:number/*repo", s.pullRequestPage)
}

// askPassword takes the password that a browser sends as the token. Who is nobody is asked to
// log in, if that is possible.
func (s *pageAPI) askPassword(c *gin.Context) {
	if _, password, ok := c.Request.BasicAuth(); ok {
		c.Request.Header.Set("Authorization", "Bearer "+password)
	}
	_, err := s.sessions.Of(c.Writer, c.Request)
	switch {
	case !errors.Is(err, holdfast.ErrUnauthorized):
		return // admit answers what else is wrong
	case s.sessions.On() && strings.Contains(c.GetHeader("Accept"), "text/html"):
		c.Redirect(http.StatusSeeOther, session.LoginPath+"?next="+url.QueryEscape(c.Request.URL.RequestURI()))
	default:
		c.Header("WWW-Authenticate", `Basic realm="Holdfast: any name, a token as the password", charset="UTF-8"`)
		c.String(http.StatusUnauthorized, "A token is missing or unknown: give it as the password, with any name.\n")
	}
	c.Abort()
}

// page answers with text that no browser takes for anything else.
func (s *pageAPI) page(c *gin.Context, text string) {
	c.Header("X-Content-Type-Options", "nosniff")
	c.Header("Cache-Control", "no-store")
	c.String(http.StatusOK, "%s", text)
}

func (s *pageAPI) runPage(c *gin.Context) {
	ctx := c.Request.Context()
	run, err := s.records(c).Run(ctx, c.Param("run"))
	if err != nil {
		s.fail(c, named(fmt.Sprintf("run %q", c.Param("run")), err))
		return
	}
	text := fmt.Sprintf("Run %s\n%s of %s", run.ID, run.Kind, run.Cluster)
	if !run.PullRequest.IsZero() {
		text += " for " + run.PullRequest.String()
	}
	text += ": " + strings.TrimSpace(string(run.Status)+" "+string(run.Reason)) + "\n\n" + report.FailureText(run)
	switch plan, err := s.opts.Records.Plan(ctx, run.ID); {
	case err == nil:
		text += report.PlanText(v1.PlanOf(plan).Plan())
	case !errors.Is(err, holdfast.ErrNotFound):
		s.fail(c, fmt.Errorf("plan of run %q: %w", run.ID, err))
		return
	}
	s.page(c, text+"\nThe log: holdfast logs "+run.ID+"\n")
}

func (s *pageAPI) pullRequestPage(c *gin.Context) {
	ctx := c.Request.Context()
	number, err := strconv.Atoi(c.Param("number"))
	ref := holdfast.PullRequestRef{Repo: strings.TrimPrefix(c.Param("repo"), "/"), Number: number}
	if err != nil || number <= 0 {
		s.fail(c, badRequest("%q is not the number of a pull request", c.Param("number")))
		return
	}
	record, err := s.records(c).PullRequest(ctx, ref)
	if err != nil {
		s.fail(c, named("pull request "+ref.String(), err))
		return
	}
	runs, err := s.records(c).Runs(ctx, holdfast.RunFilter{PullRequest: &ref, Limit: maxItems})
	if err != nil {
		s.fail(c, fmt.Errorf("runs of pull request %s: %w", ref, err))
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Pull request %s, %s, head %s\n\n", ref, record.State, record.Head.Short())
	for _, run := range runs {
		fmt.Fprintf(&b, "%-8s %-11s %-30s %s\n", run.Kind, run.Status, run.Cluster, RunPage(run.ID))
	}
	if len(runs) == 0 {
		b.WriteString("No runs.\n")
	}
	s.page(c, b.String())
}
