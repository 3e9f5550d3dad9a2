package local

import "syscall"

// attributes start an agent in a session of its own, as who. With a range it is
// in a user namespace whose map we write: there it is root, and can be the users
// of the range; outside it is who, and has no right to anything else.
func attributes(who *account, users Range) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if who == nil {
		return attr
	}
	if users.Count == 0 {
		attr.Credential = &syscall.Credential{Uid: who.uid, Gid: who.gid}
		return attr
	}
	attr.Cloneflags = syscall.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{
		{ContainerID: 0, HostID: int(who.uid), Size: 1},
		{ContainerID: users.First, HostID: users.First, Size: users.Count},
	}
	attr.GidMappings = []syscall.SysProcIDMap{
		{ContainerID: 0, HostID: int(who.gid), Size: 1},
		{ContainerID: users.First, HostID: users.First, Size: users.Count},
	}
	attr.GidMappingsEnableSetgroups = true
	attr.Credential = &syscall.Credential{}
	return attr
}
