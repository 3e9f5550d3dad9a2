// Package postgresserver runs a real PostgreSQL for a test.
package postgresserver

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testenv/freeport"
)

// patience is how long a step may take on a busy machine.
const patience = 5 * time.Minute

// Server is a PostgreSQL on its own port. What is committed survives Kill. It ends with
// its test. Its methods are for the test's goroutine only.
type Server struct {
	t        testing.TB
	programs string // the folder of postgres and initdb
	dir      string
	owner    *syscall.Credential // nil: who runs the test
	password string              // empty: none is asked for
	port     int
	settings []string  // besides those of all servers
	primary  *Server   // of a standby
	cmd      *exec.Cmd // nil: it does not run
	log      *os.File
}

// Start makes an empty database, starts the server and waits until it answers. PostgreSQL
// refuses to run as root: nobody runs it then. Without PostgreSQL a test is skipped
// on a laptop and fails in CI.
func Start(t testing.TB) *Server {
	t.Helper()
	programs := installed()
	if programs == "" && os.Getenv("CI") == "true" {
		t.Fatal("PostgreSQL is not installed")
	} else if programs == "" {
		t.Skip("PostgreSQL is not installed")
	}
	s := &Server{t: t, programs: programs}
	t.Cleanup(s.end)
	s.start("--auth=trust")
	return s
}

// start makes the folder, with what initdb makes of the arguments, and runs the server.
func (s *Server) start(args ...string) {
	t := s.t
	t.Helper()
	s.makeFolder()
	if err := s.fill(args); err != nil {
		t.Fatal(err)
	}
	// Between finding a free port and using it another process may take it.
	for range 5 {
		s.port = freeport.Of(t)
		if s.run() {
			return
		}
	}
	t.Fatalf("start postgres:\n%s", s.logged())
}

// installed is the folder of PostgreSQL's programs: on PATH, or where Debian has them.
// Empty: it is not installed.
func installed() string {
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path)
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(found[len(found)-1])
}

// makeFolder makes a folder that the server's user may write to.
func (s *Server) makeFolder() {
	s.t.Helper()
	dir, err := os.MkdirTemp("", "holdfast-postgres")
	s.dir = dir
	if err == nil && os.Getuid() == 0 {
		err = s.beNobody()
	}
	if err == nil {
		s.log, err = os.Create(filepath.Join(dir, "log"))
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) beNobody() error {
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(nobody.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(nobody.Gid)
	if err != nil {
		return err
	}
	s.owner = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)} //nolint:gosec // ids are small
	return os.Chown(s.dir, uid, gid)
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// command is one of PostgreSQL's programs, as the server's user.
func (s *Server) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.programs, program), args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH"), "HOME=" + s.dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.owner}
	return cmd
}

// URL is how clients connect, as a superuser without a password.
func (s *Server) URL() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable&connect_timeout=5", s.port)
}

// Sessions is how many clients are connected.
func (s *Server) Sessions() int {
	n := 0
	for _, pid := range s.children() {
		title, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // postgres: USER DATABASE HOST(PORT) ...
		if bytes.Contains(title, []byte(" 127.0.0.1(")) {
			n++
		}
	}
	return n
}

// Kill ends the server and all sessions as a machine does that loses power, except for
// what the system has yet to write. A second Kill does nothing.
func (s *Server) Kill() {
	s.t.Helper()
	if s.cmd == nil {
		return
	}
	pids := s.signal(syscall.SIGSTOP) // none is started meanwhile
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = s.cmd.Wait()
	s.cmd = nil
	for deadline := time.Now().Add(patience); len(pids) > 0; time.Sleep(5 * time.Millisecond) {
		if pids = living(pids); time.Now().After(deadline) {
			s.t.Fatalf("processes %v of PostgreSQL do not end", pids)
		}
	}
}

// Restart starts a server that was killed, on the same port and with what it had.
func (s *Server) Restart() {
	s.t.Helper()
	if s.cmd == nil && !s.run() {
		s.t.Fatalf("restart postgres on port %d:\n%s", s.port, s.logged())
	}
}

// Pause makes the server and all sessions hang: connections are accepted, and nothing
// is answered.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

// signal sends a signal to the server first, so that one that is stopped starts nothing
// more, then to all that it has started, and returns all of them.
func (s *Server) signal(sig syscall.Signal) []int {
	if s.cmd == nil {
		return nil
	}
	_ = s.cmd.Process.Signal(sig)
	if sig == syscall.SIGSTOP {
		s.untilStopped()
	}
	pids := append(s.children(), s.cmd.Process.Pid)
	for _, pid := range pids {
		_ = syscall.Kill(pid, sig)
	}
	return pids
}

// untilStopped waits until the server is stopped, or ends: a signal takes a moment.
func (s *Server) untilStopped() {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		switch state, _ := stat(s.cmd.Process.Pid); state {
		case "", "T", "Z", "X":
			return
		}
	}
}

// run starts the process and reports whether it answered.
func (s *Server) run() bool {
	s.t.Helper()
	cmd := s.command("postgres", "-D", s.data(), "-p", strconv.Itoa(s.port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off",
		"-c", "dynamic_shared_memory_type=mmap", "-c", "shared_buffers=8MB", "-c", "max_connections=50")
	cmd.Args = append(cmd.Args, s.settings...)
	cmd.Stdout, cmd.Stderr = s.log, s.log
	if err := startBound(cmd); err != nil {
		s.t.Fatalf("start postgres: %v", err)
	}
	s.cmd = cmd
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if state, _ := stat(cmd.Process.Pid); state == "Z" {
			break
		}
		if data, err := s.Query("SHOW data_directory"); err == nil && data == s.data() {
			return true
		}
	}
	s.Kill()
	return false
}

// Stop ends the server in order, as an administrator does: sessions are told so. Restart
// starts it again.
func (s *Server) Stop() {
	cmd := s.cmd
	if cmd == nil {
		return
	}
	s.Resume()
	_ = cmd.Process.Signal(syscall.SIGINT)
	force := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	force.Stop()
	s.cmd = nil
}

// end stops the server in order, which takes with it what it has of the system, and
// removes its folder.
func (s *Server) end() {
	s.Stop()
	if s.t.Failed() {
		s.t.Logf("PostgreSQL's log:\n%s", s.logged())
	}
	if err := s.clear(); err != nil {
		s.t.Errorf("clean up: %v", err)
	}
}

func (s *Server) clear() error {
	if s.log == nil {
		return nil
	}
	return errors.Join(s.log.Close(), os.RemoveAll(s.dir))
}

// startBound starts a program that ends with this process, however that ends: the system
// sees to it, as long as the thread lives that has started it.
func startBound(cmd *exec.Cmd) error {
	cmd.SysProcAttr.Pdeathsig = syscall.SIGQUIT
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		started <- cmd.Start()
		select {}
	}()
	return <-started
}

func (s *Server) logged() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return string(text)
}

// children are the processes that the server has started.
func (s *Server) children() []int {
	if s.cmd == nil {
		return nil
	}
	var pids []int
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if _, parent := stat(pid); parent == s.cmd.Process.Pid {
			pids = append(pids, pid)
		}
	}
	return pids
}

// living are those of the processes that have not ended.
func living(pids []int) []int {
	var left []int
	for _, pid := range pids {
		if state, _ := stat(pid); state != "" && state != "Z" && state != "X" {
			left = append(left, pid)
		}
	}
	return left
}

// stat is what the system says of a process; an empty state: it is gone.
func stat(pid int) (state string, parent int) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0
	}
	_, rest, _ := strings.Cut(string(data), ") ") // a name may have spaces
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return "", 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return fields[0], parent
}
