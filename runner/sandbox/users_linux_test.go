package sandbox_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/testenv/freeusers"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// TestHoldUsers: each user is one agent's, until that releases it or dies. What processes of
// other users, and of other containers, have taken keeps no agent from starting.
func TestHoldUsers(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Log("not root: engines have no users of their own")
		return
	}
	first := freeusers.Of(t, 3)
	last, stranger := first+1, first+2
	holdAll := func() (func(), error) { return sandbox.HoldUsers(first, 2) }

	agent := holder(t, nil, "hold users", last)
	_, err := holdAll()
	if !errors.Is(err, sandbox.ErrUserHeld) || !strings.Contains(err.Error(), fmt.Sprintf("user %d: the process with id %d has it", last, agent.Process.Pid)) {
		t.Errorf("the last user is another agent's: %v", err)
	}
	free, err := sandbox.HoldUsers(first, 1)
	if err != nil {
		t.Errorf("a user that nobody has: %v", err)
	} else {
		free()
	}
	_ = agent.Process.Kill()
	_ = agent.Wait()
	if free, err = holdAll(); err != nil {
		t.Fatalf("after the death of the other agent: %v", err)
	}
	for range 2 {
		if _, err := sandbox.HoldUsers(last, 1); !errors.Is(err, sandbox.ErrUserHeld) {
			t.Errorf("of one process twice: %v", err)
		}
	}
	if os.Getenv("SANDBOX_TEST_AS") == "" {
		holder(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}, "hold users", last)
	}
	free()
	if free, err = holdAll(); err != nil {
		t.Fatalf("after the release: %v", err)
	}
	free()

	// An engine of another slot takes the name.
	as := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(stranger), Gid: uint32(stranger)}}
	for _, verb := range []string{"take name", "take unheard", "take deaf"} {
		engine := holder(t, as, verb, last)
		if free, err = holdAll(); err != nil {
			t.Fatalf("another user: %s: %v", verb, err)
		}
		free()
		_ = engine.Process.Kill()
		_ = engine.Wait()
	}
	if _, err := sandbox.HoldUsers(os.Getuid(), 1); !errors.Is(err, sandbox.ErrUserHeld) {
		t.Errorf("the agent's own user: %v", err)
	}
}

// holder starts a process that holds a user, or takes its name, until the end of the test.
func holder(t *testing.T, as *syscall.SysProcAttr, verb string, id int) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t), strconv.Itoa(id))
	cmd.Env, cmd.Dir, cmd.SysProcAttr, cmd.Stderr = []string{engineVerb + "=" + verb}, "/", as, os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%s of %d: %q, %v", verb, id, line, err)
	}
	return cmd
}

// holdUsers is an agent that has a user.
func holdUsers(args []string) int {
	if _, err := sandbox.HoldUsers(number(args[0]), 1); err != nil {
		say(err)
		return 1
	}
	say("ready")
	return forever()
}

// takeName is an engine that takes the name by which an agent would hold a user.
func takeName(args []string) int {
	return takeAnd(args[0], func(_ int, name string) error {
		_, err := net.Listen("unix", name) //nolint:noctx // it does not wait
		return err
	})
}

// takeUnheard takes the name, and whoever asks for it is refused.
func takeUnheard(args []string) int {
	return takeAnd(args[0], func(fd int, name string) error {
		return unix.Bind(fd, &unix.SockaddrUnix{Name: name})
	})
}

// takeDeaf takes the name, has asked itself, and answers nobody: there is no room for others.
func takeDeaf(args []string) int {
	return takeAnd(args[0], func(fd int, name string) error {
		err := errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: name}), unix.Listen(fd, 0))
		for err == nil {
			var asks int
			if asks, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0); err == nil {
				err = unix.Connect(asks, &unix.SockaddrUnix{Name: name})
			}
		}
		if errors.Is(err, unix.EAGAIN) {
			return nil
		}
		return err
	})
}

func takeAnd(id string, take func(fd int, name string) error) int {
	namespace, err := os.Readlink("/proc/self/ns/pid")
	fd, socketErr := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err = errors.Join(err, socketErr); err == nil {
		err = take(fd, "@holdfast/"+namespace+"/slot-user/"+id)
	}
	if err != nil {
		say(err)
		return 1
	}
	say("ready")
	return forever()
}

// TestProbeHolds: nothing is started as a user that another agent has, and none that has no
// user of its own asks.
func TestProbeHolds(t *testing.T) {
	t.Parallel()
	for _, mode := range modes(t) {
		asked := 0
		_, err := sandbox.Probe(t.Context(), sandbox.Options{Mode: mode, Slot: newSlot(t), Program: program(t), Hold: func(of sandbox.Mode) error {
			if asked++; of != mode {
				t.Errorf("asked for %s, want %s", of, mode)
			}
			return fmt.Errorf("somebody else: %w", sandbox.ErrUserHeld)
		}})
		switch {
		case mode.OwnUser() && (asked != 1 || !errors.Is(err, sandbox.ErrUserHeld) || errors.Is(err, sandbox.ErrUnavailable)):
			t.Errorf("%s: asked %d times: %v", mode, asked, err)
		case !mode.OwnUser() && (asked != 0 || err != nil):
			t.Errorf("%s: asked %d times: %v", mode, asked, err)
		}
	}
}
