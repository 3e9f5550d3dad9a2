//go:build unix

package gitsource

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/internal/flock"
)

// lockFile takes an exclusive lock that the kernel drops when the process ends.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := flock.Exclusive(f)
		switch {
		case err == nil:
			return func() { _ = flock.Release(f) }, nil
		case !errors.Is(err, flock.ErrHeld):
			_ = f.Close()
			return nil, err
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
