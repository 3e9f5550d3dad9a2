package queue_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/holdfast-dev/holdfast/reconciler/queue"
)

// What was begun is finished when Work is told to end, unless it hangs and is aborted.
func TestBegunWorkIsFinishedOrAborted(t *testing.T) {
	t.Parallel()
	for name, hangs := range map[string]bool{"finished": false, "aborted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(t.Context())
			ctx, abort := queue.Abortable(ctx)
			defer abort()
			begun, mayEnd, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			q := queue.New[string]()
			q.Add("key")
			worked := make(chan error, 1)
			go func() {
				worked <- queue.Work(ctx, slog.New(slog.DiscardHandler), q, func(ctx context.Context, _ string) error {
					close(begun)
					select {
					case <-mayEnd:
						ended <- ctx.Err()
					case <-ctx.Done():
						ended <- ctx.Err()
					}
					return nil
				})
			}()
			<-begun
			if !q.Busy() {
				t.Error("a key is worked on, and the queue is not busy")
			}
			stop()
			if hangs {
				abort()
			} else {
				close(mayEnd)
			}
			if err := <-ended; errors.Is(err, context.Canceled) != hangs {
				t.Errorf("what was begun ended with %v", err)
			}
			if err := <-worked; err != nil {
				t.Error(err)
			}
			if q.Busy() {
				t.Error("nothing is left, and the queue is busy")
			}
		})
	}
}
