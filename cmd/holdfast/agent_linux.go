package main

import (
	"fmt"
	"syscall"
)

// hideMemory keeps other processes of the same user, such as what a plan runs,
// from looking into this one: its memory holds credentials. Programs that it
// starts are not affected.
func hideMemory() error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0); errno != 0 {
		return fmt.Errorf("hide memory: %w", errno)
	}
	return nil
}
