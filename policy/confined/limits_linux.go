package confined

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// confine starts the process in its own group, which is killed as a whole, and with
// whoever has started it.
func confine(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// bound limits this process. Memory is what it may write to: the addresses that Go reserves do
// not count.
func bound(memory, seconds int64) error {
	for resource, limit := range map[int]int64{
		unix.RLIMIT_DATA: memory, unix.RLIMIT_CPU: seconds, unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: 0, unix.RLIMIT_NOFILE: 64,
	} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: uint64(limit), Max: uint64(limit)}); err != nil {
			return err
		}
	}
	return nil
}
