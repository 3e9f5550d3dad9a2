package githubserver

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"
)

func pemOf(key *rsa.PrivateKey) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
}

// caller returns who calls: the login that belongs to the token, or "" if the
// token is not valid.
func (s *Server) caller(r *http.Request) string {
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	if token == Token {
		return TokenLogin
	}
	if expires, ok := s.tokens[token]; ok && s.now().Before(expires) {
		return AppLogin
	}
	return ""
}

// isApp reports whether the call carries a valid JWT of the App.
func (s *Server) isApp(r *http.Request) bool {
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return false
	}
	s.mu.Lock()
	key := s.key
	s.mu.Unlock()
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || key == nil {
		return false
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, sum[:], signature) != nil {
		return false
	}
	var claims struct {
		Issuer  string `json:"iss"`
		Issued  int64  `json:"iat"`
		Expires int64  `json:"exp"`
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(raw, &claims) != nil {
		return false
	}
	now := s.stampNow().Unix()
	return claims.Issuer == fmt.Sprint(AppID) && claims.Issued <= now && claims.Expires > now && claims.Expires <= now+600
}

func (s *Server) getApp(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"id": AppID, "slug": AppSlug, "name": "Holdfast"})
}

func (s *Server) getInstallation(w http.ResponseWriter, r *http.Request) {
	if s.repo(r) == nil {
		writeError(w, http.StatusNotFound, "Not Found")
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"id": InstallationID, "app_id": AppID, "app_slug": AppSlug, "target_type": "Organization"})
}

func (s *Server) postAccessToken(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("id") != fmt.Sprint(InstallationID) {
		writeError(w, http.StatusNotFound, "Not Found")
		return
	}
	s.mu.Lock()
	s.issued++
	token := fmt.Sprintf("ghs_%036d", s.issued)
	expires := s.now().Add(s.tokenTTL)
	s.tokens[token] = expires
	permissions := maps.Clone(s.permissions)
	s.mu.Unlock()
	writeJSON(w, http.StatusCreated, map[string]any{
		"token": token, "expires_at": expires.UTC().Format(time.RFC3339),
		"permissions":          permissions,
		"repository_selection": "selected",
	})
}
