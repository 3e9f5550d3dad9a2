package sandbox

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// onThread calls f on its own thread, which ends with f and may take another user
// before. It is never the process's first one: that would not end, and the user that it
// has is the one of the process to whoever signals it.
func onThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			defer runtime.UnlockOSThread()
			onThread(f) // on another one, as this one is taken
			return
		}
		f() // and not unlocked
	}()
	<-done
}
