package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// open opens name below dir, through no link, without waiting for anybody.
func open(dir, name string) (*os.File, error) {
	parent, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	path := filepath.Join(dir, name)
	for {
		fd, err := unix.Openat2(int(parent.Fd()), name, &unix.OpenHow{
			Flags:   unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NOCTTY,
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
		})
		switch {
		case errors.Is(err, syscall.EINTR), errors.Is(err, syscall.EAGAIN):
			continue
		case errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENXIO):
			return nil, errNotRegular
		case err != nil:
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
		return os.NewFile(uintptr(fd), path), nil
	}
}

// Harden keeps what an engine starts from this process: no descriptor that it
// was started with is passed on, and its memory, environment and descriptors
// can be read by nobody but root. An agent calls it at its start.
func Harden() error {
	if err := unix.CloseRange(3, 1<<32-1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		for fd := 3; fd < 1<<16; fd++ { // before Linux 5.11
			syscall.CloseOnExec(fd)
		}
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return os.NewSyscallError("hide memory", err)
	}
	return nil
}
