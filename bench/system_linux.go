package main

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// adoptOrphans makes this process the parent of what its descendants leave, such as an
// agent whose server has ended: their time counts as ours.
func adoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

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
