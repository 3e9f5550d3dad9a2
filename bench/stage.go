package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/internal/testenv/ownclient"
)

// patience bounds every wait: beyond it there is nothing to measure.
const patience = time.Minute

// stage is what a part is measured on: a folder, and what has to be cleaned up
// at its end, last first. It is a testing.TB for the fakes of Git and GitHub;
// what is fatal to a test ends the part.
type stage struct {
	testing.TB // of it only what is overridden here is called

	bench    *bench
	ctx      context.Context // ends at the part's limit
	dir      string          // others can pass through: the agent may be another user
	cleanups []func()
	failed   bool
	figures  []figure // measured so far
}

// fatal ends a part by a panic that onStage turns into an error.
type fatal struct{ err error }

// onStage measures a part. What it has measured is on the stage that is returned, also if
// the part failed, or ctx ended it.
func onStage(ctx context.Context, b *bench, part func(*stage)) (s *stage, err error) {
	s = &stage{bench: b, ctx: ctx}
	dir, err := os.MkdirTemp("", "holdfast-bench")
	if err != nil {
		return s, err
	}
	s.dir = dir
	defer func() {
		for i := len(s.cleanups) - 1; i >= 0; i-- {
			s.cleanups[i]()
		}
		if b.keep {
			fmt.Fprintln(b.log, "kept", dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	defer func() {
		switch why := recover().(type) {
		case nil:
		case fatal:
			err = why.err
		default:
			panic(why)
		}
	}()
	s.check(os.Chmod(dir, 0o755))
	part(s)
	return s, nil
}

// add keeps what was measured.
func (s *stage) add(figures ...figure) { s.figures = append(s.figures, figures...) }

// rounds are the rounds in which something is measured: as many as are asked for, and after
// the first one only those that the part's limit leaves time for.
func (s *stage) rounds() iter.Seq[int] {
	return func(yield func(int) bool) {
		began := time.Now()
		for round := range s.bench.repeat {
			if round > 0 && !s.fits(time.Since(began)/time.Duration(round), round) {
				return
			}
			if !yield(round) {
				return
			}
		}
	}
}

// fits reports whether there is time left for another round, which takes that long.
func (s *stage) fits(long time.Duration, round int) bool {
	deadline, bounded := s.ctx.Deadline()
	if !bounded || time.Until(deadline) > long {
		return true
	}
	s.Logf("no time for round %d of %d", round+1, s.bench.repeat)
	return false
}

// command prepares a command that ends, with all that it has started, when the part does.
func (s *stage) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(s.ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	return cmd
}

func (s *stage) Context() context.Context  { return s.ctx }
func (s *stage) Helper()                   {}
func (s *stage) Cleanup(f func())          { s.cleanups = append(s.cleanups, f) }
func (s *stage) Failed() bool              { return s.failed }
func (s *stage) Logf(f string, a ...any)   { fmt.Fprintf(s.bench.log, f+"\n", a...) }
func (s *stage) Fatal(a ...any)            { panic(fatal{errors.New(fmt.Sprint(a...))}) }
func (s *stage) Fatalf(f string, a ...any) { panic(fatal{fmt.Errorf(f, a...)}) }
func (s *stage) Skip(a ...any)             { s.Fatal(a...) }
func (s *stage) Skipf(f string, a ...any)  { s.Fatalf(f, a...) }
func (s *stage) Errorf(f string, a ...any) {
	s.failed = true
	s.Logf(f, a...)
}

func (s *stage) TempDir() string {
	dir, err := os.MkdirTemp(s.dir, "temp")
	s.check(err)
	return dir
}

// check ends the part on an error.
func (s *stage) check(err error) {
	if err != nil {
		panic(fatal{err})
	}
}

func (s *stage) write(path, content string, mode os.FileMode) {
	s.check(os.MkdirAll(filepath.Dir(path), 0o755))
	s.check(os.WriteFile(path, []byte(content), mode))
}

// until polls in short steps until ok is true.
func (s *stage) until(what string, ok func() bool) { s.within(patience, what, ok) }

func (s *stage) within(patience time.Duration, what string, ok func() bool) {
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if s.ctx.Err() != nil || time.Now().After(deadline) {
			s.Fatalf("waited in vain until %s", what)
		}
	}
}

const (
	webhookSecret = "shared by the generator and the server"
	fleetRepo     = "acme/fleet"
	templateRepo  = "acme/templates"
)

// world is a Holdfast server with a repository, or several, on the fakes of Git and GitHub.
type world struct {
	*stage
	dir string
	*hosted
	more []*hosted // further repositories that define clusters
	host *githubserver.Server
	tpl  *hosted // the repository that publishes a template; nil: there is none
	cmd  *exec.Cmd
	log  *logBuffer
	api  string
	hook string
	wait time.Duration // for a start; zero means patience

	proposals int // so far
}

// hosted is a repository on the fakes of Git and GitHub.
type hosted struct {
	name string
	git  *gitserver.Repo
	hub  *githubserver.Repo
}

// repositories are all that define clusters.
func (w *world) repositories() []*hosted { return append([]*hosted{w.hosted}, w.more...) }

// newWorld prepares a server with an empty repository. It does not run yet.
func (s *stage) newWorld(cliConfig string) *world {
	return s.newWorldWith(fmt.Sprintf(`
runs: {max: %d}
agent: {slots: %[1]d}
engines: {download: false, cliConfigFile: %q}
`, s.bench.parallel, cliConfig), "clusters/*.yaml", "")
}

// newWorldWith is newWorld with another end of the configuration, and with the glob of
// the files that define clusters. A template that is published (empty: none is) has its
// own repository, in which it is in a folder of its name.
func (s *stage) newWorldWith(config, glob, published string) *world {
	return s.newWorldIn(1, config, glob, published)
}

// newWorldIn is newWorldWith for a number of repositories that define clusters.
func (s *stage) newWorldIn(repositories int, config, glob, published string) *world {
	dir := s.TempDir()
	s.check(os.Chmod(dir, 0o755))
	server, hub := gitserver.New(s), githubserver.New(s)
	server.RequireAuth("x-access-token", githubserver.Token)
	w := &world{stage: s, dir: dir, host: hub, log: &logBuffer{}}
	create := func(name, title string) *hosted {
		h := &hosted{name: name, git: server.CreateRepo(name), hub: hub.Repo(name)}
		h.git.Commit("main", "Begin", map[string]string{"README.md": title})
		return h
	}
	w.hosted = create(fleetRepo, "A fleet.\n")
	for i := 1; i < repositories; i++ {
		w.more = append(w.more, create(fmt.Sprintf("%s-%02d", fleetRepo, i), "A part of a fleet.\n"))
	}
	s.write(w.path("token"), githubserver.Token, 0o600)
	s.write(w.path("secret"), webhookSecret, 0o600)
	var repos strings.Builder
	for _, h := range w.repositories() {
		fmt.Fprintf(&repos, "  - {name: %s, forge: github, url: %q, clusters: [%q], webhookSecret: {file: secret}}\n", h.name, h.git.URL, glob)
	}
	if published != "" {
		w.tpl = create(templateRepo, "Templates.\n")
		fmt.Fprintf(&repos, "  - {name: %s, forge: github, url: %q, templates: {%[3]s: %[3]s}, samples: 0, webhookSecret: {file: secret}}\n",
			templateRepo, w.tpl.git.URL, published)
	}
	s.write(w.path("holdfast.yaml"), fmt.Sprintf(`dataDir: data
server:
  public: {address: "127.0.0.1:0"}
  api: {address: "127.0.0.1:0"}
  grace: 1s
forges:
  - {name: github, url: %q, token: {file: token}}
repositories:
%s%s`, hub.URL+"api/v3/", &repos, config), 0o600)
	return w
}

func (w *world) path(elem ...string) string {
	return filepath.Join(append([]string{w.dir}, elem...)...)
}

var listening = regexp.MustCompile(`msg="server is listening" webhooks=(\S+) api=(\S+)`)

// start starts the server and returns how long it took to be ready.
func (w *world) start() time.Duration {
	w.log.reset()
	w.cmd = exec.Command(w.bench.binary, "serve", "--config", w.path("holdfast.yaml"))
	w.cmd.Dir, w.cmd.Stdout, w.cmd.Stderr = w.dir, w.log, w.log
	began := time.Now()
	w.check(w.cmd.Start())
	w.Cleanup(w.stop)
	var found []string
	w.until("the server listens", func() bool {
		found = listening.FindStringSubmatch(w.log.String())
		return found != nil
	})
	w.hook, w.api = "http://"+found[1]+"/webhooks/github", "http://"+found[2]
	w.within(cmp.Or(w.wait, patience), "the server is ready", func() bool {
		resp, err := ownclient.Client.Get(w.api + "/readyz")
		if err != nil {
			return false
		}
		return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	})
	took := time.Since(began)
	for _, h := range w.repositories() {
		h.hub.SetWebhook(w.hook, webhookSecret)
	}
	if w.tpl != nil {
		w.tpl.hub.SetWebhook(w.hook, webhookSecret)
	}
	return took
}

// stop ends the server and its agent.
func (w *world) stop() {
	if w.cmd == nil {
		return
	}
	_ = w.cmd.Process.Signal(syscall.SIGTERM)
	if err := w.cmd.Wait(); err != nil {
		w.Errorf("the server ended with %v:\n%s", err, w.log)
	}
	w.cmd = nil
	if w.bench.keep {
		_ = os.WriteFile(w.path("serve.log"), []byte(w.log.String()), 0o600)
	}
}

// logBuffer keeps what a server prints.
type logBuffer struct {
	mu    sync.Mutex
	b     bytes.Buffer
	heard func(line []byte) // of each line, if there is one
	line  []byte            // the beginning of the next
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.heard != nil {
		l.line = append(l.line, p...)
		for {
			line, rest, whole := bytes.Cut(l.line, []byte("\n"))
			if !whole {
				break
			}
			l.heard(line)
			l.line = rest
		}
	}
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logBuffer) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Reset()
}

// providers makes a mirror of the real providers and returns the engine's
// configuration for it.
func (s *stage) providers() string {
	from := os.Getenv("HOLDFAST_TEST_PROVIDERS")
	if from == "" {
		out, err := exec.Command("go", "env", "GOPATH").Output()
		s.check(err)
		from = filepath.Join(strings.TrimSpace(string(out)), "bin")
	}
	mirror := filepath.Join(s.dir, "mirror")
	for name, version := range map[string]string{"local": "2.5.0", "time": "0.14.2"} {
		program := "terraform-provider-" + name
		data, err := os.ReadFile(filepath.Join(from, program))
		s.check(err)
		dir := filepath.Join(mirror, "registry.terraform.io/hashicorp", name, version, runtime.GOOS+"_"+runtime.GOARCH)
		s.check(os.MkdirAll(dir, 0o755))
		s.check(os.WriteFile(filepath.Join(dir, program+"_v"+version), data, 0o755)) //nolint:gosec // it is executed
	}
	config := filepath.Join(s.dir, "engine.rc")
	s.write(config, fmt.Sprintf("provider_installation {\n  filesystem_mirror { path = %q }\n}\n", mirror), 0o644)
	return config
}
