package flock

import (
	"context"
	"errors"
	"os"
	"time"
)

// Wait takes an exclusive lock of the file at path, which it makes if it is not there,
// once no other process has it.
func Wait(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := Exclusive(f)
		switch {
		case err == nil:
			return func() { _ = Release(f) }, nil
		case !errors.Is(err, ErrHeld):
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
