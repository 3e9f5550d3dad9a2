package relyingparty

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// Party trusts one issuer.
type Party struct {
	URL    string // of the issuer
	Client *http.Client
	Now    func() time.Time // nil means time.Now

	mu   sync.Mutex
	seen []Claims
}

// Claims are what a token says.
type Claims map[string]any

// New returns a Party for the issuer with that URL, whose documents documents serves: there is
// a server with TLS and the issuer's name before it.
func New(t testing.TB, issuer string, documents http.Handler) *Party {
	t.Helper()
	u, err := url.Parse(issuer)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != u.Host {
			http.Error(w, "unknown host", http.StatusMisdirectedRequest)
			return
		}
		documents.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	transport := front.Client().Transport.(*http.Transport).Clone() //nolint:forcetypeassert // httptest's
	transport.TLSClientConfig.ServerName = "example.com"            // of httptest's certificate
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == u.Hostname()+":443" {
			address = front.Listener.Addr().String()
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &Party{URL: issuer, Client: &http.Client{Transport: transport, Timeout: 5 * time.Second}}
}

// Verify returns what a token says that is for an audience, found valid by go-oidc with the keys
// as they are served now.
func (p *Party) Verify(ctx context.Context, audience, token string) (Claims, error) {
	ctx = oidc.ClientContext(ctx, p.Client)
	provider, err := oidc.NewProvider(ctx, p.URL)
	if err != nil {
		return nil, fmt.Errorf("discover: %w", err)
	}
	verified, err := provider.Verifier(&oidc.Config{ClientID: audience, Now: p.Now}).Verify(ctx, token)
	if err != nil {
		return nil, err
	}
	var claims Claims
	if err := verified.Claims(&claims); err != nil {
		return nil, err
	}
	if single, ok := claims["aud"].(string); !ok || single != audience {
		return nil, fmt.Errorf("audience is %v, want the one text %q", claims["aud"], audience)
	}
	for _, name := range []string{"iat", "nbf", "exp", "jti"} {
		if claims[name] == nil {
			return nil, fmt.Errorf("token has no %s", name)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, claims)
	return claims, nil
}

// Seen returns what all tokens said that were found valid.
func (p *Party) Seen() []Claims {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Claims(nil), p.seen...)
}

// Subject returns "sub".
func (c Claims) Subject() string {
	sub, _ := c["sub"].(string)
	return sub
}

// form returns a parsed form, and answers if it has not exactly one value for each name.
func form(w http.ResponseWriter, r *http.Request, names ...string) (url.Values, bool) {
	if err := r.ParseForm(); err != nil || r.Method != http.MethodPost {
		http.Error(w, "not a form", http.StatusBadRequest)
		return nil, false
	}
	for _, name := range names {
		if len(r.PostForm[name]) != 1 || r.PostForm.Get(name) == "" {
			http.Error(w, "parameter "+name+" is missing", http.StatusBadRequest)
			return nil, false
		}
	}
	return r.PostForm, true
}
