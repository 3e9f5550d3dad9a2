package protocol

import (
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast"
)

// FormatRunToken returns the credential of one attempt of a run as it travels:
// "run.attempt.fence.secret". Only the secret proves anything; the rest says whose it
// is, so that a request that names no run (for a bundle, for a state) can be
// checked. The fence is part of it since runs and attempts of a database that was
// restored are numbered again: only a fence is never given twice.
func FormatRunToken(ref holdfast.AttemptRef, secret string) string {
	return ref.Run + "." + strconv.Itoa(ref.Attempt) + "." + strconv.FormatInt(ref.Fence, 10) + "." + secret
}

// ParseRunToken returns whose credential token claims to be. It proves nothing
// yet: the secret is still to be checked.
func ParseRunToken(token string) (ref holdfast.AttemptRef, secret string, ok bool) {
	parts := strings.SplitN(token, ".", 4)
	if len(parts) != 4 || parts[0] == "" || parts[3] == "" {
		return holdfast.AttemptRef{}, "", false
	}
	attempt, err := strconv.Atoi(parts[1])
	if err != nil || attempt < 1 || strconv.Itoa(attempt) != parts[1] {
		return holdfast.AttemptRef{}, "", false
	}
	fence, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || fence < 1 || strconv.FormatInt(fence, 10) != parts[2] {
		return holdfast.AttemptRef{}, "", false
	}
	return holdfast.AttemptRef{Run: parts[0], Attempt: attempt, Fence: fence}, parts[3], true
}
