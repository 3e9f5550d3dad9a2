package agentkey

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	// MaxLife is the longest that a token may be valid, and what ours are.
	MaxLife = 5 * time.Minute
	// Skew is by how much the clocks of agent and server may differ.
	Skew = 30 * time.Second
	// renewAfter is the age at which another token is signed: the current one is valid for
	// longer than any request takes to be answered.
	renewAfter = 2 * time.Minute
)

// Signer signs the tokens of one agent. It is safe for concurrent use.
type Signer struct {
	key                 Key
	id, agent, audience string
	now                 func() time.Time

	mu    sync.Mutex
	token string
	made  time.Time // by the wall clock, which the server compares
}

// New returns a Signer for an agent, whose tokens are for the server at an audience: its
// address. A nil now means time.Now.
func New(key Key, agent, audience string, now func() time.Time) (*Signer, error) {
	id, err := key.ID()
	if err != nil {
		return nil, err
	}
	if audience = Audience(audience); audience == "" {
		return nil, errors.New("tokens are for an https address of the server")
	}
	if now == nil {
		now = time.Now
	}
	return &Signer{key: key, id: id, agent: agent, audience: audience, now: now}, nil
}

// Token returns a token that is valid now and for some minutes more.
func (s *Signer) Token() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now().Round(0)
	if age := now.Sub(s.made); s.token != "" && age >= 0 && age < renewAfter {
		return s.token, nil
	}
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.RegisteredClaims{
		Issuer: s.agent, Subject: s.agent, Audience: jwt.ClaimStrings{s.audience},
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(MaxLife)),
	})
	token.Header["kid"] = s.id
	signed, err := token.SignedString(s.key.private)
	if err != nil {
		return "", fmt.Errorf("sign token of agent %s: %w", s.agent, err)
	}
	s.token, s.made = signed, now
	return signed, nil
}

// Audience is an address of a server in the one form in which tokens name it; empty if it is
// not one.
func Audience(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" {
		return ""
	}
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	host = strings.TrimSuffix(host, map[string]string{"https": ":443", "http": ":80"}[scheme])
	return scheme + "://" + host + strings.TrimRight(u.EscapedPath(), "/")
}

// Looks reports whether a credential has the form of a token.
func Looks(credential string) bool { return strings.Count(credential, ".") == 2 }

// Verifying is what a token is verified against.
type Verifying struct {
	Audience string    // this server's address, as Audience returns it
	Now      time.Time // by the server's clock
	// Keys returns the public keys of an agent, which the token claims to be: none if nobody
	// knows it.
	Keys func(agent string) ([]string, error)
}

// Verified is what a token has proven.
type Verified struct {
	Agent string // empty: nothing is proven
	Key   string // the id of the key that has signed
}

// UnknownKeyError says that a token is not signed by a key of the agent that it names.
type UnknownKeyError struct{ Agent, Key string }

// Error says no more than the token itself.
func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("no runner has the key %.64q for agent %.100q", e.Key, e.Agent)
}

// Verify returns whose token it is. An *UnknownKeyError if its key is not one of the agent's
// in force. With another error Verified says whose it is if the signature was right: it is not
// valid for other reasons, which the error names.
func Verify(token string, against Verifying) (Verified, error) {
	if against.Audience == "" {
		return Verified{}, errors.New("this server takes no keys: server.agents.url is not set")
	}
	var (
		claims jwt.RegisteredClaims
		signer Verified
		failed error // of reading keys
	)
	parser := jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithStrictDecoding(), jwt.WithLeeway(Skew),
		jwt.WithTimeFunc(func() time.Time { return against.Now }), jwt.WithIssuedAt(), jwt.WithExpirationRequired(),
		jwt.WithAllAudiences(against.Audience),
	)
	_, err := parser.ParseWithClaims(token, &claims, func(t *jwt.Token) (any, error) {
		id, _ := t.Header["kid"].(string)
		unknown := &UnknownKeyError{Agent: claims.Subject, Key: id}
		if claims.Subject == "" || id == "" || t.Header["crit"] != nil {
			return nil, unknown
		}
		var keys []string
		if keys, failed = against.Keys(claims.Subject); failed != nil {
			return nil, failed
		}
		for _, text := range keys {
			if key, is, err := parsePublic(text); err == nil && is == id {
				signer = Verified{Agent: claims.Subject, Key: id}
				return key, nil
			}
		}
		return nil, unknown
	})
	var unknown *UnknownKeyError
	switch {
	case failed != nil:
		return Verified{}, failed
	case errors.As(err, &unknown):
		return Verified{}, unknown
	case errors.Is(err, jwt.ErrTokenMalformed), errors.Is(err, jwt.ErrTokenUnverifiable), errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return Verified{}, errors.New("the token is not one that a key of a runner has signed (EdDSA)")
	case err != nil:
		return signer, wrong(claims, against, err)
	}
	return signer, lasting(claims)
}

// lasting is about what the library does not ask for.
func lasting(claims jwt.RegisteredClaims) error {
	switch {
	case claims.IssuedAt == nil:
		return errors.New("the token does not say when it was issued (iat)")
	case claims.ExpiresAt.Sub(claims.IssuedAt.Time) > MaxLife:
		return fmt.Errorf("the token is valid for longer than %s", MaxLife)
	case len(claims.Audience) != 1:
		return errors.New("the token is for several servers (aud)")
	case claims.Issuer != claims.Subject:
		return errors.New("the token was issued by another one (iss) than it is about (sub)")
	}
	return nil
}

// wrong says what is wrong with the claims of a token whose signature is right.
func wrong(claims jwt.RegisteredClaims, against Verifying, err error) error {
	switch {
	case errors.Is(err, jwt.ErrTokenUsedBeforeIssued), errors.Is(err, jwt.ErrTokenNotValidYet):
		return fmt.Errorf("the token is of the future: the agent's clock is ahead of the server's, by more than %s", Skew)
	case errors.Is(err, jwt.ErrTokenExpired):
		return fmt.Errorf("the token expired %s ago: the agent's clock may be behind the server's",
			against.Now.Sub(claims.ExpiresAt.Time).Round(time.Second))
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return fmt.Errorf("the token is for %.200q, and this server is %q (server.agents.url)", claims.Audience, against.Audience)
	default:
		return fmt.Errorf("the token is not complete: %w", err) // which claim is missing
	}
}
