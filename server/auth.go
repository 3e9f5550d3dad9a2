package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/server/lobby"
)

// Role is what the holder of an API token may do.
type Role string

// The roles, each including the ones before it.
const (
	RoleViewer   Role = "viewer"   // read
	RoleOperator Role = "operator" // command: plan, apply, approve, cancel, reconcile, check, suspend, transfer, release a dead lock
	RoleAdmin    Role = "admin"    // force: break a lock whose holder lives
)

var roles = []Role{RoleViewer, RoleOperator, RoleAdmin}

// Includes reports whether r may do what other may. An unknown role may nothing.
func (r Role) Includes(other Role) bool {
	return slices.Contains(roles, other) && slices.Index(roles, r) >= slices.Index(roles, other)
}

// Token is a bearer token that the server knows by its hash only.
type Token struct {
	Name   string   // of who has it: the actor in the audit trail
	Role   Role     // of API tokens
	SHA256 [32]byte // as HashToken gives it
	// Projects are those whose clusters its holder may see and command; empty means all.
	Projects []string
}

// HashToken returns what is kept of a token. Tokens are random and long, so
// that a plain hash cannot be guessed back.
func HashToken(token string) [32]byte { return sha256.Sum256([]byte(token)) }

func checkTokens(tokens []Token) error {
	var errs []error
	names := map[string]bool{}
	for i, t := range tokens {
		switch {
		case t.Name == "":
			errs = append(errs, fmt.Errorf("token %d has no name", i+1))
		case names[t.Name]:
			errs = append(errs, fmt.Errorf("token %q is given twice", t.Name))
		case !slices.Contains(roles, t.Role):
			errs = append(errs, fmt.Errorf("token %q has role %q: want viewer, operator or admin", t.Name, t.Role))
		case t.SHA256 == [32]byte{} || t.SHA256 == HashToken(""):
			errs = append(errs, fmt.Errorf("token %q is empty", t.Name))
		}
		names[t.Name] = true
	}
	return errors.Join(errs...)
}

// find returns the token that bearer is. It looks at all of them, so that time
// tells nothing about where a match was.
func find(tokens []Token, bearer string) (Token, bool) {
	hash := HashToken(bearer)
	var found Token
	ok := 0
	for _, t := range tokens {
		if subtle.ConstantTimeCompare(hash[:], t.SHA256[:]) == 1 {
			found, ok = t, 1
		}
	}
	return found, ok == 1 && bearer != ""
}

// bearer returns the request's bearer token, empty if there is none.
func bearer(r *http.Request) string {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

const callerKey = "holdfast/caller"

// requireRole lets callers pass whose token has role.
func (s *apiServer) requireRole(role Role) gin.HandlerFunc {
	return func(c *gin.Context) {
		token, ok := find(s.opts.Tokens, bearer(c.Request))
		switch {
		case !ok:
			c.Header("WWW-Authenticate", `Bearer realm="holdfast"`)
			s.refuse(c, http.StatusUnauthorized, "token missing or unknown",
				"give a token by HOLDFAST_TOKEN, --token-file or the client file")
		case !token.Role.Includes(role):
			s.refuse(c, http.StatusForbidden,
				fmt.Sprintf("token %q has role %s; this requires %s", token.Name, token.Role, role),
				"ask an administrator of Holdfast for a token with that role")
		default:
			lobby.Known(c.Request.Context())
			c.Set(callerKey, token)
			if s.holdToScope(c); !c.IsAborted() {
				c.Next()
			}
		}
	}
}

// caller returns who passed requireRole.
func caller(c *gin.Context) Token {
	value, _ := c.Get(callerKey)
	token, _ := value.(Token)
	return token
}

// identity is the attempt that a request comes from.
type identity struct {
	run holdfast.RunBrief
	ref holdfast.AttemptRef
	// over is true if the credential is genuine and the attempt has ended: it
	// may only bring in what would else be lost.
	over bool
}

// identify returns the attempt whose token the request carries. Engines can
// send it as the password of basic authentication only.
func (s *agentServer) identify(c *gin.Context) (identity, error) {
	token := bearer(c.Request)
	if token == "" {
		if _, password, ok := c.Request.BasicAuth(); ok {
			token = password
		}
	}
	ref, _, ok := holdfast.ParseRunToken(token)
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
