// Package redisserver runs a real redis-server for a test.
package redisserver

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testenv/freeport"
)

// Server is a redis-server on its own port that keeps nothing on disk. It ends with its
// test. Its methods are for the test's goroutine only.
type Server struct {
	t        testing.TB
	port     int
	password string
	socket   string
	cmd      *exec.Cmd
	// further are the arguments for what the server is besides.
	further func(dir string, port int) []string
}

// Start starts a server with a random password for the default user and waits
// until it answers. Without redis-server a test is skipped on a laptop and fails
// in CI.
func Start(t testing.TB) *Server {
	t.Helper()
	return start(t, rand.Text(), nil)
}

// StartOpen is Start without a password: whoever connects is obeyed.
func StartOpen(t testing.TB) *Server {
	t.Helper()
	return start(t, "", nil)
}

func start(t testing.TB, password string, further func(dir string, port int) []string) *Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("find redis-server: %v", err)
		}
		t.Skip("redis-server is not installed")
	}
	s := &Server{t: t, password: password, further: further}
	// Between finding a free port and using it another process may take it.
	for range 5 {
		s.port = freeport.Of(t)
		if s.run() {
			return s
		}
	}
	t.Fatal("start redis-server: no port to be had")
	return nil
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
	for _, command := range commands {
		if answer := s.Ask(command); answer != "+OK" {
			s.t.Fatalf("redis answers %q to a command", answer)
		}
	}
}

// Ask sends a command as the default user and returns the answer: a text, or the first
// line of any other. It is empty if there is none.
func (s *Server) Ask(command string) string {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		return ""
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	answers := bufio.NewReader(conn)
	if s.password != "" {
		fmt.Fprintf(conn, "AUTH %s\r\n", s.password)
		_, _ = answers.ReadString('\n')
	}
	fmt.Fprintf(conn, "%s\r\n", command)
	line, _ := answers.ReadString('\n')
	line = strings.TrimSpace(line)
	size, err := strconv.Atoi(strings.TrimPrefix(line, "$"))
	if !strings.HasPrefix(line, "$") || err != nil || size < 0 {
		return line
	}
	text := make([]byte, size)
	_, _ = io.ReadFull(answers, text)
	return string(text)
}

// Await waits until the answer to a command contains words.
func (s *Server) Await(command, words string) {
	s.t.Helper()
	answer := ""
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if answer = s.Ask(command); strings.Contains(answer, words) {
			return
		}
	}
	s.t.Fatalf("redis never answered %q to %s, but %q", words, command, answer)
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
	args := s.arguments(dir)
	cmd := exec.Command("redis-server", args...)
	if err := cmd.Start(); err != nil {
		s.t.Fatalf("start redis-server: %v", err)
	}
	s.cmd = cmd
	s.t.Cleanup(s.Stop) // before its folder is removed: a sentinel writes there at any time
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

// arguments are those of the process. Those of a sentinel begin with its file.
func (s *Server) arguments(dir string) []string {
	var further []string
	if s.further != nil {
		further = s.further(dir, s.port)
	}
	if len(further) > 0 && further[0] == "--sentinel" {
		return append([]string{filepath.Join(dir, "sentinel.conf")}, further...)
	}
	args := []string{
		"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", dir, "--unixsocket", s.socket,
		"--save", "", "--appendonly", "no", "--daemonize", "no",
	}
	if s.password != "" {
		args = append(args, "--requirepass", s.password)
	}
	return append(args, further...)
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
