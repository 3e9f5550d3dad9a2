package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

func (s *lockAPI) routes(api *gin.RouterGroup) {
	api.GET("/locks/:cluster", s.getLock)
	api.DELETE("/locks/:cluster", s.deleteLock)
}

func (s *lockAPI) getLock(c *gin.Context) {
	answer, err := s.lock(c.Request.Context(), c.Param("cluster"))
	if err != nil {
		s.fail(c, err)
		return
	}
	c.JSON(http.StatusOK, answer)
}

func (s *lockAPI) lock(ctx context.Context, cluster string) (v1.Lock, error) {
	holder, run, alive, err := s.opts.Commander.Lock(ctx, cluster)
	if err != nil {
		return v1.Lock{}, named(fmt.Sprintf("lock of cluster %q", cluster), err)
	}
	return v1.LockOf(cluster, holder, run, alive), nil
}

// deleteLock answers with its former holder.
func (s *lockAPI) deleteLock(c *gin.Context) {
	force, err := yes(c, "force")
	if err != nil {
		s.fail(c, err)
		return
	}
	if force && !s.mayDo(c, access.Force, c.Param("cluster")) {
		return
	}
	ctx, cluster := c.Request.Context(), c.Param("cluster")
	answer, err := s.lock(ctx, cluster)
	if err != nil {
		s.fail(c, err)
		return
	}
	err = s.opts.Commander.Unlock(ctx, cluster, caller(c).Name, force)
	switch {
	case errors.Is(err, holdfast.ErrLocked):
		problem := v1.ProblemOf(http.StatusLocked, fmt.Sprintf("cluster %q: %v, which is alive", cluster, err),
			"cancel the run and wait for it; force breaks the lock of a run that may still write")
		problem.Reason, problem.Command = holdfast.ReasonLocked, "holdfast cancel "+answer.Run.ID
		s.problem(c, problem)
	case err != nil:
		s.fail(c, named(fmt.Sprintf("lock of cluster %q", cluster), err))
	default:
		c.JSON(http.StatusOK, answer)
	}
}
