// Whether files of a workspace are still those that they were.

package planfile

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"syscall"
)

// Changed returns the first file, link or folder below the folder was that is another one below
// the folder is, empty if there is none. What is named except is not looked at.
func Changed(ctx context.Context, was, is, except string) (changed string, err error) {
	before, err := os.OpenRoot(was)
	if err != nil {
		return "", err
	}
	defer before.Close()
	after, err := os.OpenRoot(is)
	if err != nil {
		return ".", nil //nolint:nilerr // it is not even a folder
	}
	defer after.Close()
	err = fs.WalkDir(before.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err = cmp.Or(err, ctx.Err()); err != nil || name == "." || name == except {
			return err
		}
		if same, err := sameEntry(before, after, name, entry.Type()); err != nil {
			return err
		} else if !same {
			changed = name
			return fs.SkipAll
		}
		return nil
	})
	return changed, err
}

// sameEntry reports whether what has that name in both folders is the same. All
// folders that lead to it are ones in both. What cannot be read is another one.
func sameEntry(before, after *os.Root, name string, kind fs.FileMode) (bool, error) {
	now, err := after.Lstat(name)
	switch {
	case err != nil || now.Mode().Type() != kind:
		return false, nil //nolint:nilerr // whatever it is
	case kind.IsDir():
		return true, nil
	case kind&fs.ModeSymlink != 0:
		was, err := before.Readlink(name)
		if err != nil {
			return false, err
		}
		is, err := after.Readlink(name)
		return err == nil && was == is, nil
	}
	was, err := before.Open(name)
	if err != nil {
		return false, err
	}
	defer was.Close()
	is, err := after.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false, nil //nolint:nilerr // it was ours to read
	}
	defer is.Close()
	return SameContent(was, is)
}
