package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
)

// maxUnbound bounds the bodies that are tried with all secrets, in bytes.
const maxUnbound = 64 << 10

// signatureOf returns the delivery's SHA-256 signature, or why there is none.
// GitHub's older SHA-1 signature is not accepted.
func signatureOf(h http.Header) (mac []byte, reason string) {
	raw := h.Get("X-Hub-Signature-256")
	switch digits, ok := strings.CutPrefix(raw, "sha256="); {
	case raw == "":
		return nil, "the X-Hub-Signature-256 header is missing: the webhook needs a secret"
	case !ok || len(digits) != 2*sha256.Size:
		return nil, "the X-Hub-Signature-256 header is not a signature"
	default:
		mac, err := hex.DecodeString(digits)
		if err != nil {
			return nil, "the X-Hub-Signature-256 header is not a signature"
		}
		return mac, ""
	}
}

// signed reports in constant time whether mac is body's under secret. Nothing
// is signed under an empty secret.
func signed(body, mac, secret []byte) bool {
	hash := hmac.New(sha256.New, secret)
	hash.Write(body)
	return hmac.Equal(hash.Sum(nil), mac) && len(secret) > 0
}

func (h *Handler) signedByAny(body, mac []byte) bool {
	tried := make(map[string]bool, len(h.hosted))
	for _, repo := range h.hosted {
		for _, entry := range repo.entries {
			secret := entry.Secret()
			if tried[string(secret)] {
				continue
			}
			tried[string(secret)] = true
			if signed(body, mac, secret) {
				return true
			}
		}
	}
	return false
}
