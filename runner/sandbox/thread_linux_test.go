package sandbox

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestOnThread: the first thread of a process takes no other user. Each call ends a
// thread, so that it is soon the only one that waits for work.
func TestOnThread(t *testing.T) {
	t.Parallel()
	for range 1000 {
		onThread(func() {
			if unix.Gettid() == unix.Getpid() {
				t.Error("it is called on the first thread")
			}
		})
	}
}
