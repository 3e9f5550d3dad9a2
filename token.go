package holdfast

import (
	"strconv"
	"strings"
)

// FormatRunToken returns the credential of one attempt of a run as it travels:
// "run.attempt.secret". Only the secret proves anything; the rest says whose it
// is, so that a request that names no run (for a bundle, for a state) can be
// checked.
func FormatRunToken(run string, attempt int, secret string) string {
	return run + "." + strconv.Itoa(attempt) + "." + secret
}

// ParseRunToken returns whose credential token claims to be. It proves nothing
// yet: the secret is still to be checked.
func ParseRunToken(token string) (run string, attempt int, secret string, ok bool) {
	run, rest, ok := strings.Cut(token, ".")
	if !ok || run == "" {
		return "", 0, "", false
	}
	number, secret, ok := strings.Cut(rest, ".")
	if !ok || secret == "" {
		return "", 0, "", false
	}
	attempt, err := strconv.Atoi(number)
	if err != nil || attempt < 1 || strconv.Itoa(attempt) != number {
		return "", 0, "", false
	}
	return run, attempt, secret, true
}
