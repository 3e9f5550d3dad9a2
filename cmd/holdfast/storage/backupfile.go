package storage

// A backup's file while it is written.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/datastore/backup"
	"github.com/holdfast-dev/holdfast/internal/durable"
	"github.com/holdfast-dev/holdfast/internal/flock"
)

// errOtherBackup: two that write one file would give it the content of whichever is not complete.
var errOtherBackup = errors.New("another holdfast backup is writing to that file")

// writeTo writes a backup to a file, which has its name only when it is complete. Until then
// everything is in a folder next to it, which the next backup to that file removes if this one
// is killed.
func writeTo(ctx context.Context, name string, source backup.Source) (about backup.About, manifest backup.Manifest, err error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return about, manifest, fmt.Errorf("write the backup: %s is a folder: add the name of a file", name)
	}
	folder := name + ".tmp"
	lock, err := makeWorkFolder(folder)
	if err != nil {
		return about, manifest, fmt.Errorf("write the backup: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder), flock.Release(lock)) }()
	source.TempDir = folder
	unnamed := filepath.Join(folder, "backup")
	f, err := os.OpenFile(unnamed, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return about, manifest, fmt.Errorf("write the backup: %w", err)
	}
	out := bufio.NewWriterSize(f, 1<<20)
	about, manifest, err = backup.Write(ctx, out, source)
	if err == nil {
		err = errors.Join(out.Flush(), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(unnamed, name)
	}
	if err != nil {
		return about, manifest, err
	}
	return about, manifest, durable.SyncDir(filepath.Dir(name))
}

// makeWorkFolder makes an empty folder that nobody else uses until the lock is released. What a
// backup that was killed has left there is removed.
func makeWorkFolder(folder string) (*os.File, error) {
	for {
		if info, err := os.Lstat(folder); err == nil && !info.IsDir() { // as older versions left it
			if err := os.Remove(folder); err != nil {
				return nil, err
			}
		}
		if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		lock, err := os.Open(folder)
		if errors.Is(err, os.ErrNotExist) {
			continue // its owner has just removed it
		} else if err != nil {
			return nil, err
		}
		if err := flock.Exclusive(lock); errors.Is(err, flock.ErrHeld) {
			return nil, errors.Join(errOtherBackup, lock.Close())
		} else if err != nil {
			return nil, errors.Join(err, lock.Close())
		}
		if same, err := isNamed(lock, folder); err != nil || !same {
			if err = errors.Join(err, flock.Release(lock)); err != nil {
				return nil, err
			}
			continue
		}
		if err := empty(folder); err != nil {
			return nil, errors.Join(err, flock.Release(lock))
		}
		return lock, nil
	}
}

func empty(folder string) error {
	left, err := os.ReadDir(folder)
	for _, one := range left {
		err = errors.Join(err, os.RemoveAll(filepath.Join(folder, one.Name())))
	}
	return err
}

// isNamed reports whether a folder that is open still has its name.
func isNamed(open *os.File, name string) (bool, error) {
	was, err := open.Stat()
	if err != nil {
		return false, err
	}
	is, err := os.Stat(name)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(was, is), err
}
