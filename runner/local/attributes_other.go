//go:build unix && !linux

package local

import "syscall"

// attributes start an agent in its own session, as who. This system has no user
// namespaces.
func attributes(who *account, _ Range) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if who != nil {
		attr.Credential = &syscall.Credential{Uid: who.uid, Gid: who.gid}
	}
	return attr
}

// enter does nothing: this system has no control groups.
func enter(*syscall.SysProcAttr, string) (leave func(), err error) { return func() {}, nil }
