package issuer

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

const (
	discoveryPath = "/.well-known/openid-configuration"
	jwksPath      = "/.well-known/jwks.json"
)

// cacheFor is how long others may keep the documents. A key is published for longer than that
// before it signs.
const cacheFor = 15 * time.Minute

// discovery is the part of OpenID Connect Discovery 1.0 that those need who verify tokens.
type discovery struct {
	Issuer        string   `json:"issuer"`
	JWKSURI       string   `json:"jwks_uri"`
	ResponseTypes []string `json:"response_types_supported"`
	SubjectTypes  []string `json:"subject_types_supported"`
	Algorithms    []string `json:"id_token_signing_alg_values_supported"`
	Scopes        []string `json:"scopes_supported"`
	Claims        []string `json:"claims_supported"`
}

func discoveryOf(url string) discovery {
	return discovery{
		Issuer: url, JWKSURI: url + jwksPath,
		ResponseTypes: []string{"id_token"}, SubjectTypes: []string{"public"}, Algorithms: []string{"RS256"}, Scopes: []string{"openid"},
		Claims: []string{
			"sub", "aud", "exp", "iat", "iss", "jti", "nbf",
			"project", "environment", "cluster", "phase", "kind", "repository", "ref", "revision", "runner", "run", "attempt",
		},
	}
}

// jwk is a public key, as RFC 7517 has it.
type jwk struct {
	KeyType   string `json:"kty"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
	ID        string `json:"kid"`
	N         string `json:"n"`
	E         string `json:"e"`
}

func (i *Issuer) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	var document any
	switch r.URL.Path {
	case i.paths[0]:
		document = discoveryOf(i.opts.URL)
	case i.paths[1]:
		document = map[string][]jwk{"keys": i.ring.Load().published()}
	default:
		http.NotFound(w, r)
		return
	}
	data, err := json.Marshal(document)
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	head := w.Header()
	head.Set("Content-Type", "application/json")
	head.Set("Cache-Control", fmt.Sprintf("public, max-age=%d", int(cacheFor.Seconds())))
	head.Set("Content-Length", strconv.Itoa(len(data)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(data)
	}
}
