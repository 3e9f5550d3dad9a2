// Package objectserver runs real object stores for a test: versitygw, which speaks S3,
// fake-gcs-server and Azurite.
package objectserver

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testenv/freeport"
	"github.com/holdfast-dev/holdfast/internal/testenv/ownclient"
)

// patience is how long a step may take on a busy machine.
const patience = 2 * time.Minute

// Server is an object store on its own port, with what it holds in a folder. It ends with
// its test. Its methods are for the test's goroutine only.
type Server struct {
	// URL is the address of a bucket, as holdfast.yaml has it.
	URL func(bucket string) string
	// AccessKey and Secret are its credentials. The secret is one for each server.
	AccessKey, Secret string

	t       testing.TB
	program string
	args    func(s *Server) []string
	env     []string
	dir     string
	port    int
	cmd     *exec.Cmd     // nil: it does not run
	ended   chan struct{} // closed when the process has
	make    func(bucket string) error
}

// Starts has how a store of each kind is started, by the name of the kind.
var Starts = map[string]func(testing.TB) *Server{"s3": StartS3, "gcs": StartGCS, "azure": StartAzure}

// StartS3 starts versitygw with its own root account.
func StartS3(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, AccessKey: "holdfast-test", Secret: rand.Text()}
	s.URL = func(bucket string) string { return "s3://" + bucket + "?endpoint=http://" + s.Addr() }
	s.args = func(s *Server) []string {
		return []string{
			"--port", s.Addr(), "--access", s.AccessKey, "--secret", s.Secret, "--region", "us-east-1", "--quiet",
			"posix", "--sidecar", filepath.Join(s.dir, "attributes"), filepath.Join(s.dir, "objects"),
		}
	}
	s.make = func(bucket string) error { return os.Mkdir(filepath.Join(s.dir, "objects", bucket), 0o755) }
	return s.start("versitygw", "objects", "attributes")
}

const gcsProgram = "fake-gcs-server"

// StartGCS starts fake-gcs-server behind a proxy that asks for a token, which the secret,
// the key of a service account, gets from the proxy.
func StartGCS(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t}
	front := newTokenFront(t, func() string { return s.Addr() })
	s.Secret = front.serviceAccount()
	s.URL = func(bucket string) string { return "gs://" + bucket + "?endpoint=" + front.server.URL }
	s.args = func(s *Server) []string {
		return []string{
			"-scheme", "http", "-host", "127.0.0.1", "-port", strconv.Itoa(s.port), "-public-host", s.Addr(),
			"-backend", "filesystem", "-filesystem-root", filepath.Join(s.dir, "objects"), "-log-level", "error",
		}
	}
	s.make = func(bucket string) error {
		return s.post("http://"+s.Addr()+"/storage/v1/b?project=test", fmt.Sprintf(`{"name":%q}`, bucket))
	}
	return s.start(gcsProgram, "objects")
}

// StartAzure starts Azurite with its own storage account.
func StartAzure(t testing.TB) *Server {
	t.Helper()
	const account = "holdfasttest"
	key := make([]byte, 64)
	_, _ = rand.Read(key)
	s := &Server{t: t, Secret: base64.StdEncoding.EncodeToString(key)}
	s.env = []string{"AZURITE_ACCOUNTS=" + account + ":" + s.Secret}
	s.URL = func(bucket string) string {
		return "azblob://" + bucket + "?endpoint=http://" + s.Addr() + "/" + account
	}
	s.args = func(s *Server) []string {
		return []string{
			"--blobHost", "127.0.0.1", "--blobPort", strconv.Itoa(s.port), "--location", s.dir,
			"--silent", "--skipApiVersionCheck", "--disableTelemetry",
		}
	}
	s.make = func(bucket string) error {
		return makeContainer("http://"+s.Addr()+"/"+account, account, s.Secret, bucket)
	}
	return s.start("azurite-blob")
}

func (s *Server) start(program string, folders ...string) *Server {
	s.t.Helper()
	s.program = find(s.t, program)
	s.dir = s.t.TempDir()
	for _, name := range folders {
		if err := os.Mkdir(filepath.Join(s.dir, name), 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	s.t.Cleanup(func() {
		s.Resume()
		s.Stop()
	})
	// Between finding a free port and using it another process may take it.
	for range 5 {
		s.port = freeport.Of(s.t)
		if s.run() {
			return s
		}
	}
	s.t.Fatalf("start %s:\n%s", program, s.logged())
	return nil
}

// find returns a tool of the tests (`make tools`) from HOLDFAST_TEST_PROVIDERS, otherwise
// from PATH. Without it a test is skipped on a laptop and fails in CI.
func find(t testing.TB, program string) string {
	t.Helper()
	if dir := os.Getenv("HOLDFAST_TEST_PROVIDERS"); dir != "" {
		path := filepath.Join(dir, program)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	path, err := exec.LookPath(program)
	switch {
	case err == nil:
		return path
	case os.Getenv("CI") == "true":
		t.Fatalf("%s is neither in HOLDFAST_TEST_PROVIDERS nor on PATH", program)
	default:
		t.Skipf("%s is not there: make tools", program)
	}
	return ""
}

// Addr is host:port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// MakeBucket makes an empty bucket and returns its URL.
func (s *Server) MakeBucket(name string) string {
	s.t.Helper()
	if err := s.make(name); err != nil {
		s.t.Fatalf("make bucket %q: %v", name, err)
	}
	return s.URL(name)
}

// Stop ends the server in order; what it holds stays. A second Stop does nothing.
func (s *Server) Stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(20 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
	s.cmd = nil
}

// Restart starts a server that was stopped, on the same port and with what it held.
func (s *Server) Restart() {
	s.t.Helper()
	if s.cmd == nil && filepath.Base(s.program) == gcsProgram {
		s.dropUnfinished()
	}
	if s.cmd == nil && !s.run() {
		s.t.Fatalf("restart %s on port %d:\n%s", s.program, s.port, s.logged())
	}
}

// dropUnfinished removes the temporary files of writes that fake-gcs-server had not ended:
// it takes them for objects without attributes, and then cannot list any.
func (s *Server) dropUnfinished() {
	err := filepath.WalkDir(filepath.Join(s.dir, "objects"), func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && strings.HasPrefix(entry.Name(), ".") {
			return os.Remove(path)
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// Pause makes the server hang: it accepts connections and does not answer.
func (s *Server) Pause() {
	s.signal(syscall.SIGSTOP)
	if s.cmd == nil {
		return
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) { // a signal takes a moment
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
		if err != nil || bytes.Contains(state, []byte(") T ")) {
			return
		}
	}
}

// Resume ends a Pause.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(sig)
	}
}

// Files are the names of the files that hold the objects of a bucket, of S3 and GCS.
func (s *Server) Files(bucket string) []string {
	s.t.Helper()
	var files []string
	root := filepath.Join(s.dir, "objects", bucket)
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return files
}

// run starts the process and reports whether it listens.
func (s *Server) run() bool {
	s.t.Helper()
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(s.program, s.args(s)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir}, s.env...)
	if err := cmd.Start(); err != nil {
		s.t.Fatalf("start %s: %v", s.program, err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	s.cmd, s.ended = cmd, ended
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		select {
		case <-ended:
			s.cmd = nil
			return false
		case <-time.After(20 * time.Millisecond):
		}
		if s.answers() {
			return true
		}
	}
	s.Stop()
	return false
}

// answers reports whether something on the port speaks HTTP; that it is ours the process
// says, which ends if the port is taken.
func (s *Server) answers() bool {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + s.Addr() + "/")
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

func (s *Server) logFile() string { return filepath.Join(s.dir, "server.log") }

func (s *Server) logged() string {
	text, _ := os.ReadFile(s.logFile())
	return string(text)
}

func (s *Server) post(address, body string) error {
	client := &http.Client{Transport: ownclient.Client.Transport, Timeout: patience}
	resp, err := client.Post(address, "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return errors.New(resp.Status + ": " + string(bytes.TrimSpace(said)))
	}
	return nil
}
