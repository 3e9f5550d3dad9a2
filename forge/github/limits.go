package github

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
)

const (
	// maxPause bounds what GitHub (or somebody in between) can make us wait:
	// its primary limit is by the hour.
	maxPause = time.Hour + 5*time.Minute
	// firstPause is for secondary limits that do not say for how long; it
	// doubles up to maxBlindPause. Both are GitHub's advice.
	firstPause    = time.Minute
	maxBlindPause = 16 * time.Minute
)

// limits is the memory of what GitHub said about its rate limits.
type limits struct {
	now func() time.Time

	mu      sync.Mutex
	until   time.Time // no call before
	cause   string
	strikes int // blind pauses in a row
	quota   Quota
}

// check returns a *holdfast.RateLimitError while calls are refused.
func (l *limits) check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.now().Before(l.until) {
		return nil
	}
	return &holdfast.RateLimitError{RetryAt: l.until, Err: fmt.Errorf("not asked: %s", l.cause)}
}

func (l *limits) read() Quota {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.quota
	if l.now().Before(l.until) {
		q.RetryAt = l.until
	}
	return q
}

// note takes in an answer and returns an error if it is a refusal.
func (l *limits) note(resp *http.Response, body []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	resetIn := l.noteQuota(resp.Header, now)
	exhausted := resp.Header.Get("X-RateLimit-Remaining") == "0" && resetIn > 0
	if !limited(resp, body, exhausted) {
		if resp.StatusCode < 300 {
			l.strikes = 0
		}
		if exhausted { // the last call of this hour went through
			l.pause(now, resetIn, "the hour's calls are used up")
		}
		return nil
	}
	cause := fmt.Sprintf("GitHub answered %d: %s", resp.StatusCode, messageOf(body))
	retryAfter, told := parseRetryAfter(resp.Header, now)
	switch {
	case told:
		l.pause(now, retryAfter, cause)
	case exhausted:
		l.pause(now, resetIn, cause)
	default:
		l.pause(now, min(firstPause<<min(l.strikes, 8), maxBlindPause), cause)
		l.strikes++
	}
	return &holdfast.RateLimitError{RetryAt: l.until, Err: errors.New(cause)}
}

// pause remembers that no call may be made for d. The time is ours plus a
// duration, so that neither a skewed nor a jumping clock makes it longer.
func (l *limits) pause(now time.Time, d time.Duration, cause string) {
	until := now.Add(min(max(d, time.Second), maxPause))
	if until.After(l.until) {
		l.until, l.cause = until, cause
	}
}

// noteQuota keeps the quota and returns how long it is until it is full again,
// by GitHub's own clock where it is told.
func (l *limits) noteQuota(h http.Header, now time.Time) time.Duration {
	limit, err := strconv.Atoi(h.Get("X-RateLimit-Limit"))
	if resource := h.Get("X-RateLimit-Resource"); err != nil || (resource != "" && resource != "core") {
		return 0
	}
	remaining, _ := strconv.Atoi(h.Get("X-RateLimit-Remaining"))
	seconds, _ := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64)
	theirs := now
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		theirs = date
	}
	resetIn := time.Unix(seconds, 0).Sub(theirs)
	l.quota = Quota{Limit: limit, Remaining: remaining, Reset: now.Add(resetIn)}
	return resetIn
}

// limited reports whether an answer is a refusal because of a limit. GitHub
// tells it by 429 or 403, and in three ways which of the 403 are meant.
func limited(resp *http.Response, body []byte, exhausted bool) bool {
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		return true
	case http.StatusForbidden:
		message := strings.ToLower(messageOf(body))
		return resp.Header.Get("Retry-After") != "" || exhausted ||
			strings.Contains(message, "rate limit") || strings.Contains(message, "abuse detection")
	default:
		return false
	}
}

// messageOf returns GitHub's message, bounded.
func messageOf(body []byte) string {
	var answer struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Message == "" {
		return "no message"
	}
	return clip(answer.Message, 300)
}

func parseRetryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	raw := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(raw); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, int(maxPause/time.Second))) * time.Second, true
	}
	if at, err := http.ParseTime(raw); err == nil {
		return at.Sub(now), true
	}
	return 0, false
}
