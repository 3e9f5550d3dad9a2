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
		if !spec.SetUser { // otherwise they end with the change of the user
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

const limitProcesses = 6 // RLIMIT_NPROC

// limit sets the resource limits of this process, and so of the engine.
func limit(spec *Spec) syscall.Errno {
	const data = 2
	for _, l := range []struct {
		resource int
		value    int64
		set      bool
	}{
		{syscall.RLIMIT_CORE, 0, spec.Confine},
		{data, spec.Data, spec.Data > 0},
		{limitProcesses, spec.Processes, spec.Processes > 0 && !spec.CountUser},
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

// countUser has the process that the calling thread starts next counted as one of the
// engine's user, and bounds the processes of that one. Bounded as the user of this process it
// might not start at all: the agent, and the first processes of all its sandboxes, are counted
// together. done makes the thread as it was, so that this process can make further threads,
// and keeps the engine from raising its limit.
func countUser(spec *Spec) (done func(pid int) syscall.Errno, errno syscall.Errno) {
	if !spec.CountUser || spec.Processes <= 0 {
		return func(int) syscall.Errno { return 0 }, 0
	}
	var was syscall.Rlimit
	if err := syscall.Getrlimit(limitProcesses, &was); err != nil {
		return nil, toErrno(err)
	}
	bound := min(uint64(spec.Processes), was.Max)
	if err := syscall.Setrlimit(limitProcesses, &syscall.Rlimit{Cur: bound, Max: was.Max}); err != nil {
		return nil, toErrno(err)
	}
	// The kernel counts for the real user. The effective one stays, and so do capabilities.
	if errno := setReal(spec.UID, spec.GID); errno != 0 {
		return nil, errno
	}
	return func(pid int) syscall.Errno {
		hard := syscall.Rlimit{Cur: bound, Max: bound}
		_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), limitProcesses, uintptr(unsafe.Pointer(&hard)), 0, 0, 0)
		if err := syscall.Setrlimit(limitProcesses, &was); errno == 0 {
			errno = toErrno(err)
		}
		if back := setReal(syscall.Geteuid(), syscall.Getegid()); errno == 0 {
			errno = back
		}
		return errno
	}, 0
}

// setReal sets the real user and group of the calling thread alone.
func setReal(uid, gid int) syscall.Errno {
	same := ^uintptr(0)
	if _, _, errno := syscall.RawSyscall(syscall.SYS_SETREGID, uintptr(gid), same, 0); errno != 0 {
		return errno
	}
	_, _, errno := syscall.RawSyscall(syscall.SYS_SETREUID, uintptr(uid), same, 0)
	return errno
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
