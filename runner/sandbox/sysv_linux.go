package sandbox

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// removeShared removes the shared memory, queues and semaphores of System V that the
// user of a slot has left: they need no process. Nothing of the user is alive. In
// modes with namespaces they go with the sandbox's.
func removeShared(uid int) {
	memory, queues, semaphores := createdBy("shm", uid), createdBy("msg", uid), createdBy("sem", uid)
	if len(memory)+len(queues)+len(semaphores) == 0 {
		return
	}
	onThread(func() {
		id := uintptr(uid)
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, id, id, id); errno != 0 {
			return
		}
		for _, id := range memory {
			_, _, _ = unix.RawSyscall(unix.SYS_SHMCTL, id, unix.IPC_RMID, 0)
		}
		for _, id := range queues {
			_, _, _ = unix.RawSyscall(unix.SYS_MSGCTL, id, unix.IPC_RMID, 0)
		}
		for _, id := range semaphores {
			_, _, _ = unix.RawSyscall(unix.SYS_SEMCTL, id, 0, unix.IPC_RMID)
		}
	})
}

// createdBy returns the numbers of what a user has created of one kind, which is the
// name of a file in /proc/sysvipc. Its owner can be another one by now.
func createdBy(kind string, uid int) (ids []uintptr) {
	list, err := os.ReadFile("/proc/sysvipc/" + kind)
	if err != nil {
		return nil // the kernel has none
	}
	head, rest, _ := strings.Cut(string(list), "\n")
	creator := slices.Index(strings.Fields(head), "cuid")
	for line := range strings.Lines(rest) {
		fields := strings.Fields(line)
		if creator < 0 || len(fields) <= max(creator, 1) || fields[creator] != strconv.Itoa(uid) {
			continue
		}
		if id, err := strconv.ParseUint(fields[1], 10, 31); err == nil {
			ids = append(ids, uintptr(id))
		}
	}
	return ids
}
