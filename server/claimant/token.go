package claimant

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// Token is the credential of an agent and what it is bound to. It is known
// by its hash only.
type Token struct {
	Name   string   // shown in the audit trail
	SHA256 [32]byte // of the token
	// Agent is the only id that its holder may claim with. Empty means that the id is
	// Name, or begins with Name and a slash: several agents share the token. An id that
	// two tokens could have belongs to the longer name alone, and one that is the Agent
	// of a token is that token's.
	Agent string
	// Kinds are the kinds of runs that its holder may claim; at least one.
	Kinds []holdfast.RunKind
	// Projects are those of whose clusters its holder may claim runs; empty means
	// all.
	Projects []string
	// Runner is the one whose runs its holder may claim; empty means the local one.
	Runner string
}

// Check returns what is wrong with tokens.
func Check(tokens []Token) error {
	var errs []error
	for i, t := range tokens {
		first := func(same func(Token) bool) (int, bool) {
			n := slices.IndexFunc(tokens, same)
			return n, n >= 0 && n < i
		}
		switch _, twice := first(func(other Token) bool { return other.Name == t.Name }); {
		case t.Name == "":
			errs = append(errs, fmt.Errorf("token %d has no name", i+1))
		case twice:
			errs = append(errs, fmt.Errorf("token %q is given twice", t.Name))
		case t.SHA256 == [32]byte{} || t.SHA256 == sha256.Sum256(nil):
			errs = append(errs, fmt.Errorf("token %q is empty", t.Name))
		}
		if err := protocol.CheckAgentID(t.Name); err != nil && t.Name != "" {
			errs = append(errs, fmt.Errorf("token %q: its name %w", t.Name, err))
		}
		if n, bound := first(func(other Token) bool { return t.Agent != "" && other.Agent == t.Agent }); bound {
			errs = append(errs, fmt.Errorf("tokens %q and %q are both that of agent %q", tokens[n].Name, t.Name, t.Agent))
		}
		if len(t.Kinds) == 0 {
			errs = append(errs, fmt.Errorf("token %q is bound to no kind of run", t.Name))
		}
		if n, same := first(func(other Token) bool { return other.SHA256 == t.SHA256 }); same {
			errs = append(errs, fmt.Errorf("tokens %q and %q are the same", tokens[n].Name, t.Name))
		}
	}
	return errors.Join(errs...)
}

// find returns the token that a bearer shows. It looks at all of them, so that timing
// reveals nothing about where a match was.
func find(tokens []Token, bearer string) (found Token, ok bool) {
	hash := sha256.Sum256([]byte(bearer))
	for _, t := range tokens {
		if subtle.ConstantTimeCompare(hash[:], t.SHA256[:]) == 1 {
			found, ok = t, bearer != ""
		}
	}
	return found, ok
}

// ownerOf returns the token whose alone an agent's id is: the one that is bound to the
// id, otherwise the one with the longest name that the id is, or is below.
func ownerOf(tokens []Token, id string) (owner Token, ok bool) {
	for _, t := range tokens {
		switch {
		case t.Agent == id:
			return t, true
		case t.Agent != "" || id != t.Name && !strings.HasPrefix(id, t.Name+"/"):
		case !ok || len(t.Name) > len(owner.Name):
			owner, ok = t, true
		}
	}
	return owner, ok
}
