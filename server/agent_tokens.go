package server

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/server/lobby"
)

// AgentToken is the credential of an agent and what it is bound to. It is known
// by its hash only.
type AgentToken struct {
	Name   string   // shown in the audit trail
	SHA256 [32]byte // as HashToken gives it
	// Agent is the only id that its holder may claim with. Empty means that the id
	// is Name, or begins with Name and a slash: several agents share the token. An id
	// that two tokens could have so is that of the longer name alone, and one that is
	// the Agent of a token is that token's.
	Agent string
	// Kinds are the kinds of runs that its holder may claim; at least one.
	Kinds []holdfast.RunKind
	// Projects are those of whose clusters its holder may claim runs; empty means
	// all.
	Projects []string
	// Runner is the one whose runs its holder may claim; empty means the local one.
	Runner string
}

func checkAgentTokens(tokens []AgentToken) error {
	var errs []error
	plain := make([]Token, len(tokens))
	for i, t := range tokens {
		plain[i] = Token{Name: t.Name, SHA256: t.SHA256}
		if err := holdfast.CheckAgentID(t.Name); err != nil && t.Name != "" {
			errs = append(errs, fmt.Errorf("token %q: its name %w", t.Name, err))
		}
		bound := func(other AgentToken) bool { return t.Agent != "" && other.Agent == t.Agent }
		if first := slices.IndexFunc(tokens, bound); first >= 0 && first < i {
			errs = append(errs, fmt.Errorf("tokens %q and %q are both that of agent %q", tokens[first].Name, t.Name, t.Agent))
		}
		if len(t.Kinds) == 0 {
			errs = append(errs, fmt.Errorf("token %q is bound to no kind of run", t.Name))
		}
		same := func(other AgentToken) bool { return other.SHA256 == t.SHA256 }
		if first := slices.IndexFunc(tokens, same); first < i {
			errs = append(errs, fmt.Errorf("tokens %q and %q are the same", tokens[first].Name, t.Name))
		}
	}
	return errors.Join(checkTokens(plain, false), errors.Join(errs...))
}

// agentToken returns the agent token that a request carries.
func (s *agentServer) agentToken(c *gin.Context) (AgentToken, bool) {
	plain := make([]Token, len(s.opts.Tokens))
	for i, t := range s.opts.Tokens {
		plain[i] = Token{Name: t.Name, SHA256: t.SHA256}
	}
	found, ok := find(plain, bearer(c.Request))
	if !ok {
		return AgentToken{}, false
	}
	lobby.Known(c.Request.Context())
	i := slices.IndexFunc(s.opts.Tokens, func(t AgentToken) bool { return t.Name == found.Name })
	return s.opts.Tokens[i], true
}

// Why a claim is refused, as the metric says it.
const (
	refusedToken = "token" // missing or unknown
	refusedAgent = "agent" // the id is another agent's
	refusedKind  = "kind"  // the token is not bound to it
	refusedTaken = "taken" // another living process has the id

	refusedIsolation = "isolation" // it is weaker than the server demands
	refusedProtocol  = "protocol"  // the server does not speak the agent's
)

// ownerOf returns the token whose alone an agent's id is: the one that is bound to
// the id, else the one with the longest name that the id is, or is below.
func ownerOf(tokens []AgentToken, id string) (owner AgentToken, ok bool) {
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

// bindClaim holds a claim against the token that it came with. A claim that names no
// kinds is for those of the token; one that asks for more than the token allows
// is refused as a whole: why is one of the words above, and text says it.
func (s *agentServer) bindClaim(t AgentToken, req *holdfast.ClaimRequest) (why, text string) {
	owner, owned := ownerOf(s.opts.Tokens, req.Agent)
	switch {
	case owned && owner.Name == t.Name:
	case t.Agent != "":
		return refusedAgent, fmt.Sprintf("token %q is that of agent %q", t.Name, t.Agent)
	case req.Agent == t.Name, strings.HasPrefix(req.Agent, t.Name+"/"):
		return refusedAgent, fmt.Sprintf("agents with the id %s have another token than %q", req.Agent, t.Name)
	default:
		return refusedAgent, fmt.Sprintf("token %[1]q is for agents with the id %[1]s or %[1]s/…", t.Name)
	}
	for _, kind := range req.Kinds {
		if !slices.Contains(t.Kinds, kind) {
			return refusedKind, fmt.Sprintf("token %q may claim %s, not %.40q", t.Name, kindList(t.Kinds), string(kind))
		}
	}
	if len(req.Kinds) == 0 {
		req.Kinds = slices.Clone(t.Kinds)
	}
	req.Projects, req.Bound = slices.Clone(t.Projects), slices.Clone(t.Kinds)
	req.Runner = cmp.Or(t.Runner, holdfast.LocalRunner)
	return "", ""
}

func kindList(kinds []holdfast.RunKind) string {
	words := make([]string, len(kinds))
	for i, kind := range kinds {
		words[i] = string(kind)
	}
	return strings.Join(words, ", ")
}

// refusals bound what is written of refused claims: an agent asks again and
// again.
type refusals struct {
	mu   sync.Mutex
	last map[string]time.Time // by token and reason
}

// refusedEvery is how often the same token is written about for the same reason.
const refusedEvery = time.Minute

func (r *refusals) due(key string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, ok := r.last[key]; ok && now.Sub(last) < refusedEvery {
		return false
	}
	if r.last == nil {
		r.last = make(map[string]time.Time)
	}
	r.last[key] = now
	return true
}

// refuseClaim counts a claim that asked for too much, and puts it on record at
// most once a minute for each token and reason. Agent is the caller's word.
func (s *agentServer) refuseClaim(c *gin.Context, token, agent, why, text string) {
	if s.opts.Refused != nil {
		s.opts.Refused(why)
	}
	if !s.refused.due(token+"\x00"+why, s.now()) {
		return
	}
	agent = fmt.Sprintf("%.100q", agent)
	ctx := c.Request.Context()
	s.log.WarnContext(ctx, "claim was refused", "token", token, "agent", agent, "from", c.RemoteIP(), "reason", why, "detail", text)
	if s.audit == nil || token == "" {
		return
	}
	err := s.audit.Audit(ctx, holdfast.AuditEntry{
		At: s.now(), Actor: token, Action: "claim.refuse", Object: "agent " + agent, Detail: text,
	})
	if err != nil {
		s.log.ErrorContext(ctx, "refused claim was not recorded", "err", err)
	}
}
