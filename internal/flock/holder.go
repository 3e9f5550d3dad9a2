package flock

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Lock is a locked file that names its holder while it is held. The file stays.
type Lock struct{ f *os.File }

// HeldError is ErrHeld of a Lock, with its holder in words.
type HeldError struct{ Holder string }

func (e *HeldError) Error() string { return "in use by " + e.Holder }
func (e *HeldError) Unwrap() error { return ErrHeld }

// Hold takes the lock at path without waiting. It returns a *HeldError if another
// process, or another Lock of this one, has it.
func Hold(path string, now time.Time) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = Exclusive(f)
	if errors.Is(err, ErrHeld) {
		holder, _ := io.ReadAll(io.LimitReader(f, 1024))
		_ = f.Close()
		holder = bytes.TrimSpace(holder)
		if len(holder) == 0 {
			holder = []byte("another process")
		}
		return nil, &HeldError{Holder: string(holder)}
	}
	if err == nil {
		err = writeHolder(f, now)
	}
	if err != nil {
		_ = Release(f)
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &Lock{f: f}, nil
}

func writeHolder(f *os.File, now time.Time) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	text := fmt.Sprintf("pid %d on host %s since %s\n", os.Getpid(), host, now.UTC().Format(time.RFC3339))
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(text), 0)
	return err
}

// Release frees the lock.
func (l *Lock) Release() error {
	return errors.Join(l.f.Truncate(0), Release(l.f))
}
