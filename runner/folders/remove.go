package folders

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// RemoveAll is Remove without an end.
func RemoveAll(dir string) error { return Remove(context.Background(), dir) }

// Remove removes dir and all below it, whatever its depth and the permissions of
// its folders; no error if there is none, or no name. Folders that are not empty are moved
// into dir itself before they are emptied, so that three descriptors suffice and
// no path is longer than two names. What cannot be removed does not keep the
// rest; the error names the first.
func Remove(ctx context.Context, dir string) error {
	if dir == "" {
		return nil
	}
	dir = filepath.Clean(dir)
	err := os.Remove(dir)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	info, errStat := os.Lstat(dir)
	if errStat != nil || !info.IsDir() {
		return shortened(err)
	}
	fd, err := openWritable(unix.AT_FDCWD, dir)
	if err != nil {
		return &os.PathError{Op: "open", Path: short(dir), Err: err}
	}
	top := os.NewFile(uintptr(fd), short(dir))
	defer top.Close()
	r := removal{ctx: ctx, top: fd, prefix: ".remove-" + rand.Text() + "-"}
	if err := r.empty(top, true); err != nil {
		return fmt.Errorf("remove %s: %w", short(dir), err)
	}
	return shortened(os.Remove(dir))
}

type removal struct {
	ctx    context.Context //nolint:containedctx // of one call
	top    int             // descriptor of the folder that goes
	prefix string          // of names in it that nobody else chooses
	moved  int
}

// empty removes what is in a folder. Passes continue as long as they remove
// anything: a folder can be read while its entries go and come.
func (r *removal) empty(dir *os.File, top bool) error {
	for {
		found, removed, err := r.pass(dir, top)
		switch {
		case r.ctx.Err() != nil:
			return context.Cause(r.ctx)
		case found == 0 && err == nil:
			return nil
		case removed == 0:
			return err
		}
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
}

// pass goes through a folder once. The error is the first of those entries that
// stay.
func (r *removal) pass(dir *os.File, top bool) (found, removed int, first error) {
	for {
		names, err := dir.Readdirnames(batch)
		for _, name := range names {
			if found++; found%64 == 0 && r.ctx.Err() != nil {
				return found, removed, context.Cause(r.ctx)
			}
			if err := r.entry(int(dir.Fd()), name, top); err == nil {
				removed++
			} else if first == nil {
				first = &os.PathError{Op: "remove", Path: short(name), Err: err}
			}
		}
		if errors.Is(err, io.EOF) {
			return found, removed, first
		} else if err != nil {
			return found, removed, errors.Join(first, err)
		}
	}
}

// entry removes an entry of a folder. A folder that is not empty is emptied if it is at
// the top, otherwise moved there.
func (r *removal) entry(dir int, name string, top bool) error {
	err := retried(func() error { return unix.Unlinkat(dir, name, 0) })
	// Linux says EISDIR for a folder, others EPERM.
	if err == nil || !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return err
	}
	errFolder := r.rmdir(dir, name)
	switch {
	case errors.Is(errFolder, unix.ENOTDIR):
		return err
	case !errors.Is(errFolder, unix.ENOTEMPTY) && !errors.Is(errFolder, unix.EEXIST):
		return errFolder
	case !top:
		return r.raise(dir, name)
	}
	fd, err := openWritable(dir, name)
	if err != nil {
		return err
	}
	sub := os.NewFile(uintptr(fd), short(name))
	defer sub.Close()
	if err := r.empty(sub, false); err != nil {
		return err
	}
	return r.rmdir(dir, name)
}

func (r *removal) rmdir(dir int, name string) error {
	return retried(func() error { return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) })
}

// raise moves a folder to the top.
func (r *removal) raise(dir int, name string) error {
	for opened := false; ; {
		r.moved++
		err := retried(func() error { return unix.Renameat(dir, name, r.top, fmt.Sprint(r.prefix, r.moved)) })
		switch {
		case errors.Is(err, unix.EACCES) && !opened: // its own permissions count, too
			fd, err := openWritable(dir, name)
			if err != nil {
				return err
			}
			_ = unix.Close(fd)
			opened = true
		case !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.ENOTDIR):
			return err
		}
	}
}

// openWritable opens a folder and lets its owner do everything in it.
func openWritable(dir int, name string) (int, error) {
	fd, err := openFolder(dir, name)
	if err == nil {
		_ = unix.Fchmod(fd, 0o700)
	}
	return fd, err
}

// shortened is err with a path that is not too long to be shown.
func shortened(err error) error {
	var path *os.PathError
	if errors.As(err, &path) && len(path.Path) > maxShown {
		return &os.PathError{Op: path.Op, Path: short(path.Path), Err: path.Err}
	}
	return err
}
