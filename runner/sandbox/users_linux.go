package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// HoldUsers holds count users, and groups of the same numbers, for the engines of this
// process, until release is called or the process ends, however that happens. The error is
// an ErrUserHeld if another process of this PID namespace holds one of them, or if one is
// this process's own.
func HoldUsers(first, count int) (release func(), err error) {
	if own := os.Getuid(); first <= own && own < first+count {
		return nil, fmt.Errorf("user %d is the agent's own: %w", own, ErrUserHeld)
	}
	var held []net.Listener
	release = func() {
		for _, l := range held {
			_ = l.Close()
		}
	}
	for id := first; id < first+count; id++ {
		l, err := holdUser(id)
		if err != nil {
			release()
			return nil, err
		}
		if l != nil {
			held = append(held, l)
		}
	}
	return release, nil
}

// A process that has just taken a name, and cannot be asked yet, can be after one of
// these.
const (
	holderTries = 10
	holderWait  = 20 * time.Millisecond
	// holderPatience is how long an agent may take to be done with those that asked before.
	holderPatience = 2 // seconds
)

// holdUser listens on a socket whose name stands for the user. The kernel gives a name to one
// process only, and takes it back at its end. There is no file: a service may have a /tmp of
// its own (PrivateTmp=), in which other agents would not find it. It is nil if a process that
// could not be that user has taken the name, or one that answers nobody: code in another
// user's run cannot keep an agent from starting.
func holdUser(id int) (net.Listener, error) {
	// Processes of other PID namespaces, as in other containers, are out of an engine's reach.
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return nil, fmt.Errorf("hold user %d: %w", id, err)
	}
	name := "@holdfast/" + namespace + "/slot-user/" + strconv.Itoa(id)
	for try := 0; ; try++ {
		l, err := listenAs(id, name)
		if err == nil {
			go answer(l)
			return l, nil
		}
		if !errors.Is(err, unix.EADDRINUSE) {
			return nil, fmt.Errorf("hold user %d: %w", id, err)
		}
		switch holder, err := holderOf(name); {
		case err == nil && int(holder.Gid) == id:
			return nil, fmt.Errorf("user %d: the process with id %d has it: %w", id, holder.Pid, ErrUserHeld)
		case err == nil:
			return nil, nil
		case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ECONNREFUSED) && try == holderTries:
			return nil, nil // no agent: one listens at once, and takes all that come
		case !errors.Is(err, unix.ECONNREFUSED):
			return nil, fmt.Errorf("user %d: who has it gives no answer: %w: %w", id, ErrUserHeld, err)
		}
		time.Sleep(holderWait)
	}
}

// listenAs listens as somebody of the group id: whoever connects is shown that, and only who
// may be any group can be that one, besides the user's own engine.
func listenAs(id int, name string) (l net.Listener, err error) {
	onThread(func() {
		same := ^uintptr(0)
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, same, uintptr(id), same); errno != 0 {
			err = fmt.Errorf("take its group: %w", errno)
			return
		}
		l, err = net.Listen("unix", name) //nolint:noctx // it does not wait
	})
	return l, err
}

// answer accepts whoever asks for the holder, so that the next one can ask, too.
func answer(l net.Listener) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(holderWait) // no descriptor is left
			continue
		}
		_ = conn.Close()
	}
}

// holderOf returns who listens on a name. It waits for a while where others have asked
// before, and fails with ECONNREFUSED or EAGAIN if nobody answers.
func holderOf(name string) (*unix.Ucred, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("ask who has it: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: holderPatience}); err != nil {
		return nil, fmt.Errorf("ask who has it: %w", err)
	}
	for {
		err := unix.Connect(fd, &unix.SockaddrUnix{Name: name})
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("ask who has it: %w", err)
		}
		return unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	}
}
