package session

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/holdfast-dev/holdfast/access"
)

// Token is a bearer token of the configuration, which the server knows by its hash only.
type Token struct {
	Name   string // of whoever has it: the actor in the audit trail
	Role   access.Role
	SHA256 [sha256.Size]byte // as HashToken gives it
	// Projects are those whose clusters its holder may see and command; empty means all.
	Projects []string
}

// HashToken returns what is kept of a token. Tokens are random and long, so
// that a plain hash cannot be guessed back.
func HashToken(token string) [sha256.Size]byte { return sha256.Sum256([]byte(token)) }

// CheckTokens returns what is wrong with tokens.
func CheckTokens(tokens []Token) error {
	var errs []error
	names := map[string]bool{}
	for i, t := range tokens {
		switch {
		case t.Name == "":
			errs = append(errs, fmt.Errorf("token %d has no name", i+1))
		case names[t.Name]:
			errs = append(errs, fmt.Errorf("token %q is given twice", t.Name))
		case !t.Role.IsValid():
			errs = append(errs, fmt.Errorf("token %q has role %q: want viewer, operator, approver or admin", t.Name, t.Role))
		case t.SHA256 == [sha256.Size]byte{} || t.SHA256 == HashToken(""):
			errs = append(errs, fmt.Errorf("token %q is empty", t.Name))
		}
		names[t.Name] = true
	}
	return errors.Join(errs...)
}

// find returns the token that bearer is. It looks at all of them, so that timing
// reveals nothing about where a match was.
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

func (t Token) principal() access.Principal {
	return access.Principal{Name: t.Name, Grants: access.GrantsOf(t.Role, t.Projects...), Via: access.ViaToken, ID: t.Name}
}

// Proof is what a session that the token was exchanged for, or a token that was made with it,
// keeps of it.
func (t Token) Proof() access.Hash { return access.HashOf(string(t.SHA256[:])) }

// Bearer returns the request's bearer token, empty if there is none.
func Bearer(r *http.Request) string {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
