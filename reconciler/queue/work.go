package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// abortKey holds, in a context, the one that ends what was begun.
type abortKey struct{}

// Abortable returns a context for Work and Begun: what was begun continues when ctx is
// done, until abort is called.
func Abortable(ctx context.Context) (with context.Context, abort context.CancelFunc) {
	aborted, abort := context.WithCancel(context.WithoutCancel(ctx))
	return context.WithValue(ctx, abortKey{}, aborted), abort
}

// Begun returns a context for what was begun and is to be finished when ctx is done:
// an action in the middle is worse than a slow shutdown. One that hangs ends when it
// is aborted, if ctx is of Abortable. The caller must call done.
func Begun(ctx context.Context) (lasting context.Context, done context.CancelFunc) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	aborted, ok := ctx.Value(abortKey{}).(context.Context)
	if !ok {
		return lasting, cancel
	}
	stop := context.AfterFunc(aborted, cancel)
	return lasting, func() { stop(); cancel() }
}

func begun(ctx context.Context, do func(context.Context) error) error {
	ctx, done := Begun(ctx)
	defer done()
	return do(ctx)
}

// conflictsInARow is how often a record may have changed since it was read before that
// counts as a failure: for a moment, somebody else may write at the same time.
const conflictsInARow = 20

// Work calls do for each key of q until ctx is done. A key whose work failed
// comes again, later each time.
func Work[K comparable](ctx context.Context, logger *slog.Logger, q *Queue[K], do func(context.Context, K) error) error {
	for {
		key, ok := q.Get(ctx)
		if !ok {
			return nil
		}
		err := begun(ctx, func(ctx context.Context) error { return do(ctx, key) })
		if failures := q.Outcome(key, Counts(err)); err != nil {
			level, wait := slog.LevelError, RetryIn(err, failures, 5*time.Minute)
			switch {
			case !errors.Is(err, holdfast.ErrConflict):
			case failures <= conflictsInARow:
				level, wait = slog.LevelDebug, 50*time.Millisecond
			default:
				wait = RetryIn(err, failures-conflictsInARow, 5*time.Minute)
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

// RetryIn returns how long to wait after a failure, the last one of so many in a row:
// doubling from two seconds up to ceiling. A call that the code host did not accept has
// not failed, and is made again as soon as the host accepts calls.
func RetryIn(err error, failures int, ceiling time.Duration) time.Duration {
	if limited := (*holdfast.RateLimitError)(nil); errors.As(err, &limited) {
		return max(limited.Wait, time.Second)
	}
	return Backoff(time.Second, failures, ceiling)
}

// Counts reports whether an outcome is a failure that makes the next wait longer.
func Counts(err error) bool {
	limited := (*holdfast.RateLimitError)(nil)
	return err != nil && !errors.As(err, &limited)
}

// Backoff is a doubling delay with a ceiling.
func Backoff(base time.Duration, failures int, ceiling time.Duration) time.Duration {
	return min(base<<min(failures, 16), ceiling)
}
