package server

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/server/claimant"
)

// base is what the handlers of all listeners have in common.
type base struct {
	limits   Limits
	log      *slog.Logger
	now      func() time.Time
	audit    Auditor // nil: refusals are only logged
	refused  claimant.Refusals
	stopping chan struct{} // closed when intake ends
}

// engine returns a router with what all listeners have in common.
func (s *base) engine(largeBodies bool) *gin.Engine {
	e := gin.New()
	// A redirect would make a client repeat an upload, or lose its method.
	e.RedirectTrailingSlash = false
	e.HandleMethodNotAllowed = true
	_ = e.SetTrustedProxies(nil) // cannot fail: nothing to parse
	e.Use(s.logRequests, s.recoverPanics, s.guardTimes(largeBodies))
	e.NoRoute(func(c *gin.Context) {
		s.refuse(c, http.StatusNotFound, "no such path", "GET /api/v1/openapi.json describes all paths")
	})
	e.NoMethod(func(c *gin.Context) {
		s.refuse(c, http.StatusMethodNotAllowed, "method "+c.Request.Method+" is not allowed here", "")
	})
	e.GET("/healthz", func(c *gin.Context) { c.String(http.StatusOK, "ok\n") })
	return e
}

func (s *base) isStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// untilStop returns ctx, done also when intake ends: for requests that wait.
func (s *base) untilStop(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-s.stopping:
			cancel(holdfast.ErrorOf(holdfast.ErrUnavailable, "server is stopping"))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(context.Canceled); <-done }
}
