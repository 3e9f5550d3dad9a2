package sandbox

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/runner/folders"
	"github.com/holdfast-dev/holdfast/runner/sandbox/internal/stage"
)

// everybodys are folders that everybody may write.
var everybodys = []string{"/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue"}

// Bounds of what is gone through there.
const (
	leftDepth   = 8 // of folders that everybody may write, below one another
	leftEntries = folders.MaxEntries
)

// removeLeft removes what the user of a slot has in folders that everybody may write,
// and which a later run of the slot would meet: all but the mounts of this start. Nothing
// of the user is alive. In modes with a root of their own /tmp goes with the sandbox.
func removeLeft(spec *stage.Spec) {
	l := left{uid: uint32(spec.UID), kept: map[inode]bool{}}
	for _, m := range spec.Mount {
		var stat unix.Stat_t
		if unix.Stat(m.Source, &stat) == nil {
			l.kept[inode{stat.Dev, stat.Ino}] = true
		}
	}
	dirs := append([]string{os.TempDir()}, everybodys...)
	onThread(func() {
		// With its own working folder, and as that user, who can remove nothing of
		// others that somebody leads it to.
		if unix.Unshare(unix.CLONE_FS) != nil {
			return
		}
		id := uintptr(spec.UID)
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, id, id, id); errno != 0 {
			return
		}
		for _, dir := range dirs {
			if fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
				l.folder(fd, dir, 0)
			}
		}
	})
}

type inode struct{ dev, ino uint64 }

// left removes what belongs to a user. All that it does is done for the calling thread.
type left struct {
	uid  uint32
	kept map[inode]bool
	seen int
}

// folder goes through an open folder, and closes it. What cannot be removed stays.
func (l *left) folder(fd int, name string, depth int) {
	dir := os.NewFile(uintptr(fd), name)
	defer dir.Close()
	var stat unix.Stat_t
	if unix.Fstat(fd, &stat) != nil || l.kept[inode{stat.Dev, stat.Ino}] {
		return
	}
	for l.seen < leftEntries {
		names, err := dir.Readdirnames(1024)
		l.seen += len(names)
		for _, name := range names {
			l.entry(fd, name, depth)
		}
		if err != nil && !errors.Is(err, io.EOF) || len(names) == 0 {
			return
		}
	}
}

func (l *left) entry(dir int, name string, depth int) {
	var stat unix.Stat_t
	if unix.Fstatat(dir, name, &stat, unix.AT_SYMLINK_NOFOLLOW) != nil || l.kept[inode{stat.Dev, stat.Ino}] {
		return
	}
	switch folder := stat.Mode&unix.S_IFMT == unix.S_IFDIR; {
	case stat.Uid == l.uid:
		if unix.Fchdir(dir) == nil { // by name: a path could lead elsewhere by now
			_ = folders.RemoveAll(name)
		}
	case folder && stat.Mode&unix.S_IWOTH != 0 && depth < leftDepth:
		fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err == nil {
			l.folder(fd, name, depth+1)
		}
	}
}
