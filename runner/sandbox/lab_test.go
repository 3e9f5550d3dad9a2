//go:build linux

package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testenv/freeusers"
	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

var usedSlots atomic.Int64

// newSlot returns a user that no other test has: a sandbox ends all processes of its user.
// A process in namespaces of its own cannot ask which are free, and is given some in its
// environment.
func newSlot(t testing.TB) sandbox.Slot {
	t.Helper()
	if given := os.Getenv("SANDBOX_TEST_USERS"); given != "" {
		id := number(given) + int(usedSlots.Add(1)) - 1
		return sandbox.Slot{UID: id, GID: id}
	}
	id := freeusers.Of(t, 1)
	return sandbox.Slot{UID: id, GID: id}
}

// lab is a mode and a workspace in which an engine of the mode can run.
type lab struct {
	*sandbox.Starter
	slot   sandbox.Slot
	dir    string // as the agent sees it
	at     string // as the engine sees it
	lock   string // a file of dir that engines lock
	engine string // this program, where every user can start it
}

// newLab probes mode. It fails where the mode is missing.
func newLab(t *testing.T, mode sandbox.Mode) *lab {
	t.Helper()
	engine := program(t)
	s, err := sandbox.Probe(t.Context(), sandbox.Options{Mode: mode, Slot: newSlot(t), Program: engine})
	if err != nil {
		t.Fatal(err)
	}
	return labOf(t, s, engine)
}

// labOf is another workspace, of another slot, of the same mode.
func labOf(t *testing.T, s *sandbox.Starter, engine string) *lab {
	t.Helper()
	l := &lab{Starter: s, slot: newSlot(t), engine: engine, dir: filepath.Join(openDir(t), "workspace")}
	if err := os.Mkdir(l.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l.at = l.dir
	if s.Mode().OwnRoot() {
		l.at = "/workspace"
	}
	if err := os.WriteFile(filepath.Join(l.dir, "lock"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	l.lock = filepath.Join(l.at, "lock")
	if err := s.Give(t.Context(), l.dir, l.slot); err != nil {
		t.Fatal(err)
	}
	return l
}

// openDir is a folder that every user can enter.
func openDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "sandbox-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

var programs struct {
	sync.Mutex
	path string
}

// program is a copy of this program that every user can start.
func program(t testing.TB) string {
	t.Helper()
	programs.Lock()
	defer programs.Unlock()
	if path := os.Getenv("SANDBOX_TEST_PROGRAM"); path != "" {
		return path
	}
	if programs.path != "" {
		return programs.path
	}
	dir, err := os.MkdirTemp("/tmp", "sandbox-test-program-")
	if err != nil {
		t.Fatal(err)
	}
	removeAtEnd = append(removeAtEnd, dir)
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	path := filepath.Join(dir, "engine")
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(to.Chmod(0o755), to.Close(), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	programs.path = path
	return path
}

// command is a start of this program as an engine.
func (l *lab) command(verb string, args ...string) sandbox.Command {
	return sandbox.Command{
		Path: l.engine, Args: args, Env: map[string]string{engineVerb: verb}, Dir: l.at, Slot: l.slot,
		Mounts: []sandbox.Mount{{Source: l.dir, Target: "/workspace", Writable: true}},
		Grace:  time.Minute,
	}
}

// run runs this program as an engine, and returns what it said.
func (l *lab) run(t *testing.T, c sandbox.Command) (sandbox.Exit, string) {
	t.Helper()
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	exit, err := l.Run(t.Context(), c)
	if err != nil {
		t.Fatalf("%v; it said:\n%s", err, &out)
	}
	return exit, out.String()
}

// dead fails if an engine that locked the file of the lab is alive.
func (l *lab) dead(t *testing.T) {
	t.Helper()
	if !l.free(t) {
		t.Error("a process of the engine is alive")
	}
}

func (l *lab) free(t *testing.T) bool {
	t.Helper()
	file, err := os.Open(filepath.Join(l.dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// ready reads what an engine says when it is.
func ready(t *testing.T, r io.Reader) {
	t.Helper()
	b := make([]byte, 64)
	n, err := r.Read(b)
	if err != nil || strings.TrimSpace(string(b[:n])) != "ready" {
		t.Errorf("an engine said %q, %v", b[:n], err)
	}
}

// background runs c until the test ends, and returns when it is ready.
func (l *lab) background(t *testing.T, c sandbox.Command) {
	t.Helper()
	r, w := io.Pipe()
	c.Stdout, c.Stderr, c.Grace = w, w, 0
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		_, err := l.Run(ctx, c)
		w.CloseWithError(errors.Join(io.EOF, err))
	})
	t.Cleanup(func() { cancel(); group.Wait() })
	ready(t, r)
	group.Go(func() { _, _ = io.Copy(io.Discard, r) })
}

// TestAsOthers runs the tests of this package as other users, so that all of
// them run where root runs the tests.
func TestAsOthers(t *testing.T) {
	if os.Geteuid() != 0 || os.Getenv("SANDBOX_TEST_PROGRAM") != "" {
		t.Log("not root: what can run as this user does")
		return
	}
	const count = 1000
	users := freeusers.Of(t, 2+count)
	agents := map[string]int{"plain": users, "range": users + 1}
	for name, attr := range map[string]*syscall.SysProcAttr{
		"plain": {Credential: &syscall.Credential{Uid: uint32(users), Gid: uint32(users)}},
		"range": rangeAttributes(users+1, users+2, count),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			setuid := filepath.Join(openDir(t), "setuid")
			program := program(t)
			if out, err := exec.Command("cp", program, setuid).CombinedOutput(); err != nil {
				t.Fatal(err, string(out))
			}
			if err := os.Chmod(setuid, 0o755|os.ModeSetuid); err != nil {
				t.Fatal(err)
			}
			private := installed(t, agents[name])
			cmd := exec.CommandContext(t.Context(), program, "-test.v", "-test.run=^(TestStart|TestAttacks|TestProbe|TestGive|TestTake)", "-test.timeout=9m")
			cmd.Dir = "/"
			cmd.Env = append(os.Environ(), "SANDBOX_TEST_PROGRAM="+program, "SANDBOX_TEST_SETUID="+setuid, "SANDBOX_TEST_INSTALLED="+private, "SANDBOX_TEST_AS="+name, fmt.Sprint("SANDBOX_TEST_USERS=", users+2), "HOME=/", "TMPDIR=/tmp")
			cmd.SysProcAttr = attr
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, unpassed(out))
			}
			t.Logf("%d tests as %s", strings.Count(string(out), "--- PASS"), name)
		})
	}
}

// unpassed is what go test -v says of tests that failed. With that of those that
// passed, it is more than the log of a build shows.
func unpassed(out []byte) string {
	var said strings.Builder
	for line := range strings.Lines(string(out)) {
		switch fields := strings.Fields(line); {
		case len(fields) > 1 && fields[0] == "===" && fields[1] != "NAME":
		case len(fields) > 1 && fields[0] == "---" && fields[1] == "PASS:":
		default:
			said.WriteString(line)
		}
	}
	return said.String()
}

// modes are those that this process can try: all that its user allows.
func modes(t *testing.T) []sandbox.Mode {
	t.Helper()
	switch as := os.Getenv("SANDBOX_TEST_AS"); {
	case as == "range":
		return []sandbox.Mode{sandbox.ModeRange, sandbox.ModeUsers}
	case os.Geteuid() == 0:
		return []sandbox.Mode{sandbox.ModeSlots, sandbox.ModeUsers, sandbox.ModeNone}
	case as == "plain" && os.Getenv("CI") == "true":
		return []sandbox.Mode{sandbox.ModeUserNamespace, sandbox.ModeLandlock, sandbox.ModeNone}
	default:
		var list []sandbox.Mode
		for _, mode := range []sandbox.Mode{sandbox.ModeUserNamespace, sandbox.ModeLandlock, sandbox.ModeNone} {
			if _, err := sandbox.Probe(t.Context(), sandbox.Options{Mode: mode, Program: program(t)}); err != nil {
				t.Log(err)
				continue
			}
			list = append(list, mode)
		}
		return list
	}
}

// rangeAttributes are those of an agent that root starts in a user namespace:
// root of its own there, and outside the user agent, with count users for slots.
func rangeAttributes(agent, first, count int) *syscall.SysProcAttr {
	users := []syscall.SysProcIDMap{{ContainerID: 0, HostID: agent, Size: 1}, {ContainerID: first, HostID: first, Size: count}}
	return &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER, UidMappings: users, GidMappings: users,
		GidMappingsEnableSetgroups: true, Credential: &syscall.Credential{},
	}
}
