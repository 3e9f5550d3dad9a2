package agentkey

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
)

const (
	privateBlock = "PRIVATE KEY" // PKCS #8
	publicBlock  = "PUBLIC KEY"  // PKIX
)

const hintMake = "holdfast agent key makes one, as does openssl genpkey -algorithm ed25519"

// Key is a private key.
type Key struct{ private ed25519.PrivateKey }

// Generate makes a new key.
func Generate() (Key, error) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return Key{}, fmt.Errorf("generate key: %w", err)
	}
	return Key{private}, nil
}

// ParseKey reads a private key: PEM, PKCS #8.
func ParseKey(text []byte) (Key, error) {
	block, rest := pem.Decode(text)
	switch {
	case block == nil || len(bytes.TrimSpace(rest)) > 0:
		return Key{}, errors.New("it is not one private key in PEM: " + hintMake)
	case block.Type == publicBlock:
		return Key{}, errors.New("it is a public key, which belongs to the runner's document: the agent needs the private one")
	case block.Type != privateBlock:
		return Key{}, fmt.Errorf("it is %.40q, want PRIVATE KEY (PKCS #8) without a passphrase: %s", block.Type, hintMake)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	private, is := parsed.(ed25519.PrivateKey)
	if err != nil || !is {
		return Key{}, errors.New("it is not an Ed25519 key: " + hintMake)
	}
	return Key{private}, nil
}

// IsZero reports whether there is no key.
func (k Key) IsZero() bool { return k.private == nil }

// PEM is the private key as a file has it.
func (k Key) PEM() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: privateBlock, Bytes: der}), nil
}

// PublicPEM is the public key as the document of a runner has it.
func (k Key) PublicPEM() (string, error) {
	der, err := x509.MarshalPKIXPublicKey(k.private.Public())
	if err != nil {
		return "", fmt.Errorf("encode public key: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: publicBlock, Bytes: der})), nil
}

// ID names the key in tokens.
func (k Key) ID() (string, error) {
	public, err := k.PublicPEM()
	if err != nil {
		return "", err
	}
	_, id, err := parsePublic(public)
	return id, err
}

// parsePublic reads a public key, and returns its id: the SHA-256 of its DER, in hex, as
// openssl pkey -pubin -outform DER | sha256sum prints it.
func parsePublic(text string) (key ed25519.PublicKey, id string, err error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil || block.Type != publicBlock {
		return nil, "", errors.New("it is not a public key in PEM")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, "", fmt.Errorf("parse public key: %w", err)
	}
	key, is := parsed.(ed25519.PublicKey)
	if !is {
		return nil, "", errors.New("it is not an Ed25519 key")
	}
	// Encoded again: one key has one id, however its document has written it.
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, "", fmt.Errorf("encode public key: %w", err)
	}
	sum := sha256.Sum256(der)
	return key, hex.EncodeToString(sum[:]), nil
}

// Among reports whether a key with that id is one of some public keys.
func Among(id string, keys []string) bool {
	for _, text := range keys {
		if _, is, err := parsePublic(text); err == nil && is == id {
			return true
		}
	}
	return false
}
