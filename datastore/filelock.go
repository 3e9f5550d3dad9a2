package datastore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/flock"
)

// fileLock keeps a second server off a database file. The kernel releases it
// when the process ends, however it ends; the file stays and names the holder
// only while the lock is held.
type fileLock struct{ f *os.File }

// lockFile takes the lock at path without waiting. It is an ErrLocked, which
// says by whom, if another process or another Store of this one has it.
func lockFile(path string, now time.Time) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = flock.Exclusive(f)
	if errors.Is(err, flock.ErrHeld) {
		holder, _ := io.ReadAll(io.LimitReader(f, 1024))
		_ = f.Close()
		holder = bytes.TrimSpace(holder)
		if len(holder) == 0 {
			holder = []byte("another process")
		}
		return nil, fmt.Errorf("in use by %s: only one server may open a database: %w", holder, holdfast.ErrLocked)
	}
	if err == nil {
		err = writeHolder(f, now)
	}
	if err != nil {
		_ = flock.Release(f)
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &fileLock{f: f}, nil
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

func (l *fileLock) unlock() error {
	return errors.Join(l.f.Truncate(0), flock.Release(l.f))
}
