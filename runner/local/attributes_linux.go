package local

import (
	"os"
	"syscall"
)

// attributes start an agent in its own session, as who. With a range it is in a user
// namespace whose map we write: there it is root, and can be the users of the range;
// outside it is who, and has no right to anything else.
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

// enter has a process start in the control group at dir. Leave is for after the start.
func enter(attr *syscall.SysProcAttr, dir string) (leave func(), err error) {
	if dir == "" {
		return func() {}, nil
	}
	group, err := os.Open(dir) //nolint:gosec // we made it
	if err != nil {
		return nil, err
	}
	attr.UseCgroupFD, attr.CgroupFD = true, int(group.Fd())
	return func() { _ = group.Close() }, nil
}
