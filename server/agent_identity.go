package server

import (
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// issueToken signs a token of an attempt, as what its run is on record: the request says for
// whom it is, and nothing else.
func (s *agentServer) issueToken(c *gin.Context) {
	who, err := s.attemptOf(c)
	var asked protocol.TokenRequest
	if err == nil {
		err = decode(c, &asked, false)
	}
	if err == nil {
		err = fenced(who, asked.Fence)
	}
	if err == nil && s.opts.Issuer == nil {
		err = holdfast.ErrorOf(holdfast.ErrNotFound, "this server issues no tokens")
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	run, err := s.opts.Runs.Run(c.Request.Context(), who.ref.Run)
	if err == nil && run.Attempt != who.ref.Attempt {
		err = holdfast.ErrFenced // claimed again meanwhile
	}
	var token protocol.IdentityToken
	if err == nil {
		token, err = s.opts.Issuer.Issue(c.Request.Context(), run, asked.Audience)
	}
	if err != nil {
		s.fail(c, fmt.Errorf("token of run %s: %w", who.ref.Run, err))
		return
	}
	c.Header("Cache-Control", "no-store")
	c.JSON(http.StatusOK, token)
}
