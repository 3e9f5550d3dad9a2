package github

import (
	"crypto/rsa"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/golang-jwt/jwt/v4"
)

const (
	// issuedBefore is how long ago a JWT of ours says that it was issued: GitHub
	// refuses one of the future, by its own clock, and advises a minute.
	issuedBefore = time.Minute
	// validFor is how long it is valid from now. GitHub takes at most ten minutes
	// from its own now; what is left is for clocks that differ.
	validFor = 8 * time.Minute
)

// appTransport returns a transport that authenticates as an App.
func appTransport(next http.RoundTripper, app App, now func() time.Time) (http.RoundTripper, error) {
	key, err := jwt.ParseRSAPrivateKeyFromPEM(app.PrivateKey)
	if err != nil {
		// The library's error may quote what it could not parse.
		return nil, errors.New("github: the App's private key is not an RSA key in PEM")
	}
	return ghinstallation.NewAppsTransportWithOptions(next, app.ID, ghinstallation.WithSigner(signer{key: key, now: now}))
}

// signer signs the JWTs of an App. The library's times are too tight for clocks
// that differ.
type signer struct {
	key *rsa.PrivateKey
	now func() time.Time
}

// Sign implements ghinstallation.Signer.
func (s signer) Sign(claims jwt.Claims) (string, error) {
	registered, ok := claims.(*jwt.RegisteredClaims)
	if !ok {
		return "", fmt.Errorf("claims are a %T", claims)
	}
	now := s.now().Truncate(time.Second)
	return jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.RegisteredClaims{
		Issuer: registered.Issuer, IssuedAt: jwt.NewNumericDate(now.Add(-issuedBefore)), ExpiresAt: jwt.NewNumericDate(now.Add(validFor)),
	}).SignedString(s.key)
}
