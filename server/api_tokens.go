package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
	"github.com/holdfast-dev/holdfast/server/session"
)

// PersonalTokens are made, listed and deleted; *login.Desk has them. With all they are those
// of everybody.
type PersonalTokens interface {
	// CreateToken makes one for the caller, and returns its secret. ErrRejected, with the
	// reason, if such a token is not allowed.
	CreateToken(ctx context.Context, who access.Principal, wish access.Wish) (secret string, t access.PersonalToken, err error)
	Tokens(ctx context.Context, who access.Principal, all bool) ([]access.PersonalToken, error)
	DeleteToken(ctx context.Context, who access.Principal, id string, all bool) error
}

// SessionLists are sessions on record; *datastore.Store has them.
type SessionLists interface {
	// Sessions lists those of a person; of nobody, all.
	Sessions(ctx context.Context, person access.PersonID) ([]access.Session, error)
	EndSession(ctx context.Context, id string) error
}

type tokenAPI struct{ *apiServer }

func (s *tokenAPI) routes(api *gin.RouterGroup) {
	api.GET("/tokens", s.listTokens)
	api.POST("/tokens", s.postToken)
	api.DELETE("/tokens/:id", s.deleteToken)
	api.GET("/sessions", s.listSessions)
	api.DELETE("/sessions/:id", s.deleteSession)
	api.POST("/sessions/once", s.postOnce)
}

// postOnce answers with the way into the console, for whoever shows a token of the
// configuration.
func (s *tokenAPI) postOnce(c *gin.Context) {
	path, until, err := s.sessions.Once(c.Request.Context(), caller(c))
	if err != nil {
		s.fail(c, err)
		return
	}
	s.record(c.Request.Context(), holdfast.NewAuditEntry(s.now(), caller(c).Name, "session.once", caller(c).Name, ""))
	c.JSON(http.StatusCreated, v1.OnceLogin{Path: path, Until: until})
}

// everybody reads the parameter all, which needs a stronger role than the route. It
// answers, and reports false, if that may not be.
func (s *tokenAPI) everybody(c *gin.Context) (all, ok bool) {
	all, err := yes(c, "all")
	if err != nil {
		s.fail(c, err)
		return false, false
	}
	return all, !all || s.mayDo(c, access.Revoke) && s.mayTouchProject(c, access.Revoke, "")
}

func (s *tokenAPI) listTokens(c *gin.Context) {
	all, ok := s.everybody(c)
	if !ok {
		return
	}
	p, err := pageOf(c, unsaidItems, maxItems, 1)
	if err != nil {
		s.fail(c, err)
		return
	}
	tokens, err := s.opts.Login.Tokens.Tokens(c.Request.Context(), caller(c), all)
	slices.SortFunc(tokens, func(a, b access.PersonalToken) int { return strings.Compare(a.ID, b.ID) })
	part, cursor := cut(p, tokens, func(t access.PersonalToken) []string { return []string{t.ID} })
	answerList(s.base, c, p, part, v1.TokenOf, cursor, err)
}

func (s *tokenAPI) postToken(c *gin.Context) {
	var req v1.TokenRequest
	if err := decode(c, &req, true); err != nil {
		s.fail(c, err)
		return
	}
	lifetime, err := time.ParseDuration(req.Lifetime)
	if err != nil {
		s.fail(c, badRequest("lifetime %.40q: want a duration, such as 720h", req.Lifetime))
		return
	}
	secret, t, err := s.opts.Login.Tokens.CreateToken(c.Request.Context(), caller(c), access.Wish{
		Name: req.Name, Limit: access.Limit{Role: access.Role(req.Role), Projects: req.Projects}, Lifetime: lifetime, From: session.Address(c.Request),
	})
	if errors.Is(err, holdfast.ErrRejected) {
		err = badRequest("%v", err)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	c.Header("Cache-Control", "no-store")
	c.JSON(http.StatusCreated, v1.NewToken{Token: v1.TokenOf(t), Secret: secret})
}

func (s *tokenAPI) deleteToken(c *gin.Context) {
	all, ok := s.everybody(c)
	if !ok {
		return
	}
	if err := s.opts.Login.Tokens.DeleteToken(c.Request.Context(), caller(c), c.Param("id"), all); err != nil {
		s.fail(c, named(fmt.Sprintf("token %q", c.Param("id")), err))
		return
	}
	c.JSON(http.StatusOK, struct{}{})
}

// sessionsOf returns the sessions that the caller may end: their own, or everybody's.
func (s *tokenAPI) sessionsOf(c *gin.Context, all bool) ([]access.Session, error) {
	who := caller(c)
	sessions, err := s.opts.Login.Lists.Sessions(c.Request.Context(), who.Person)
	if who.Person.IsZero() || all {
		sessions, err = s.opts.Login.Lists.Sessions(c.Request.Context(), access.PersonID{})
	}
	return slices.DeleteFunc(sessions, func(one access.Session) bool {
		own := one.Person == who.Person && (!who.Person.IsZero() || one.Token == who.Name)
		return !all && !own || !s.now().Before(one.ExpiresAt)
	}), err
}

func (s *tokenAPI) listSessions(c *gin.Context) {
	all, ok := s.everybody(c)
	if !ok {
		return
	}
	p, err := pageOf(c, unsaidItems, maxItems, 1)
	if err != nil {
		s.fail(c, err)
		return
	}
	sessions, err := s.sessionsOf(c, all)
	slices.SortFunc(sessions, func(a, b access.Session) int { return strings.Compare(a.ID, b.ID) })
	part, cursor := cut(p, sessions, func(one access.Session) []string { return []string{one.ID} })
	answerList(s.base, c, p, part, v1.SessionOf, cursor, err)
}

func (s *tokenAPI) deleteSession(c *gin.Context) {
	all, ok := s.everybody(c)
	if !ok {
		return
	}
	ctx, id := c.Request.Context(), c.Param("id")
	sessions, err := s.sessionsOf(c, all)
	i := slices.IndexFunc(sessions, func(one access.Session) bool { return one.ID == id })
	if err == nil && i < 0 {
		err = holdfast.ErrNotFound
	}
	if err == nil {
		err = s.opts.Login.Lists.EndSession(ctx, id)
	}
	if err != nil {
		s.fail(c, named(fmt.Sprintf("session %q", id), err))
		return
	}
	s.record(ctx, holdfast.NewAuditEntry(s.now(), caller(c).Name, "session.end", id, "of "+sessions[i].Name))
	c.JSON(http.StatusOK, struct{}{})
}
