package server

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/server/lobby"
	"github.com/holdfast-dev/holdfast/server/session"
)

// Token is a bearer token that the server knows by its hash only.
type Token = session.Token

// HashToken returns what is kept of a token. Tokens are random and long, so
// that a plain hash cannot be guessed back.
func HashToken(token string) [32]byte { return session.HashToken(token) }

const callerKey = "holdfast/caller"

// rights are the verbs of the API's routes, by method and path.
func rights() map[string]access.Verb {
	verbs := make(map[string]access.Verb)
	route := strings.NewReplacer("{", ":", "}", "")
	for _, op := range v1.Operations() {
		verbs[op.Method+" /api/v1"+route.Replace(op.Path)] = op.Verb
	}
	return verbs
}

// admit lets callers pass that may use a route in any project, and limits them to the
// projects where they may. A route without an operation needs the verb read.
func (s *apiServer) admit(c *gin.Context) {
	who, err := s.sessions.Of(c.Writer, c.Request)
	switch {
	case errors.Is(err, holdfast.ErrUnauthorized):
		c.Header("WWW-Authenticate", `Bearer realm="holdfast"`)
		s.refuse(c, http.StatusUnauthorized, err.Error(), "give a token by HOLDFAST_TOKEN, --token-file or the client file")
		return
	case err != nil:
		s.fail(c, err)
		return
	}
	lobby.Known(c.Request.Context())
	if err := s.sessions.Guard(c.Writer, c.Request, who); err != nil {
		s.fail(c, err)
		return
	}
	c.Request = c.Request.WithContext(holdfast.WithOrigin(c.Request.Context(), session.Origin(c.Request, who)))
	c.Set(callerKey, who)
	verb := s.verbOf(c)
	if role := verb.Role(); !who.Grants.Highest().Includes(role) {
		s.refuseRole(c, "this", role)
		return
	}
	if s.holdToScope(c, verb); !c.IsAborted() {
		c.Next()
	}
}

// verbOf is what a request is for.
func (s *apiServer) verbOf(c *gin.Context) access.Verb {
	if verb, ok := s.verbs[c.Request.Method+" "+c.FullPath()]; ok {
		return verb
	}
	return access.Read
}

// refuseRole refuses what needs a role that the caller has in no project.
func (s *apiServer) refuseRole(c *gin.Context, what string, role access.Role) {
	who := caller(c)
	s.refuse(c, http.StatusForbidden,
		fmt.Sprintf("%s %q has role %s; %s requires %s", kindOf(who), who.Name, cmp.Or(who.Grants.Highest(), "none"), what, role),
		"ask an administrator of Holdfast for that role")
}

// kindOf is what a caller is called in refusals.
func kindOf(who access.Principal) string {
	if who.Person.IsZero() {
		return "token"
	}
	return "person"
}

// caller returns who was admitted.
func caller(c *gin.Context) access.Principal {
	value, _ := c.Get(callerKey)
	who, _ := value.(access.Principal)
	return who
}

// identity is the attempt that a request comes from.
type identity struct {
	run holdfast.RunBrief
	ref holdfast.AttemptRef
	// over is true if the credential is genuine and the attempt has ended: it may only
	// deliver what would be lost otherwise.
	over bool
}

// identify returns the attempt whose token the request carries. Engines can
// send it as the password of basic authentication only.
func (s *agentServer) identify(c *gin.Context) (identity, error) {
	token := session.Bearer(c.Request)
	if token == "" {
		if _, password, ok := c.Request.BasicAuth(); ok {
			token = password
		}
	}
	ref, _, ok := protocol.ParseRunToken(token)
	if !ok {
		return identity{}, holdfast.ErrorOf(holdfast.ErrUnauthorized, "token is missing, or does not belong to a run")
	}
	ctx := c.Request.Context()
	run, err := s.opts.Dispatcher.Authorize(ctx, ref, token)
	switch {
	case err == nil:
		lobby.Known(ctx)
	case !errors.Is(err, holdfast.ErrFenced):
		return identity{}, err
	}
	return identity{run: run, ref: ref, over: err != nil}, nil
}

// identifyLive is identify for what only a current attempt may do.
func (s *agentServer) identifyLive(c *gin.Context) (identity, error) {
	who, err := s.identify(c)
	if err == nil && who.over {
		err = fmt.Errorf("attempt %d of run %s is over: %w", who.ref.Attempt, who.ref.Run, holdfast.ErrFenced)
	}
	return who, err
}
