package postgres

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// giveUpUnheard ends a connection on which nothing that was sent has been acknowledged for a while: the
// machine at the other end, or the way to it, is gone. Without it the system sends again for a quarter
// of an hour, and keep-alives, which are for connections on which nothing is sent, do not help.
func giveUpUnheard(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unheard.Milliseconds())) //nolint:gosec // a file's number is small
	})
	return errors.Join(err, failed)
}
