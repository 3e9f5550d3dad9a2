//go:build unix && !linux

package secrets

import "syscall"

// engineAttributes put the engine into its own process group, so that a signal to the
// agent does not reach it.
func engineAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
