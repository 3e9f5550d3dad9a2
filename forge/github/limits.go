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

	mu     sync.Mutex
	all    pause // the hour's calls are used up, or reads are refused
	writes pause // too much was written: reads continue
	quota  Quota
}

// pause is a time in which calls are refused.
type pause struct {
	until   time.Time // no call before
	cause   string
	strikes int // blind ones in a row
}

// check returns a *holdfast.RateLimitError while calls, or writes, are refused.
func (l *limits) check(write bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for _, p := range []*pause{&l.all, &l.writes} {
		if now.Before(p.until) && (write || p == &l.all) {
			return &holdfast.RateLimitError{RetryAt: p.until, Wait: p.until.Sub(now), Err: fmt.Errorf("not asked: %s", p.cause)}
		}
	}
	return nil
}

func (l *limits) read() Quota {
	l.mu.Lock()
	defer l.mu.Unlock()
	q, now := l.quota, l.now()
	if now.Before(l.all.until) {
		q.RetryAt = l.all.until
	}
	if now.Before(l.writes.until) {
		q.WriteAt = l.writes.until
	}
	return q
}

// wait is how long writes are refused from now.
func (l *limits) wait() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	until := l.all.until
	if l.writes.until.After(until) {
		until = l.writes.until
	}
	return max(0, until.Sub(l.now()))
}

// note processes an answer and returns an error if it is a refusal.
func (l *limits) note(resp *http.Response, body []byte, write bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	resetIn := l.noteQuota(resp.Header, now)
	exhausted := resp.Header.Get("X-RateLimit-Remaining") == "0" && resetIn > 0
	concerned := &l.all
	if write && !exhausted {
		concerned = &l.writes
	}
	if !limited(resp, body, exhausted) {
		if resp.StatusCode < 300 {
			concerned.strikes = 0
		}
		if exhausted { // the last call of this hour went through
			l.all.extend(now, resetIn, "the hour's calls are used up")
		}
		return nil
	}
	cause := fmt.Sprintf("GitHub answered %d: %s", resp.StatusCode, messageOf(body))
	retryAfter, told := parseRetryAfter(resp.Header, now)
	switch {
	case told:
		concerned.extend(now, retryAfter, cause)
	case exhausted:
		concerned.extend(now, resetIn, cause)
	default:
		concerned.extend(now, min(firstPause<<min(concerned.strikes, 8), maxBlindPause), cause)
		concerned.strikes++
	}
	return &holdfast.RateLimitError{RetryAt: concerned.until, Wait: concerned.until.Sub(now), Err: errors.New(cause)}
}

// extend remembers that no call may be made for d. The time is ours plus a
// duration, so that neither a skewed nor a jumping clock makes it longer.
func (p *pause) extend(now time.Time, d time.Duration, cause string) {
	until := now.Add(min(max(d, time.Second), maxPause))
	if until.After(p.until) {
		p.until, p.cause = until, cause
	}
}

// noteQuota keeps the quota and returns how long it is until it is full again,
// by GitHub's own clock where that is known.
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
