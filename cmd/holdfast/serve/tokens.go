package serve

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/access"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/config"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/server"
)

func (s *services) apiTokens() ([]server.Token, error) {
	if len(s.cfg.Server.API.Tokens) == 0 {
		token, err := loadOrCreateToken(s.path("admin.token"))
		if err != nil {
			return nil, err
		}
		return []server.Token{{Name: "admin", Role: access.Admin, SHA256: server.HashToken(token)}}, nil
	}
	var out []server.Token
	for _, t := range s.cfg.Server.API.Tokens {
		hash, err := tokenHash(t.Token)
		if err != nil {
			return nil, fmt.Errorf("read token %q: %w", t.Name, err)
		}
		out = append(out, server.Token{Name: t.Name, Role: roleOf(t, s.logger), SHA256: hash, Projects: t.Projects})
	}
	return out, nil
}

// roleOf is the role of a token. An operator could approve before there were approvers: its
// token still can, unless it says otherwise.
func roleOf(t config.Token, logger *slog.Logger) access.Role {
	role := access.Role(t.Role)
	if role == access.Operator && t.Approves {
		logger.Warn("a token with the role operator may approve, as before there was the role approver: say role: approver, or approves: false",
			"token", t.Name, "projects", cmp.Or(strings.Join(t.Projects, ", "), access.AllProjects))
		return access.Approver
	}
	return role
}

// minToken is how long a token of the configuration must be, in bytes.
const minToken = 16

// tokenHash reads a token that the configuration refers to, and returns its hash.
func tokenHash(secret config.Secret) ([32]byte, error) {
	token, err := secret.Value()
	if err != nil {
		return [32]byte{}, err
	}
	if len(token) < minToken {
		return [32]byte{}, fmt.Errorf("it has fewer than %d characters", minToken)
	}
	return server.HashToken(token), nil
}

// localAgent is an agent of the server's own machine.
type localAgent struct {
	name  string   // of the agent and of its folder
	as    *account // nil: the server's user
	kinds []holdfast.RunKind
	token string // its own: bound to its id and its kinds
}

// agentsBeside are the agents on the server's machine: one for all runs, or, if they
// can be other users, one for plans and one for applies. The code of a pull
// request is executed when it is planned; as another user it cannot look into
// the processes and files of an apply.
func agentsBeside(a *accounts) []*localAgent {
	if a == nil {
		return []*localAgent{{
			name: "agent", kinds: holdfast.AgentKinds(),
		}}
	}
	return []*localAgent{
		{name: "agent-plan", as: a.plan, kinds: []holdfast.RunKind{holdfast.RunPlan, holdfast.RunDrift}},
		{name: "agent", as: a.apply, kinds: []holdfast.RunKind{holdfast.RunApply, holdfast.RunDestroy}},
	}
}

// agentID is what an agent of the server's own machine is called in records.
func (s *services) agentID(agent *localAgent) string {
	return protocol.AgentIDOf(s.identity) + "/" + agent.name // a host may have any name
}

// agentTokens are those of the agents on this machine, and of agents elsewhere.
func (s *services) agentTokens() ([]server.AgentToken, error) {
	var out []server.AgentToken
	if !s.cfg.Agent.Off {
		s.agents = agentsBeside(s.accounts)
	}
	for _, agent := range s.agents {
		// Ours alone, also where the agent is another user: it gets the token handed.
		token, err := loadOrCreateToken(s.path(agent.name + ".token"))
		if err != nil {
			return nil, err
		}
		agent.token = token
		out = append(out, server.AgentToken{
			Name: "local/" + agent.name, SHA256: server.HashToken(token), Agent: s.agentID(agent), Kinds: agent.kinds,
		})
	}
	for _, t := range s.cfg.Server.Agents.Tokens {
		hash, err := tokenHash(t.Token)
		if err != nil {
			return nil, fmt.Errorf("read token of agents %q: %w", t.Name, err)
		}
		kinds, err := holdfast.ParseAgentKinds(t.Kinds)
		if err != nil {
			return nil, err
		}
		out = append(out, server.AgentToken{
			Name: t.Name, SHA256: hash, Kinds: kinds, Projects: t.Projects, Runner: t.Runner,
		})
	}
	return out, nil
}

// loadOrCreateToken keeps a random token in a file that only we can read.
func loadOrCreateToken(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err == nil && len(strings.TrimSpace(string(data))) >= 32 {
		return strings.TrimSpace(string(data)), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read token: %w", err)
	}
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	token := hex.EncodeToString(raw)
	if err := keep(path, token); err != nil {
		return "", fmt.Errorf("write token: %w", err)
	}
	return token, nil
}
