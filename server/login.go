package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/server/lobby"
	"github.com/holdfast-dev/holdfast/server/session"
)

// loginRoutes are the pages to log in and out.
func (s *apiServer) loginRoutes(e *gin.Engine) {
	if !s.sessions.On() {
		return
	}
	pages := func(c *gin.Context) {
		show := s.opts.Login.Show
		if show == nil {
			show = s.showLogin(c.Request)
		}
		s.sessions.Handler(show, s.opts.Login.Provider).ServeHTTP(c.Writer, c.Request)
	}
	known := func(c *gin.Context) {
		pages(c)
		if status := c.Writer.Status(); status == http.StatusSeeOther {
			lobby.Known(c.Request.Context())
		}
	}
	e.GET(session.LoginPath, pages)
	e.POST(session.LoginPath, known)
	e.POST(session.LogoutPath, pages)
	if s.opts.Login.Pages == nil {
		e.GET(session.OncePath, pages)
		e.POST(session.OncePath, known)
	} else {
		others := gin.WrapH(s.opts.Login.Pages(s.sessions))
		e.Any(session.LoginPath+"/*path", func(c *gin.Context) {
			if c.Request.URL.Path == session.OncePath {
				known(c)
				return
			}
			others(c)
		})
		e.Any(session.DevicePath, others)
		e.Any(session.DevicePath+"/*path", others)
	}
}

// whileAllowed is untilStop for an answer that takes long: it is done also when the caller's
// session or token ends, or the caller's roles change.
func (s *apiServer) whileAllowed(c *gin.Context) (context.Context, context.CancelFunc) {
	ctx, done := s.untilStop(c.Request.Context())
	ctx, cancel := context.WithCancelCause(ctx)
	who, request, ended := caller(c), c.Request, make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(s.sessions.Check())
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			// Trouble in reading that ends nothing: what is sent is read from there, too.
			if err := s.sessions.Still(request, who); errors.Is(err, holdfast.ErrUnauthorized) {
				cancel(err)
			}
		}
	}()
	return ctx, func() { cancel(context.Canceled); <-ended; done() }
}
