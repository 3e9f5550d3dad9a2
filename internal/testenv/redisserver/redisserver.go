// Package redisserver runs a real redis-server for a test.
package redisserver

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Server is a redis-server on a port of its own that keeps nothing on disk. It
// ends with its test. Its methods are for the test's goroutine only.
type Server struct {
	t        testing.TB
	port     int
	password string
	socket   string
	cmd      *exec.Cmd
}

// Start starts a server with a random password for the default user and waits
// until it answers. Without redis-server a test is skipped on a laptop and fails
// in CI.
func Start(t testing.TB) *Server {
	t.Helper()
	return start(t, rand.Text())
}

// StartOpen is Start without a password: whoever connects is obeyed.
func StartOpen(t testing.TB) *Server {
	t.Helper()
	return start(t, "")
}

func start(t testing.TB, password string) *Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("find redis-server: %v", err)
		}
		t.Skip("redis-server is not installed")
	}
	s := &Server{t: t, password: password}
	t.Cleanup(s.Stop)
	// Between finding a free port and using it another process may take it.
	for range 5 {
		s.port = freePort(t)
		if s.run() {
			return s
		}
	}
	t.Fatal("start redis-server: no port to be had")
	return nil
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// Addr is host:port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// URL is the address as a redis:// URL, without the password.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// Password is that of the default user, empty for one that StartOpen started.
func (s *Server) Password() string { return s.password }

// Socket is the server's Unix socket, which asks for the same password. Restart
// makes another one.
func (s *Server) Socket() string { return s.socket }

// Do sends commands, one a line, as the default user, and fails the test if one
// is refused.
func (s *Server) Do(commands ...string) {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if s.password != "" {
		commands = append([]string{"AUTH " + s.password}, commands...)
	}
	answers := bufio.NewScanner(conn)
	for _, command := range commands {
		fmt.Fprintf(conn, "%s\r\n", command)
		if !answers.Scan() || !strings.HasPrefix(answers.Text(), "+OK") {
			s.t.Fatalf("redis answers %q to a command", answers.Text())
		}
	}
}

// Stop kills the server, with all that it holds. A second Stop does nothing.
func (s *Server) Stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd = nil
}

// Restart stops the server if it runs and starts an empty one on the same port.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	if !s.run() {
		s.t.Fatalf("restart redis-server on port %d", s.port)
	}
}

// Pause makes the server hang: it accepts connections and does not answer.
func (s *Server) Pause() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		s.t.Fatal(err)
	}
}

// Resume ends a Pause.
func (s *Server) Resume() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		s.t.Fatal(err)
	}
}

// run starts the process and reports whether it answered.
func (s *Server) run() bool {
	s.t.Helper()
	dir := s.t.TempDir()
	s.socket = filepath.Join(dir, "redis.sock")
	if len(s.socket) > 100 { // a long TMPDIR
		s.socket = ""
	}
	args := []string{
		"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", dir, "--unixsocket", s.socket,
		"--save", "", "--appendonly", "no", "--daemonize", "no",
	}
	if s.password != "" {
		args = append(args, "--requirepass", s.password)
	}
	cmd := exec.Command("redis-server", args...)
	if err := cmd.Start(); err != nil {
		s.t.Fatalf("start redis-server: %v", err)
	}
	s.cmd = cmd
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if s.answers() {
			return true
		}
		// A process that is gone answers signals no more once it was reaped;
		// until then it is a zombie, which only its state tells.
		if state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid)); err == nil &&
			strings.Contains(string(state), ") Z ") {
			break
		}
	}
	s.Stop()
	return false
}

// answers reports whether our own process answers on the port.
func (s *Server) answers() bool {
	conn, err := net.DialTimeout("tcp", s.Addr(), time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if s.password != "" {
		fmt.Fprintf(conn, "AUTH %s\r\n", s.password)
	}
	fmt.Fprintf(conn, "INFO server\r\nQUIT\r\n")
	for scanner := bufio.NewScanner(conn); scanner.Scan(); {
		if scanner.Text() == fmt.Sprintf("process_id:%d", s.cmd.Process.Pid) {
			return true
		}
	}
	return false
}
