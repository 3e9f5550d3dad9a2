package objects

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// limits bound how long each step may take. The server has a minute to answer an agent,
// which then sends again: retries end before that. The SDKs of the clouds retry nothing, or
// one would multiply the other.
type limits struct {
	dial   time.Duration // to connect, and as long again for TLS
	answer time.Duration // from the end of a request to the head of its answer
	quiet  time.Duration // of a connection on which a body is sent or received
	call   time.Duration // of a call that moves no object
	retry  time.Duration // from the first attempt to the last
	secret time.Duration // how old a secret may be before it is read again
}

var usualLimits = limits{
	dial: 5 * time.Second, answer: 15 * time.Second, quiet: 20 * time.Second, call: 15 * time.Second, retry: 25 * time.Second,
	secret: time.Minute,
}

const (
	firstPause   = 200 * time.Millisecond
	longestPause = 5 * time.Second
)

func (b *Bucket) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if b.files != nil {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, b.limits.call)
}

// try calls attempt until it succeeds, fails for good or has failed for a while. While the
// store is known to be unavailable a call is one attempt: its caller has other work.
func (b *Bucket) try(ctx context.Context, verb, key string, attempt func(ctx context.Context) error) error {
	if b.files != nil {
		return b.explained(verb, key, attempt(ctx))
	}
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = firstPause, longestPause
	var last error
	_, _ = backoff.Retry(ctx, func() (struct{}, error) {
		last = b.explained(verb, key, attempt(ctx))
		var failure *Error
		if errors.As(last, &failure) && (!failure.kind.passes() || b.trouble.Load() != nil) {
			return struct{}{}, backoff.Permanent(last)
		}
		return struct{}{}, last
	}, backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(b.limits.retry), backoff.WithNotify(func(err error, pause time.Duration) {
		b.log.DebugContext(ctx, "object store is asked again", "err", err, "duration", pause)
	}))
	if ctx.Err() != nil {
		return last // it says nothing about the store
	}
	b.note(ctx, last)
	return last
}

// note remembers how a call has ended.
func (b *Bucket) note(ctx context.Context, err error) {
	var failure *Error
	if errors.As(err, &failure) && failure.kind.ofStore() {
		if b.trouble.Swap(failure) == nil {
			b.log.WarnContext(ctx, "object store cannot be used; what needs it waits", "err", failure, "hint", failure.Hint())
		}
		return
	}
	if was := b.trouble.Swap(nil); was != nil {
		b.log.InfoContext(ctx, "object store can be used again", "bucket", b.name)
	}
}

// Problem is why the last use of the store failed, in a text without names, which
// everybody may see. Empty: it could.
func (b *Bucket) Problem() string {
	if failure := b.trouble.Load(); failure != nil {
		return failure.kind.problem()
	}
	return ""
}
