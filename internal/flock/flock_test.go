package flock_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/flock"
)

// A copy of the file, as a process has that is being started, does not keep a
// released lock.
func TestReleaseDespiteCopy(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	file := open(t, path)
	if err := flock.Exclusive(file); err != nil {
		t.Fatal(err)
	}
	duplicate, err := syscall.Dup(int(file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(duplicate) })

	other := open(t, path)
	if err := flock.Exclusive(other); !errors.Is(err, flock.ErrHeld) {
		t.Errorf("Exclusive() beside a holder = %v, want ErrHeld", err)
	}
	if err := flock.Shared(other); !errors.Is(err, flock.ErrHeld) {
		t.Errorf("Shared() beside a holder = %v, want ErrHeld", err)
	}
	if err := flock.Release(file); err != nil {
		t.Fatal(err)
	}
	if err := flock.Exclusive(other); err != nil {
		t.Errorf("Exclusive() after Release() = %v", err)
	}
}

func TestSharedTwice(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	for range 2 {
		if err := flock.Shared(open(t, path)); err != nil {
			t.Errorf("Shared() = %v", err)
		}
	}
	if err := flock.Exclusive(open(t, path)); !errors.Is(err, flock.ErrHeld) {
		t.Errorf("Exclusive() beside shared holders = %v, want ErrHeld", err)
	}
}

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}
