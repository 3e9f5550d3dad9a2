//go:build !linux

package folders

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Open opens a file or folder that somebody else has chosen. Anything else is not
// opened.
func Open(name string) (*os.File, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() {
		return nil, &os.PathError{Op: "open", Path: name, Err: errKind}
	}
	return os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// makeOurs lets the owner of a folder do everything in it, and changes nothing that a
// link of that name leads to.
func makeOurs(dir int, name string) error {
	return unix.Fchmodat(dir, name, 0o700, unix.AT_SYMLINK_NOFOLLOW)
}
