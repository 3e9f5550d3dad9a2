package runner_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
)

func corpusSecret(random *rand.Rand, i int) string {
	var raw [18]byte
	for j := range raw {
		raw[j] = byte(random.UintN(256))
	}
	switch i % 7 {
	case 0:
		return hex.EncodeToString(raw[:])
	case 1:
		return base64.StdEncoding.EncodeToString(raw[:])
	case 2:
		return "pass phrase " + hex.EncodeToString(raw[:6])
	case 3:
		return "-----BEGIN KEY-----\n" + base64.StdEncoding.EncodeToString(raw[:]) + "\n-----END KEY-----\n"
	case 4:
		return hex.EncodeToString(raw[:4])
	case 5:
		return `q"uote\` + hex.EncodeToString(raw[:5]) + `<&>`
	default:
		return "päß-wört-" + hex.EncodeToString(raw[:5])
	}
}

// leak returns the form in which secret is in text; empty if it is not.
func leak(text, secret string) string {
	marshalled, _ := json.Marshal(secret)
	forms := []string{
		secret, strings.Trim(string(marshalled), `"`), url.QueryEscape(secret), url.PathEscape(secret),
		base64.StdEncoding.EncodeToString([]byte(secret)), fmt.Sprintf("%q", secret),
	}
	if lines := strings.Split(secret, "\n"); len(lines) > 1 {
		forms = append(forms, lines[1])
	}
	for _, form := range forms {
		if strings.Contains(text, form) {
			return form
		}
	}
	return ""
}
