package flock

import (
	"errors"
	"os"
	"syscall"
)

// ErrHeld reports that another open file holds the lock.
var ErrHeld = errors.New("locked by another process")

// Exclusive takes the lock without waiting. It returns ErrHeld if there is
// another holder.
func Exclusive(f *os.File) error { return try(f, syscall.LOCK_EX) }

// Shared takes the lock together with other shared holders, without waiting.
// It returns ErrHeld if there is an exclusive holder.
func Shared(f *os.File) error { return try(f, syscall.LOCK_SH) }

// Release releases the lock, if f holds it, and closes f.
func Release(f *os.File) error {
	return errors.Join(ignoreInterrupt(func() error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }), f.Close())
}

func try(f *os.File, how int) error {
	err := ignoreInterrupt(func() error { return syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB) })
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrHeld
	}
	return err
}

func ignoreInterrupt(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
