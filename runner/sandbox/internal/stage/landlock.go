//go:build linux

package stage

import "syscall"

func landlock(*Spec) (string, syscall.Errno) { return "landlock", syscall.ENOSYS }
