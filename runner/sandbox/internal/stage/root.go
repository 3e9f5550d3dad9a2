//go:build linux

package stage

import (
	"errors"
	"syscall"
	"unsafe"
)

const (
	sysOpenTree     = 428
	sysMoveMount    = 429
	sysMountSetattr = 442

	openTreeClone  = 1
	atEmptyPath    = 0x1000
	atRecursive    = 0x8000
	atFDCWD        = -0x64
	moveMountEmpty = 4 // MOVE_MOUNT_F_EMPTY_PATH

	attrReadOnly = 1
	attrNoSuid   = 2
	attrNoDev    = 4
	attrNoExec   = 8
)

// newRoot makes the file system that the engine sees: an empty one with the
// mounts, links and files of spec, a /tmp of its own and a /proc that shows
// this namespace. What is to be seen is opened before the old root is gone,
// and put into the new one after, so that no link of it leads out.
func newRoot(spec *Spec) (string, syscall.Errno) {
	if errno := mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); errno != 0 {
		return "make mounts private", errno
	}
	trees, step, errno := openTrees(spec.Mount)
	if errno != 0 {
		return step, errno
	}
	// /proc is a folder that exists everywhere; the one of the host is no
	// longer needed, and stays below.
	if errno := mount("tmpfs", "/proc", "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=0755,size=16m"); errno != 0 {
		return "mount a new root", errno
	}
	if err := syscall.Chdir("/proc"); err != nil {
		return "enter the new root", toErrno(err)
	}
	mask := syscall.Umask(0)
	defer syscall.Umask(mask)
	for _, dir := range []string{"proc", "tmp"} {
		if err := syscall.Mkdir(dir, 0o755); err != nil {
			return "make /" + dir, toErrno(err)
		}
	}
	const flags = syscall.MS_NOSUID | syscall.MS_NODEV
	if errno := mount("proc", "proc", "proc", flags|syscall.MS_NOEXEC, ""); errno != 0 {
		return "mount /proc", errno
	}
	if errno := mount("tmpfs", "tmp", "tmpfs", flags, "mode=1777,size="+itoa(int(spec.TmpSize))); errno != 0 {
		return "mount /tmp", errno
	}
	if err := syscall.PivotRoot(".", "."); err != nil {
		return "enter the new root", toErrno(err)
	}
	if err := syscall.Unmount(".", syscall.MNT_DETACH); err != nil {
		return "leave the old root", toErrno(err)
	}
	if err := syscall.Chdir("/"); err != nil {
		return "enter the new root", toErrno(err)
	}
	if step, errno := furnish(spec, trees); errno != 0 {
		return step, errno
	}
	if spec.UserMap {
		// No further user namespaces: less of the kernel can be reached.
		_ = writeFile("/proc/sys/user/max_user_namespaces", syscall.O_WRONLY, "0")
	}
	if errno := mountSetattr(atFDCWD, "/", 0, attrReadOnly|attrNoSuid|attrNoDev); errno != 0 {
		return "make the root read-only", errno
	}
	return "", 0
}

type tree struct {
	fd  int
	dir bool
}

// openTrees opens the source of each mount as a separate mount; fd is -1 where an
// optional one is missing.
func openTrees(mounts []Mount) ([]tree, string, syscall.Errno) {
	trees := make([]tree, len(mounts))
	for i, m := range mounts {
		path, err := syscall.BytePtrFromString(m.Source)
		if err != nil {
			return nil, "open " + m.Source, syscall.EINVAL
		}
		fd, _, errno := syscall.RawSyscall(sysOpenTree, cwd(), uintptr(unsafe.Pointer(path)),
			openTreeClone|syscall.O_CLOEXEC|atRecursive)
		if errno == syscall.ENOENT && m.Optional {
			trees[i].fd = -1
			continue
		}
		if errno != 0 {
			return nil, "open " + m.Source, errno
		}
		set := uintptr(attrReadOnly | attrNoSuid | attrNoDev)
		switch m.Kind {
		case ReadWrite:
			set = attrNoSuid | attrNoDev
		case Device:
			set = attrReadOnly | attrNoSuid | attrNoExec
		}
		if errno := mountSetattr(int(fd), "", atEmptyPath|atRecursive, set); errno != 0 {
			return nil, "restrict " + m.Source, errno
		}
		var stat syscall.Stat_t
		if err := syscall.Fstat(int(fd), &stat); err != nil {
			return nil, "stat " + m.Source, toErrno(err)
		}
		trees[i] = tree{fd: int(fd), dir: stat.Mode&syscall.S_IFMT == syscall.S_IFDIR}
	}
	return trees, "", 0
}

// furnish puts links, files and mounts into the new root.
func furnish(spec *Spec, trees []tree) (string, syscall.Errno) {
	for _, l := range spec.Link {
		if errno := parents(l.Path); errno != 0 {
			return "make a folder for " + l.Path, errno
		}
		if err := syscall.Symlink(l.Target, l.Path); err != nil && err != syscall.EEXIST && err != syscall.EROFS {
			return "link " + l.Path, toErrno(err)
		}
	}
	for i, m := range spec.Mount {
		if trees[i].fd < 0 {
			continue
		}
		if errno := place(m.Target, trees[i].dir); errno != 0 {
			return "make " + m.Target, errno
		}
		empty, target := new(byte), bytePtr(m.Target)
		_, _, errno := syscall.RawSyscall6(sysMoveMount, uintptr(trees[i].fd), uintptr(unsafe.Pointer(empty)),
			cwd(), uintptr(unsafe.Pointer(target)), moveMountEmpty, 0)
		if errno != 0 {
			return "mount " + m.Target, errno
		}
		_ = syscall.Close(trees[i].fd)
	}
	for _, f := range spec.File {
		var stat syscall.Stat_t
		if syscall.Lstat(f.Path, &stat) == nil {
			continue // a mount brought it
		}
		if errno := parents(f.Path); errno != 0 {
			return "make a folder for " + f.Path, errno
		}
		if errno := writeFile(f.Path, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL, f.Content); errno != 0 {
			return "write " + f.Path, errno
		}
	}
	return "", 0
}

// place makes the folder or the file that a mount covers, unless it exists.
func place(path string, dir bool) syscall.Errno {
	var stat syscall.Stat_t
	if syscall.Stat(path, &stat) == nil {
		return 0
	}
	if errno := parents(path); errno != 0 {
		return errno
	}
	if dir {
		return toErrno(syscall.Mkdir(path, 0o755))
	}
	return writeFile(path, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL, "")
}

// parents makes the folders above path.
func parents(path string) syscall.Errno {
	for i := 1; i < len(path); i++ {
		if path[i] != '/' {
			continue
		}
		err := syscall.Mkdir(path[:i], 0o755)
		if err != nil && err != syscall.EEXIST && err != syscall.EROFS {
			return toErrno(err)
		}
	}
	return 0
}

func mount(source, target, kind string, flags uintptr, data string) syscall.Errno {
	return toErrno(syscall.Mount(source, target, kind, flags, data))
}

func mountSetattr(fd int, path string, flags, set uintptr) syscall.Errno {
	attr := struct{ set, clear, propagation, userns uint64 }{set: uint64(set)}
	_, _, errno := syscall.RawSyscall6(sysMountSetattr, uintptr(fd), uintptr(unsafe.Pointer(bytePtr(path))), flags,
		uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	return errno
}

func bytePtr(s string) *byte {
	p, err := syscall.BytePtrFromString(s)
	if err != nil {
		return new(byte)
	}
	return p
}

func cwd() uintptr {
	fd := atFDCWD
	return uintptr(fd)
}

func toErrno(err error) syscall.Errno {
	var errno syscall.Errno
	if err != nil && !errors.As(err, &errno) {
		return syscall.EINVAL
	}
	return errno
}
