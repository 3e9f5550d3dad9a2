// Tokens of an attempt's run, from the server and for its engine.

package uplink

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
)

// tokenPath is where the agent's endpoint answers an engine that asks for a token.
const tokenPath = "/token"

// IdentityToken returns a new token of the run for an audience. While the server is out of
// reach it waits, at most until ctx is done.
func (s *Session) IdentityToken(ctx context.Context, audience string) (protocol.IdentityToken, error) {
	token, err := Retry(ctx, trouble(s.Logger, "token was not fetched yet"), func() (protocol.IdentityToken, error) {
		var token protocol.IdentityToken
		_, _, err := s.client.post(ctx, attemptPath(s.AttemptRef, "tokens"), s.Token,
			protocol.TokenRequest{Fence: s.Fence, Audience: audience}, &token)
		return token, err
	})
	if err != nil {
		return protocol.IdentityToken{}, fmt.Errorf("fetch token for %s: %w", audience, err)
	}
	return token, nil
}

// tokenDoor is what an attempt's engine may ask for at the agent's endpoint.
type tokenDoor struct {
	credential string
	answer     func(audience string) (token string, err error)
}

// ServeTokens has the agent's endpoint answer the attempt's engine with what answer returns,
// until the attempt is dismissed.
func (s *Session) ServeTokens(answer func(audience string) (token string, err error)) (url, credential string) {
	door := &tokenDoor{credential: s.key + "." + rand.Text(), answer: answer}
	s.state.mu.Lock()
	defer s.state.mu.Unlock()
	s.state.tokens = door
	return strings.TrimSuffix(s.state.endpoint, statePath) + tokenPath, door.credential
}

// serveToken answers an engine that asks as those of GitHub Actions do: it knows the endpoint by
// ARM_OIDC_REQUEST_URL, and its credential by ARM_OIDC_REQUEST_TOKEN.
func (p *StateEndpoint) serveToken(w http.ResponseWriter, r *http.Request) {
	scheme, credential, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	user, _, _ := strings.Cut(credential, ".")
	p.mu.Lock()
	s, ok := p.relays[user]
	p.mu.Unlock()
	var door *tokenDoor
	if ok {
		s.mu.Lock()
		door = s.tokens
		s.mu.Unlock()
	}
	if !strings.EqualFold(scheme, "bearer") || door == nil || !same(credential, door.credential) {
		turnAway(w, "unknown credential", http.StatusUnauthorized)
		return
	}
	known(r)
	if !s.turns.take(r.Context()) {
		turnAway(w, "too many requests at once", http.StatusServiceUnavailable)
		return
	}
	defer s.turns.give()
	if r.Method != http.MethodGet {
		turnAway(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	token, err := door.answer(r.URL.Query().Get("audience"))
	switch {
	case errors.Is(err, holdfast.ErrForbidden):
		turnAway(w, err.Error(), http.StatusForbidden)
		return
	case err != nil:
		turnAway(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(map[string]any{"count": len(token), "value": token})
}
