//go:build linux

package stage

import (
	"syscall"
	"unsafe"
)

const (
	prSetChildSubreaper = 36
	prSetNoNewPrivs     = 38
	keyctlJoinSession   = 1
	prCapbsetDrop       = 24
	prCapAmbient        = 47
	prCapAmbientClear   = 4

	sysCloseRange     = 436
	closeRangeCloexec = 4

	capabilityVersion3 = 0x20080522
)

// confine takes from the calling thread what the engine must not have. A
// process that the thread starts inherits it.
func confine(spec *Spec) (string, syscall.Errno) {
	if spec.Confine {
		if errno := prctl(prSetNoNewPrivs, 1, 0); errno != 0 {
			return "forbid new privileges", errno
		}
	}
	if spec.Confine {
		// The keys of whoever started the agent stay with it.
		_, _, _ = syscall.RawSyscall(syscall.SYS_KEYCTL, keyctlJoinSession, 0, 0)
		if errno := refuseLasting(); errno != 0 {
			return "filter system calls", errno
		}
	}
	if errno := limit(spec); errno != 0 {
		return "limit resources", errno
	}
	if spec.Landlock {
		if step, errno := landlock(spec); errno != 0 {
			return step, errno
		}
	}
	if spec.Privileges {
		for c := uintptr(0); c < 64; c++ {
			errno := prctl(prCapbsetDrop, c, 0)
			if errno == syscall.EINVAL || errno == syscall.EPERM {
				break // there are no more, or it is not root: no_new_privs keeps it from them
			}
			if errno != 0 {
				return "drop capabilities", errno
			}
		}
		if errno := prctl(prCapAmbient, prCapAmbientClear, 0); errno != 0 {
			return "drop ambient capabilities", errno
		}
		if !spec.SetUser { // else they end with the change of the user
			if errno := dropCapabilities(); errno != 0 {
				return "drop capabilities", errno
			}
		}
	}
	return "", 0
}

func dropCapabilities() syscall.Errno {
	head := struct {
		version uint32
		pid     int32
	}{version: capabilityVersion3}
	var none [6]uint32
	_, _, errno := syscall.RawSyscall(syscall.SYS_CAPSET,
		uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&none)), 0)
	return errno
}

// limit sets the resource limits of this process, and so of the engine.
func limit(spec *Spec) syscall.Errno {
	const nproc, data = 6, 2
	for _, l := range []struct {
		resource int
		value    int64
		set      bool
	}{
		{syscall.RLIMIT_CORE, 0, spec.Confine},
		{data, spec.Data, spec.Data > 0},
		{nproc, spec.Processes, spec.Processes > 0},
	} {
		if !l.set {
			continue
		}
		value := syscall.Rlimit{Cur: uint64(l.value), Max: uint64(l.value)}
		if err := syscall.Setrlimit(l.resource, &value); err != nil {
			return toErrno(err)
		}
	}
	return 0
}

// mapUser maps the user and the group of the starter to themselves, in the
// user namespace that this process is in. A starter that hides its memory
// cannot do it from outside.
func mapUser(uid, gid int) (string, syscall.Errno) {
	// Nor can this process while it hides its own. There is nobody here yet.
	_ = prctl(syscall.PR_SET_DUMPABLE, 1, 0)
	defer func() { _ = prctl(syscall.PR_SET_DUMPABLE, 0, 0) }()
	for _, f := range []struct{ name, content string }{
		{"/proc/self/setgroups", "deny"},
		{"/proc/self/uid_map", itoa(uid) + " " + itoa(uid) + " 1"},
		{"/proc/self/gid_map", itoa(gid) + " " + itoa(gid) + " 1"},
	} {
		if errno := writeFile(f.name, syscall.O_WRONLY, f.content); errno != 0 {
			return "write " + f.name, errno
		}
	}
	return "", 0
}

func writeFile(name string, flags int, content string) syscall.Errno {
	fd, err := syscall.Open(name, flags|syscall.O_CLOEXEC, 0o644)
	if err == nil {
		_, err = syscall.Write(fd, []byte(content))
		_ = syscall.Close(fd)
	}
	return toErrno(err)
}

func itoa(n int) string {
	if n == 0 {
		return "0"
	}
	var b [20]byte
	i := len(b)
	for ; n > 0; n /= 10 {
		i--
		b[i] = byte('0' + n%10)
	}
	return string(b[i:])
}
