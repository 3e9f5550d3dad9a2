package relyingparty

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
)

// Vault has the auth method jwt at one mount.
type Vault struct {
	*Party
	Namespace, Mount string
	Audience         string            // bound_audiences
	Roles            map[string]string // bound_subject by role
	Lease            int               // seconds of a token
	Renewable        bool

	mu     sync.Mutex
	living map[string]int // renewals by token
	ended  []string
}

// Living returns the tokens that were not given back, with how often each was renewed.
func (v *Vault) Living() map[string]int {
	v.mu.Lock()
	defer v.mu.Unlock()
	living := make(map[string]int)
	for token, n := range v.living {
		living[token] = n
	}
	return living
}

// Ended returns the tokens that were given back.
func (v *Vault) Ended() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.ended)
}

func (v *Vault) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fail := func(status int, text string) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string][]string{"errors": {text}})
	}
	if r.Header.Get("X-Vault-Namespace") != v.Namespace || r.Method != http.MethodPost {
		fail(http.StatusNotFound, "no handler for route")
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.living == nil {
		v.living = make(map[string]int)
	}
	token := r.Header.Get("X-Vault-Token")
	_, lives := v.living[token]
	switch r.URL.Path {
	case "/v1/auth/" + v.Mount + "/login":
		var body struct{ Role, JWT string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			fail(http.StatusBadRequest, "failed to parse JSON input")
			return
		}
		claims, err := v.Verify(r.Context(), v.Audience, body.JWT)
		if err != nil || v.Roles[body.Role] == "" || v.Roles[body.Role] != claims.Subject() {
			fail(http.StatusBadRequest, fmt.Sprintf("error validating token: %v", err))
			return
		}
		token = fmt.Sprintf("hvs.%s.%d.of-the-stand-in", body.Role, len(v.living)+len(v.ended))
		v.living[token] = 0
	case "/v1/auth/token/renew-self":
		if !lives {
			fail(http.StatusForbidden, "permission denied")
			return
		}
		v.living[token]++
	case "/v1/auth/token/revoke-self":
		if !lives {
			fail(http.StatusForbidden, "permission denied")
			return
		}
		delete(v.living, token)
		v.ended = append(v.ended, token)
		w.WriteHeader(http.StatusNoContent)
		return
	default:
		fail(http.StatusNotFound, "no handler for route")
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"auth": map[string]any{"client_token": token, "lease_duration": v.Lease, "renewable": v.Renewable},
	})
}
