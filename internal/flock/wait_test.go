package flock_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/flock"
)

// TestWait: the second one has the lock once the first one has released it, or gives up
// with its context.
func TestWait(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := flock.Wait(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	stopped := errors.New("the server stops")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(stopped)
	if _, err := flock.Wait(ctx, path); !errors.Is(err, stopped) {
		t.Errorf("Wait() next to a holder, stopped = %v, want %v", err, stopped)
	}
	second := make(chan error)
	go func() {
		unlock, err := flock.Wait(t.Context(), path)
		if err == nil {
			unlock()
		}
		second <- err
	}()
	unlock()
	if err := <-second; err != nil {
		t.Errorf("Wait() for a holder that has released the lock = %v", err)
	}
}
