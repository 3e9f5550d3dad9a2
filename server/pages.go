package server

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/console"
	"github.com/holdfast-dev/holdfast/server/pages"
	"github.com/holdfast-dev/holdfast/server/session"
)

// Pages are what comments and statuses link to, and the rest of the console. They read
// only, so that a browser may be asked for a token as the password; commands take a bearer
// token.

// RunPage returns the path of a run's page: what it did, and all of its plan.
func RunPage(run string) string { return "/runs/" + url.PathEscape(run) }

// PullRequestPage returns the path of a pull request's page: its runs.
func PullRequestPage(ref holdfast.PullRequestRef) string {
	return "/pullrequests/" + strconv.Itoa(ref.Number) + "/" + (&url.URL{Path: ref.Repo}).EscapedPath()
}

// routes are those of the console.
func (s *pageAPI) routes(e *gin.Engine) error {
	shown, err := pages.New(pages.Options{API: e, Version: s.version, Logger: s.log, Now: s.now, Newest: s.opts.Records.LastChange})
	if err != nil {
		return err
	}
	s.pages = shown
	html := gin.WrapH(shown)
	e.GET(console.AssetPath+"*path", html)
	open := e.Group("", s.requireHost)
	open.POST("/theme", html)
	if s.sessions.On() { // forms are for whoever has one: see package pages
		open.POST(pages.ActPath, html)
		open.POST(pages.NewPath, html)
	}
	people := e.Group("", s.askPassword)
	for _, path := range pages.Paths() { // what is on one the API decides: see package pages
		people.GET(path, html)
	}
	return nil
}

// askPassword takes the password that a browser sends as the token. An unknown caller is
// asked to log in, if that is possible.
func (s *pageAPI) askPassword(c *gin.Context) {
	if _, password, ok := c.Request.BasicAuth(); ok {
		c.Request.Header.Set("Authorization", "Bearer "+password)
	}
	_, err := s.sessions.Of(c.Writer, c.Request)
	switch {
	case !errors.Is(err, holdfast.ErrUnauthorized):
		return // the API answers what else is wrong
	case s.sessions.On() && strings.Contains(c.GetHeader("Accept"), "text/html"):
		c.Redirect(http.StatusSeeOther, session.LoginPath+"?next="+url.QueryEscape(c.Request.URL.RequestURI()))
	default:
		c.Header("WWW-Authenticate", `Basic realm="Holdfast: any name, a token as the password", charset="UTF-8"`)
		c.String(http.StatusUnauthorized, "A token is missing or unknown: give it as the password, with any name.\n")
	}
	c.Abort()
}

// showLogin is the login page of the console, for a request.
func (s *apiServer) showLogin(r *http.Request) session.Show {
	return func(w http.ResponseWriter, status int, page session.Page) {
		s.pages.Login(w, r, status, console.LoginView{Next: page.Next, Failed: page.Error, Insecure: page.Insecure, Provider: page.Provider, Code: page.Code})
	}
}
