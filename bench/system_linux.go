package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// adoptOrphans makes this process the parent of what its descendants leave, such as an
// agent whose server has ended: their time counts as ours.
func adoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// ownTime is the processor time that a process has used. Unlike /proc/PID/stat, which counts in
// hundredths of a second, its clock is exact.
func ownTime(pid int) (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED, of the whole process
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &t); err != nil { //nolint:gosec // that is how the kernel names it
		return 0, fmt.Errorf("read the clock of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// asAgentOf has a command run as an agent of the mode would: root, where the mode needs it,
// in a user namespace that root has made, or another user.
func asAgentOf(cmd *exec.Cmd, mode sandbox.Mode) {
	if os.Geteuid() != 0 {
		return // modes that need root say so
	}
	switch mode {
	case sandbox.ModeRange:
		users := []syscall.SysProcIDMap{
			{ContainerID: 0, HostID: startsAgent, Size: 1},
			{ContainerID: startsSlot, HostID: startsSlot, Size: 1},
		}
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings, cmd.SysProcAttr.GidMappings = users, users
		cmd.SysProcAttr.GidMappingsEnableSetgroups = true
		cmd.SysProcAttr.Credential = &syscall.Credential{}
	case sandbox.ModeUserNamespace, sandbox.ModeLandlock:
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: startsAgent, Gid: startsAgent}
	default: // root's own
	}
}
