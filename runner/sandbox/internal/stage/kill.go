//go:build linux

package stage

import "syscall"

// killDomain kills what the engine left, from the thread that started it.
func killDomain(spec *Spec) {
	switch {
	case spec.Landlock:
		// The thread is in the engine's domain: signals reach nothing else.
		_ = syscall.Kill(-1, syscall.SIGKILL)
	case spec.SetUser:
		KillUser(spec.UID)
	default:
		killChildren()
	}
}

// KillUser kills every process of a user, except this one. The calling thread
// takes that user and can be used for nothing else afterwards.
func KillUser(uid int) {
	// With an own real and saved user the thread is not a target itself.
	const nobodyElse = 1<<32 - 16
	for _, own := range []int{nobodyElse, uid} {
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETRESUID, uintptr(own), uintptr(uid), uintptr(own))
		if real, effective := userOfThread(); uid > 0 && effective == uid && real == own {
			_ = syscall.Kill(-1, syscall.SIGKILL)
			return
		}
	}
}

func userOfThread() (real, effective int) {
	r, _, _ := syscall.RawSyscall(syscall.SYS_GETUID, 0, 0, 0)
	e, _, _ := syscall.RawSyscall(syscall.SYS_GETEUID, 0, 0, 0)
	return int(r), int(e)
}

// killChildren kills the children of this process. Their children become its
// own. What starts processes faster than they are found can escape for a
// while: only a namespace, a domain or a user of its own holds everything.
func killChildren() {
	buf := make([]byte, 64<<10)
	fd, err := syscall.Open("/proc/self/task/"+itoa(syscall.Getpid())+"/children", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	n, _ := syscall.Read(fd, buf)
	_ = syscall.Close(fd)
	pid := 0
	for _, c := range buf[:max(n, 0)] {
		if c >= '0' && c <= '9' {
			pid = pid*10 + int(c-'0')
			continue
		}
		if pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		pid = 0
	}
}
