package runner_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/plandiff"
	"github.com/holdfast-dev/holdfast/internal/testenv/uncached"
	"github.com/holdfast-dev/holdfast/plandoc"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner"
)

// memorySession is a Session in memory. Copies of its artefacts serve as those
// of stored runs.
type memorySession struct {
	bundle func() (io.ReadCloser, error)
	stored map[string]map[string][]byte // run → name → content
	state  string                       // address
	deny   bool                         // the apply may not begin
	unkept error                        // why not, if that is the disk

	mu        sync.Mutex
	faults    map[string][]error // of puts, by name: the first of each is next
	artefacts map[string][]byte
	log       bytes.Buffer
	written   int
	steps     []string
	onStep    func(string)
}

func newMemorySession(files map[string]string) *memorySession {
	data := tarball(files)
	return &memorySession{
		bundle:    func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
		artefacts: map[string][]byte{},
	}
}

func (s *memorySession) Bundle(context.Context, holdfast.Digest) (io.ReadCloser, error) {
	return s.bundle()
}

func (s *memorySession) StoredArtefact(_ context.Context, run, name string) (io.ReadCloser, error) {
	data, ok := s.stored[run][name]
	if !ok {
		return nil, fmt.Errorf("artefact %s of run %s: %w", name, run, holdfast.ErrNotFound)
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

func (s *memorySession) PutArtefact(_ context.Context, name string, r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if faults := s.faults[name]; len(faults) > 0 {
		s.faults[name] = faults[1:]
		return faults[0]
	}
	s.artefacts[name] = data
	return nil
}

type sessionLog struct{ s *memorySession }

func (l sessionLog) Write(p []byte) (int, error) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.s.written += len(p)
	if l.s.log.Len() < 8<<20 {
		l.s.log.Write(p)
	}
	return len(p), nil
}

func (s *memorySession) Log() io.Writer { return sessionLog{s} }

func (s *memorySession) Step(name string) {
	s.mu.Lock()
	s.steps = append(s.steps, name)
	hook := s.onStep
	s.mu.Unlock()
	if hook != nil {
		hook(name)
	}
}

func (s *memorySession) MayApply() bool { return !s.deny }

func (s *memorySession) Unkept() error { return s.unkept }

func (s *memorySession) StateAddress() (addr, user, password string) {
	return s.state, "run", "the-state-password"
}

func (s *memorySession) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

func (s *memorySession) artefact(name string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.artefacts[name]
}

// tarball returns a gzipped tar of files.
func tarball(files map[string]string) []byte {
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	tw := tar.NewWriter(zw)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		mode := int64(0o644)
		if strings.HasPrefix(filepath.Base(name), "terraform-provider-") {
			mode = 0o755
		}
		_ = tw.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(files[name]))})
		_, _ = io.WriteString(tw, files[name])
	}
	_ = tw.Close()
	_ = zw.Close()
	return buf.Bytes()
}

// stateServer is a state backend as the engines' http backend speaks to it.
type stateServer struct {
	*httptest.Server
	mu     sync.Mutex
	states map[string][]byte
	refuse int // so many POSTs are refused
	saw    func(state []byte)
}

// watchedSession is a session that sees the states of its server, as an agent's does: no
// engine is started to read them.
type watchedSession struct {
	*memorySession
	states *stateServer
}

func (s watchedSession) WatchState(saw func(state []byte)) {
	s.states.mu.Lock()
	defer s.states.mu.Unlock()
	s.states.saw = saw
}

func newStateServer(t *testing.T) *stateServer {
	t.Helper()
	s := &stateServer{states: map[string][]byte{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *stateServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	switch r.Method {
	case http.MethodGet:
		if s.states[r.URL.Path] == nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		s.see(s.states[r.URL.Path])
		_, _ = w.Write(s.states[r.URL.Path])
	case http.MethodPost:
		s.see(body)
		if s.refuse > 0 {
			s.refuse--
			w.WriteHeader(http.StatusForbidden)
			return
		}
		s.states[r.URL.Path] = body
	}
}

func (s *stateServer) see(state []byte) {
	if s.saw != nil {
		s.saw(state)
	}
}

func (s *stateServer) state(path string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.states[path])
}

// realEngine returns the folder and the name of the engine on PATH: terraform,
// otherwise tofu. Without one a test is skipped on a laptop and fails in CI.
func realEngine(t *testing.T) (dir, name string) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts an engine")
	}
	for _, name := range []string{"terraform", "tofu"} {
		if path, err := exec.LookPath(name); err == nil {
			return filepath.Dir(path), name
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatal("neither terraform nor tofu is on PATH")
	}
	t.Skip("neither terraform nor tofu is on PATH")
	return "", ""
}

// installEngine links the fake engine into dir under name.
func installEngine(t *testing.T, dir, name string) {
	t.Helper()
	fake, err := filepath.Abs("testdata/engine/fake")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{name: fake, name + plannerSuffix: self} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
}

// plannerSuffix is that of the link by which the fake engine starts this program
// to write its plan file.
const plannerSuffix = ".planner"

// programs are what this program is instead of tests, by its first argument.
var programs = map[string]func(arguments []string) error{}

func TestMain(m *testing.M) {
	if name, ok := strings.CutSuffix(filepath.Base(os.Args[0]), plannerSuffix); ok {
		if err := writeFakePlan(os.Args[1], name, os.Args[2] != ""); err != nil {
			fmt.Fprintln(os.Stderr, "Error:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && programs[os.Args[1]] != nil {
		if err := programs[os.Args[1]](os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "Error:", err)
			os.Exit(1)
		}
		return
	}
	uncached.Package()
	os.Exit(m.Run())
}

// newExecutor returns an Executor in its own folder.
func newExecutor(t *testing.T, change func(*runner.ExecutorOptions)) (*runner.Executor, string) {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "engine.rc")
	if err := os.WriteFile(config, []byte("disable_checkpoint = true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	opts := runner.ExecutorOptions{
		WorkDir: filepath.Join(dir, "work"), Waits: runner.Waits{Grace: 20 * time.Second},
		// Engines and providers live for a moment: collecting garbage is a fifth of their work.
		Engines: runner.Engines{CLIConfigFile: config, Env: map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir, "GOGC": "400"}},
	}
	if change != nil {
		change(&opts)
	}
	e, err := runner.NewExecutor(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // prepared folders are read-only
		_ = filepath.WalkDir(opts.WorkDir, func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				return os.Chmod(name, 0o700)
			}
			return nil
		})
	})
	return e, opts.WorkDir
}

// engineExecutor returns an Executor that has the fake engine only, and the file
// that its calls are noted in.
func engineExecutor(t *testing.T, change func(*runner.ExecutorOptions)) (e *runner.Executor, calls func() []string) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "bin")
	installEngine(t, bin, "terraform")
	file := filepath.Join(t.TempDir(), "calls")
	e, _ = newExecutor(t, func(o *runner.ExecutorOptions) {
		o.Engines.Dirs = []string{bin}
		o.Engines.Env = map[string]string{"PATH": "/nowhere", "HOME": "/nowhere", "FAKE_ENGINE_CALLS": file}
		if change != nil {
			change(o)
		}
	})
	return e, func() []string {
		data, _ := os.ReadFile(file)
		var commands []string
		for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
			command, _, _ := strings.Cut(line, " ")
			commands = append(commands, command)
		}
		return commands
	}
}

func engineAssignment(run string, kind holdfast.RunKind) protocol.Assignment {
	return protocol.Assignment{
		AttemptRef: holdfast.AttemptRef{Run: run, Attempt: 1, Fence: 7}, Token: "the-run-token",
		Kind: kind, Cluster: "prod-eu", SourceDigest: holdfast.DigestOf([]byte("source")),
		Bundle: holdfast.DigestOf([]byte("bundle")), FingerprintKey: []byte("0123456789abcdef0123456789abcdef"),
		AssignedState: protocol.AssignedState{OwnState: true},
	}
}

// review returns the review of a plan that a run of it made.
func review(run string, result protocol.Result) []holdfast.Review {
	return []holdfast.Review{{Run: run, InputDigest: result.InputDigest, PlanDigest: result.PlanDigest}}
}

// shownPlan is what the server shows of a plan document and what is next to it.
func shownPlan(document, info []byte) (holdfast.Plan, error) {
	d, err := plandoc.Decode(bytes.NewReader(document))
	if err != nil {
		return holdfast.Plan{}, err
	}
	var i plandoc.Info
	err = json.Unmarshal(info, &i)
	return plandiff.Plan(d, i), err
}

func summary(t *testing.T, s *memorySession) holdfast.Plan {
	t.Helper()
	plan, err := shownPlan(s.artefact(protocol.ArtefactDocument), s.artefact(protocol.ArtefactInfo))
	if err != nil {
		t.Fatalf("read summary: %v", err)
	}
	return plan
}

func wantStatus(t *testing.T, got protocol.Result, status holdfast.RunStatus, reason holdfast.Reason, s *memorySession) {
	t.Helper()
	if got.Status != status || got.Reason != reason {
		t.Fatalf("got %s (%s: %s), want %s (%s)\nfailure: %+v\nlog:\n%s",
			got.Status, got.Reason, got.Detail, status, reason, got.Failure, s.logged())
	}
}

// graceFor is how long an engine that hangs has to end: one that listens ends on its
// own, however busy the machine is, and one that does not is soon killed.
func graceFor(hang string) time.Duration {
	if hang == "hang-hard" {
		return 200 * time.Millisecond
	}
	return time.Minute
}

// writeMark makes an empty file.
func writeMark(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// untilFile waits for a file and returns its content.
func untilFile(t *testing.T, path string) string {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		data, err := os.ReadFile(path)
		if err == nil {
			return string(data)
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// noise is text that does not compress well.
func noise(size int) string {
	random := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, size)
	for i := range text {
		text[i] = byte(random.UintN(256))
	}
	return string(text)
}

func writeFile(t *testing.T, file, text string, mode os.FileMode) {
	t.Helper()
	_ = os.Remove(file)
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}
