package sandbox

import "syscall"

// AgentAttributes are those with which root starts an agent that is not root:
// a user namespace in which the agent is root of its own, and can start
// engines as the users of its slots, ModeRange. Outside, it is the user agent,
// and the slots' users, first and count-1 that follow it, are themselves. The
// users of two agents must not overlap.
func AgentAttributes(agent, first Slot, count int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{
			{ContainerID: 0, HostID: agent.UID, Size: 1},
			{ContainerID: first.UID, HostID: first.UID, Size: count},
		},
		GidMappings: []syscall.SysProcIDMap{
			{ContainerID: 0, HostID: agent.GID, Size: 1},
			{ContainerID: first.GID, HostID: first.GID, Size: count},
		},
		GidMappingsEnableSetgroups: true,
		Credential:                 &syscall.Credential{Uid: 0, Gid: 0},
	}
}
