//go:build unix && !linux

package confined

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// confine starts the process in its own group, which is killed as a whole.
func confine(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// bound limits this process. What it may use of memory cannot be bounded here: the time that
// it has bounds it.
func bound(_, seconds int64) error {
	limit := unix.Rlimit{Cur: uint64(seconds), Max: uint64(seconds)}
	return unix.Setrlimit(unix.RLIMIT_CPU, &limit)
}
