package claimant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/agentkey"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runnerspec"
)

// Runners are the records of runners; *datastore.Store is one.
type Runners interface {
	// Runner returns a runner in force; ErrNotFound if there is none of that name.
	Runner(ctx context.Context, name string) (runnerspec.Record, error)
}

// Options are what Claimants need.
type Options struct {
	Tokens  []Token
	Runners Runners // whose documents have keys; nil: no key is good
	// Address is where agents reach this server, which tokens that are signed with a key
	// have to name; empty: no key is good.
	Address string
	Now     func() time.Time
}

// Claimants knows who may claim runs. It is safe for concurrent use.
type Claimants struct {
	opts     Options
	audience string
}

// New returns Claimants.
func New(opts Options) *Claimants {
	return &Claimants{opts: opts, audience: agentkey.Audience(opts.Address)}
}

// Credential is the owner of a credential, and what it is bound to.
type Credential struct {
	Token
	Key string // the id of the key that has signed it; empty: it is a token of the configuration
	// Document is, with a Key, that of its runner.
	Document runnerspec.Runner
}

// Why a claim is refused.
const (
	WhyToken = "token" // the credential is missing or unknown
	WhyKey   = "key"   // a key has signed it, and it is not good
	WhyAgent = "agent" // the id is another agent's
	WhyKind  = "kind"  // the credential is not bound to it
)

// Refusal says why a claim is refused: it is an ErrUnauthorized for the first two reasons,
// an ErrForbidden for the others.
type Refusal struct {
	Why  string // one of the words above
	Who  string // whose credential it is, if that is proven
	text string
}

// Error is the message for the agent.
func (r *Refusal) Error() string { return r.text }

// Unwrap makes errors.Is tell which error of the vocabulary it is.
func (r *Refusal) Unwrap() error {
	if r.Why == WhyToken || r.Why == WhyKey {
		return holdfast.ErrUnauthorized
	}
	return holdfast.ErrForbidden
}

// Of returns whose credential a bearer shows: a *Refusal if it is not one.
func (c *Claimants) Of(ctx context.Context, bearer string) (Credential, error) {
	if token, ok := find(c.opts.Tokens, bearer); ok {
		return Credential{Token: token}, nil
	}
	if !agentkey.Looks(bearer) || c.opts.Runners == nil {
		return Credential{}, &Refusal{Why: WhyToken, text: "agent token missing or unknown"}
	}
	var runner runnerspec.Runner
	verified, err := agentkey.Verify(bearer, agentkey.Verifying{
		Audience: c.audience, Now: c.opts.Now(),
		Keys: func(agent string) (keys []string, err error) {
			runner, err = c.keyed(ctx, agent)
			return runner.Keys, err
		},
	})
	if errors.As(err, new(*storeError)) {
		return Credential{}, err
	}
	name := ""
	if verified.Key != "" { // proven: the key, and not the agent, as one key can name any number of agents
		name = fmt.Sprintf("key %.12s of runner %s", verified.Key, runner.Name)
	}
	if err != nil {
		return Credential{}, &Refusal{Why: WhyKey, Who: name, text: err.Error()}
	}
	return Credential{
		Token: Token{Name: name, Agent: verified.Agent, Kinds: holdfast.AgentKinds(), Runner: runner.Name},
		Key:   verified.Key, Document: runner,
	}, nil
}

// storeError is a failure of ours: nobody is refused for it.
type storeError struct{ error }

func (e *storeError) Unwrap() error { return e.error }

// keyed is the runner that an agent belongs to by its id, if agents of that have keys; one
// without keys if not.
func (c *Claimants) keyed(ctx context.Context, agent string) (runnerspec.Runner, error) {
	name, _, _ := strings.Cut(agent, "/")
	if protocol.CheckAgentID(agent) != nil {
		return runnerspec.Runner{}, nil
	}
	rec, err := c.opts.Runners.Runner(ctx, name)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		return runnerspec.Runner{}, nil
	case err != nil:
		return runnerspec.Runner{}, &storeError{fmt.Errorf("read keys of runner %.100q: %w", name, err)}
	case rec.Document.Type != runnerspec.Remote && rec.Document.Type != runnerspec.KubernetesAgent:
		return runnerspec.Runner{}, nil
	}
	return rec.Document, nil
}

// InForce reports whether a credential that was good still is: a key may have been removed
// from its runner's document since.
func (c *Claimants) InForce(ctx context.Context, who Credential) (bool, error) {
	if who.Key == "" {
		return true, nil
	}
	runner, err := c.keyed(ctx, who.Agent)
	if err != nil {
		return false, err
	}
	return agentkey.Among(who.Key, runner.Keys), nil
}

// Bind checks a claim against the credential that it came with. A claim that names no kinds
// is for those of the credential; one that asks for more than it allows is refused as a
// whole, by a *Refusal.
func (c *Claimants) Bind(who Credential, req *protocol.ClaimRequest) error {
	if err := c.bindID(who, req.Agent); err != nil {
		return err
	}
	for _, kind := range req.Kinds {
		if !slices.Contains(who.Kinds, kind) {
			return who.Refuse(WhyKind, "%q may claim %s, not %.40q", who.Name, kindList(who.Kinds), string(kind))
		}
	}
	if len(req.Kinds) == 0 {
		req.Kinds = slices.Clone(who.Kinds)
	}
	req.Projects, req.Bound = slices.Clone(who.Projects), slices.Clone(who.Kinds)
	req.Runner = cmp.Or(who.Runner, holdfast.LocalRunner)
	return nil
}

// bindID checks the id of an agent against its credential.
func (c *Claimants) bindID(who Credential, id string) error {
	owner, owned := ownerOf(c.opts.Tokens, id)
	switch {
	case who.Key != "" && id != who.Agent:
		return who.Refuse(WhyAgent, "the token was signed for agent %q", who.Agent)
	case who.Key != "" && owned:
		return who.Refuse(WhyAgent, "agents with the id %s have the token %q of server.agents.tokens: rename or remove that token", id, owner.Name)
	case who.Key != "", owned && owner.Name == who.Name:
		return nil
	case who.Agent != "":
		return who.Refuse(WhyAgent, "token %q is that of agent %q", who.Name, who.Agent)
	case id == who.Name, strings.HasPrefix(id, who.Name+"/"):
		return who.Refuse(WhyAgent, "agents with the id %s have another token than %q", id, who.Name)
	default:
		return who.Refuse(WhyAgent, "token %[1]q is for agents with the id %[1]s or %[1]s/…", who.Name)
	}
}

// Refuse is the *Refusal for what a credential does not allow.
func (who Credential) Refuse(why, format string, args ...any) error {
	return &Refusal{Why: why, Who: who.Name, text: fmt.Sprintf(format, args...)}
}

func kindList(kinds []holdfast.RunKind) string {
	words := make([]string, len(kinds))
	for i, kind := range kinds {
		words[i] = string(kind)
	}
	return strings.Join(words, ", ")
}
