package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/server/claimant"
	"github.com/holdfast-dev/holdfast/server/lobby"
	"github.com/holdfast-dev/holdfast/server/session"
)

// AgentToken is the credential of an agent and what it is bound to.
type AgentToken = claimant.Token

// Keys are where the public keys of agents are, and what their tokens must name.
type Keys struct {
	Runners claimant.Runners // whose documents have keys; nil: no key is good
	Address string           // where agents reach this server; empty: no key is good
}

// Why a claim is refused, as the metric says it, besides the words of package claimant.
const (
	refusedTaken = "taken" // another living process has the id

	refusedIsolation = "isolation" // it is weaker than the server demands
	refusedProtocol  = "protocol"  // the server does not speak the agent's
)

// credential returns whose credential a request shows. If it is unknown, the request was answered.
func (s *agentServer) credential(c *gin.Context) (claimant.Credential, bool) {
	who, err := s.claimants.Of(c.Request.Context(), session.Bearer(c.Request))
	if err != nil {
		s.failCredential(c, "", err)
		return who, false
	}
	lobby.Known(c.Request.Context())
	return who, true
}

// failCredential answers with what is wrong with a credential, or with what it is used for.
// Agent is what the caller claims.
func (s *agentServer) failCredential(c *gin.Context, agent string, err error) {
	var refused *claimant.Refusal
	if errors.As(err, &refused) {
		s.refuseClaim(c, refused.Who, agent, refused.Why, refused.Error())
	}
	s.fail(c, err)
}

// keyCheckEvery is how often the key of an agent that waits is looked at.
const keyCheckEvery = 2 * time.Second

// errKeyRemoved is why a claim that waits is given up.
var errKeyRemoved = holdfast.ErrorOf(holdfast.ErrUnauthorized, "the key was removed from its runner's document")

// whileInForce returns ctx, done also when the waiting agent's key is no longer one of its runner.
func (s *agentServer) whileInForce(ctx context.Context, who claimant.Credential) (context.Context, context.CancelFunc) {
	if who.Key == "" {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(keyCheckEvery):
			}
			if good, err := s.claimants.InForce(ctx, who); err == nil && !good {
				cancel(errKeyRemoved)
			}
		}
	}()
	return ctx, func() { cancel(context.Canceled); <-done }
}

// refuseClaim counts a claim that asked for too much, and puts it on record at most
// once a minute for each token and reason. Agent is what the caller claims.
func (s *agentServer) refuseClaim(c *gin.Context, token, agent, why, text string) {
	if s.opts.Refused != nil {
		s.opts.Refused(why)
	}
	if !s.refused.Due(token, why, s.now()) {
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
