package secrets

import "syscall"

// engineAttributes put the engine into its own process group, so that a signal to the
// agent does not reach it, and have the kernel kill it when the thread that started it
// ends: an engine without its agent is of no use.
func engineAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
