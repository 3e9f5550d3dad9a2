// Package gitserver is real Git over HTTP for tests: git http-backend behind a
// net/http server, with helpers that build history in the repositories it
// serves. Repositories are bare folders, so they can be read by path as well.
package gitserver

import (
	"bytes"
	"crypto/subtle"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Server serves the repositories below one folder. It ends with its test.
// It is safe for concurrent use.
type Server struct {
	t    testing.TB
	root string
	http *httptest.Server

	mu       sync.Mutex
	user     string
	password string
	fail     http.HandlerFunc
	gate     <-chan struct{}
	requests map[string]int
}

// New starts a server without authentication.
func New(t testing.TB) *Server {
	t.Helper()
	programs := needGit(t)

	s := &Server{t: t, root: t.TempDir(), requests: map[string]int{}}
	backend := &cgi.Handler{
		Path: filepath.Join(programs, "git-http-backend"),
		Dir:  s.root,
		Env: append(environment(),
			"GIT_PROJECT_ROOT="+s.root,
			"GIT_HTTP_EXPORT_ALL=1",
		),
		Stderr: io.Discard, // a client that hangs up makes it complain
	}
	s.http = httptest.NewServer(s.guard(backend))
	t.Cleanup(s.http.Close)
	return s
}

// needGit returns Git's folder of programs. Without Git a test is skipped on a
// laptop and fails in CI.
func needGit(t testing.TB) string {
	t.Helper()
	path, err := execPath()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("find git: %v", err)
		}
		t.Skip("git is not installed")
	}
	return path
}

var execPath = sync.OnceValues(func() (string, error) { //nolint:gochecknoglobals // it is the same for all tests
	out, err := exec.Command("git", "--exec-path").Output()
	return strings.TrimSpace(string(out)), err
})

// environment keeps the settings of whoever runs the test out of it.
func environment() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + os.DevNull,
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com",
	}
}

// guard counts requests, and refuses those without the password if there is one.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		user, password, fail, gate := s.user, s.password, s.fail, s.gate
		s.requests[r.Method+" "+r.URL.Path]++
		s.mu.Unlock()

		if gate != nil {
			select {
			case <-gate:
			case <-r.Context().Done():
			}
		}
		if fail != nil {
			fail(w, r)
			return
		}
		if password != "" {
			u, p, _ := r.BasicAuth()
			if subtle.ConstantTimeCompare([]byte(u+"\x00"+p), []byte(user+"\x00"+password)) != 1 {
				w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
				http.Error(w, "who are you?", http.StatusUnauthorized)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// RequireAuth refuses requests from now on that do not carry these. An empty
// password lets everybody in again.
func (s *Server) RequireAuth(user, password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.user, s.password = user, password
}

// Intercept answers every request with h until it is called with nil.
func (s *Server) Intercept(h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = h
}

// Hold keeps every request waiting until gate is closed.
func (s *Server) Hold(gate <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate = gate
}

// Requests returns how many requests came for a method and a path, such as
// "POST /acme/clusters.git/git-upload-pack".
func (s *Server) Requests(methodAndPath string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[methodAndPath]
}

// URL is the server's address, without a slash at the end.
func (s *Server) URL() string { return s.http.URL }

// Repo is a bare repository on a Server, whose default branch is main. Its
// methods end the test on failure; revisions are full SHAs or names of refs.
type Repo struct {
	t    testing.TB
	Name string // as it was created, such as acme/clusters
	Path string // of the bare repository on disk
	URL  string // over HTTP
}

// CreateRepo creates an empty repository; its path ends in ".git".
func (s *Server) CreateRepo(name string) *Repo {
	s.t.Helper()
	path := filepath.Join(s.root, filepath.FromSlash(name)+".git")
	repo := NewRepo(s.t, path)
	repo.Name = name
	repo.URL = s.http.URL + (&url.URL{Path: "/" + name + ".git"}).EscapedPath()
	return repo
}

// NewRepo creates an empty bare repository at path, which no server serves. It
// has no URL.
func NewRepo(t testing.TB, path string) *Repo {
	t.Helper()
	needGit(t)
	r := &Repo{t: t, Name: filepath.Base(path), Path: path}
	// What git init --bare makes.
	for _, dir := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(path, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{
		"HEAD": "ref: refs/heads/main\n",
		"config": "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n" +
			"[http]\n\treceivepack = true\n[uploadpack]\n\tallowAnySHA1InWant = true\n[gc]\n\tauto = 0\n",
	} {
		if err := os.WriteFile(filepath.Join(path, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// Git runs git in the bare repository and returns what it prints, trimmed.
func (r *Repo) Git(args ...string) string {
	r.t.Helper()
	return r.run(nil, args...)
}

func (r *Repo) run(stdin []byte, args ...string) string {
	r.t.Helper()
	out, err := r.try(stdin, args...)
	if err != nil {
		r.t.Fatalf("git %s: %v", strings.Join(args, " "), err)
	}
	return out
}

func (r *Repo) try(stdin []byte, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env, cmd.Stdin = r.Path, environment(), bytes.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	text := strings.TrimSpace(string(out))
	if err != nil {
		return text, fmt.Errorf("%w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return text, nil
}
