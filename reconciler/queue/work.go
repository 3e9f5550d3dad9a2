package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Work calls do for each key of q until ctx is done. A key whose work failed
// comes again, later each time.
func Work[K comparable](ctx context.Context, logger *slog.Logger, q *Queue[K], do func(context.Context, K) error) error {
	for {
		key, ok := q.Get(ctx)
		if !ok {
			return nil
		}
		// What was begun is finished: an action in its middle is worse than a
		// slow shutdown.
		err := do(context.WithoutCancel(ctx), key)
		if failures := q.Outcome(key, err != nil); failures > 0 {
			wait := Backoff(time.Second, failures, 5*time.Minute)
			if limited := (*holdfast.RateLimitError)(nil); errors.As(err, &limited) {
				wait = max(wait, time.Until(limited.RetryAt))
			}
			level := slog.LevelError
			if errors.Is(err, holdfast.ErrConflict) {
				level, wait = slog.LevelDebug, 50*time.Millisecond
			}
			logger.Log(ctx, level, "request failed", "request", fmt.Sprint(key), "err", err, "retry_in", wait)
			q.AddAfter(key, wait)
		}
		q.Done(key)
	}
}

// Step calls do for the next key of q, which must have one, and returns its error.
func Step[K comparable](ctx context.Context, q *Queue[K], do func(context.Context, K) error) error {
	key, ok := q.Get(ctx)
	if !ok {
		return ctx.Err()
	}
	defer q.Done(key)
	return do(ctx, key)
}

// Backoff is a doubling delay with a ceiling.
func Backoff(base time.Duration, failures int, ceiling time.Duration) time.Duration {
	return min(base<<min(failures, 16), ceiling)
}
