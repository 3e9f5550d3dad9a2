package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/holdfast-dev/holdfast/server"
)

func (h *house) apiTokens() ([]server.Token, error) {
	if len(h.cfg.Server.API.Tokens) == 0 {
		token, err := loadOrCreateToken(h.path("admin.token"))
		if err != nil {
			return nil, err
		}
		return []server.Token{{Name: "admin", Role: server.RoleAdmin, SHA256: server.HashToken(token)}}, nil
	}
	var out []server.Token
	for _, t := range h.cfg.Server.API.Tokens {
		token, err := t.Token.Value()
		if err != nil {
			return nil, fmt.Errorf("read token %q: %w", t.Name, err)
		}
		if len(token) < 16 {
			return nil, fmt.Errorf("token %q has fewer than 16 characters", t.Name)
		}
		out = append(out, server.Token{Name: t.Name, Role: server.Role(t.Role), SHA256: server.HashToken(token)})
	}
	return out, nil
}

// agentTokens are those of the agent beside us, and of agents elsewhere.
func (h *house) agentTokens() ([]server.Token, error) {
	// Ours alone, also where the agent is another user: it gets the token handed.
	token, err := loadOrCreateToken(h.path("agent.token"))
	if err != nil {
		return nil, err
	}
	h.agentToken = token
	out := []server.Token{{Name: "local", SHA256: server.HashToken(token)}}
	if remote := h.cfg.Server.Agents.Token; !remote.IsZero() {
		token, err := remote.Value()
		if err != nil {
			return nil, fmt.Errorf("read token of agents: %w", err)
		}
		out = append(out, server.Token{Name: "remote", SHA256: server.HashToken(token)})
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
