package folders

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Open opens a file or folder that somebody else has chosen. Anything else, such as a
// device or a pipe, is not even opened, nor is what the kernel shows in /proc and /sys,
// whatever leads there.
func Open(name string) (*os.File, error) {
	fd, err := openPath(name)
	if err == nil {
		defer unix.Close(fd)
		err = content(fd)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	// By its descriptor: the name can lead elsewhere by now.
	file, err := os.OpenFile(ofDescriptor(fd), os.O_RDONLY|unix.O_NONBLOCK, 0)
	var at *os.PathError
	if errors.As(err, &at) {
		return nil, &os.PathError{Op: "open", Path: name, Err: at.Err}
	}
	return file, err
}

// ofDescriptor is a name of what a descriptor of this process is of.
func ofDescriptor(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// openPath returns a descriptor of what has that name, without opening it. Links of the
// kernel, such as those to the files of a process, are not followed.
func openPath(name string) (fd int, err error) {
	err = retried(func() error {
		fd, err = unix.Openat2(unix.AT_FDCWD, name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS})
		return err
	})
	if !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM) {
		return fd, err
	}
	// Before Linux 5.6, or where it is filtered.
	led, err := filepath.EvalSymlinks(name)
	if err != nil {
		var at *os.PathError
		if errors.As(err, &at) {
			err = at.Err
		}
		return -1, err
	}
	err = retried(func() error {
		fd, err = unix.Open(led, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	return fd, err
}

// content is an error if a descriptor is of anything but a file or a folder with content
// of its own.
func content(fd int) error {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	if kind := stat.Mode & unix.S_IFMT; kind != unix.S_IFREG && kind != unix.S_IFDIR {
		return errKind
	}
	var files unix.Statfs_t
	if err := retried(func() error { return unix.Fstatfs(fd, &files) }); err != nil {
		return err
	}
	if slices.Contains(kernelFiles, int64(files.Type)) { //nolint:unconvert // it has another type on other processors
		return errKind
	}
	return nil
}

// kernelFiles are file systems of the kernel's own, wherever they are mounted.
var kernelFiles = []int64{ //nolint:gochecknoglobals // a constant list
	unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEVPTS_SUPER_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC,
	unix.SECURITYFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.NSFS_MAGIC,
}

// makeOurs lets the owner of a folder do everything in it, and changes nothing that a
// link of that name leads to.
func makeOurs(dir int, name string) error {
	var fd int
	err := retried(func() (err error) {
		fd, err = unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return retried(func() error { return unix.Chmod(ofDescriptor(fd), 0o700) })
}
