package server

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runnerspec"
	"github.com/holdfast-dev/holdfast/server/claimant"
)

// launch answers who launches the runs of a runner elsewhere: an agent with a key of a runner
// of type kubernetes-agent.
func (s *agentServer) launch(c *gin.Context) {
	who, ok := s.credential(c)
	if !ok {
		return
	}
	if err := s.mayLaunch(who); err != nil {
		s.failCredential(c, who.Agent, err)
		return
	}
	var req protocol.LaunchRequest
	if err := decode(c, &req, false); err != nil {
		s.fail(c, err)
		return
	}
	if err := protocol.Check(req.Protocol); err != nil {
		s.refuseClaim(c, who.Name, who.Agent, refusedProtocol, err.Error())
		s.fail(c, holdfast.ErrorOf(holdfast.ErrForbidden, "%s", err.Error()))
		return
	}
	if s.isStopping() {
		s.fail(c, holdfast.ErrorOf(holdfast.ErrUnavailable, "server is stopping"))
		return
	}
	ctx, done := s.untilStop(c.Request.Context())
	defer done()
	answer, err := s.opts.Launches.Answer(ctx, who.Document, c.Param("call"), req)
	switch {
	case err != nil && s.isStopping() && !errors.Is(err, holdfast.ErrFenced):
		s.fail(c, holdfast.ErrorOf(holdfast.ErrUnavailable, "server is stopping"))
	case err != nil:
		s.fail(c, fmt.Errorf("%s: %w", c.Param("call"), err))
	case answer == nil:
		s.noContent(c)
	default:
		c.Header("Cache-Control", "no-store")
		c.JSON(http.StatusOK, answer)
	}
}

// mayLaunch returns why a credential is not that of a launcher.
func (s *agentServer) mayLaunch(who claimant.Credential) error {
	switch {
	case who.Key == "":
		return who.Refuse(claimant.WhyKind, "token %q is for agents that claim runs: those that launch Jobs have a key (--key)", who.Name)
	case s.opts.Launches == nil:
		return holdfast.ErrorOf(holdfast.ErrNotFound, "this server has no runs launched")
	case who.Document.Type != runnerspec.KubernetesAgent:
		return who.Refuse(claimant.WhyKind, "runner %q is of type %s: its agents claim runs, and launch nothing", who.Runner, who.Document.Type)
	}
	return nil
}
