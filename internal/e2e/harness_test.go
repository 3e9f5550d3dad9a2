// Package e2e_test runs the very binary, as people do: `holdfast serve` with a
// holdfast.yaml, against real Git over HTTP, a fake of GitHub's API with signed
// deliveries, a real engine and, where it matters, a real Redis.
package e2e_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/apicheck"
	"github.com/holdfast-dev/holdfast/internal/testenv/freeusers"
	"github.com/holdfast-dev/holdfast/internal/testenv/githubserver"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
	"github.com/holdfast-dev/holdfast/internal/testenv/ownclient"
	"github.com/holdfast-dev/holdfast/internal/testenv/redisserver"
	"github.com/holdfast-dev/holdfast/runner/folders"
)

// patience is how long a story waits for something that has to happen. It is
// for slow and busy machines, such as one that runs two suites at once: nothing is
// concluded from how long something takes.
const patience = 10 * time.Minute

// binary is the holdfast that all tests run.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if !asked { // a test waits for its server, agents and engines most of the time
		_ = flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0)))
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp(os.Getenv("HOLDFAST_TEST_PROGRAMS"), "holdfast-e2e-bin") // where programs start fast
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "holdfast")
	// As it is released, except for the clocks: each process can be given a wrong one.
	args := []string{"build", "-trimpath", "-ldflags", "-s -w -X " + clockVariable + "=" + clockFile, "-o", binary}
	if hasRaceDetector() {
		args = append(args, "-race")
	}
	build := exec.Command("go", append(args, "github.com/holdfast-dev/holdfast/cmd/holdfast")...)
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	err = errors.Join(build.Run(), os.Chmod(dir, 0o755)) // the agent may be another user
	if err != nil {
		fmt.Fprintf(os.Stderr, "build holdfast: %v\n", err)
		return 1
	}
	code := m.Run()
	failed.print()
	return code
}

// hasRaceDetector reports whether this test was built with -race.
func hasRaceDetector() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// settings are keys of holdfast.yaml, as paths with dots, and their values.
type settings map[string]any

// world is a server with all that it works with. It ends with its test. Its
// methods end the test on failure and are for the test's goroutine only.
type world struct {
	t   testing.TB
	dir string // others can pass through; data is the server's folder in it
	git *gitserver.Server
	hub *githubserver.Server

	robot  string // who writes our comments
	config map[string]any
	repos  []*repo

	server  *exec.Cmd // nil: not running
	env     []string  // of the server, in addition to ours
	program string    // that the next server starts; empty: binary
	under   []string  // command that starts the server as somebody who is not root; empty: it is started as it is
	over    bool
	exited  chan struct{}
	log     *logBuffer
	api     string // base URL
	hooks   string // base URL
}

// newWorld prepares a world with one repository on GitHub, acme/fleet, which
// fleet returns; nothing runs before start. Polling is far off, so that what
// happens is the webhooks' doing; retries come at once.
func newWorld(t testing.TB, more settings) *world {
	t.Helper()
	w := emptyWorld(t, more)
	w.addRepo("acme/fleet", nil)
	return w
}

// emptyWorld is newWorld without a repository.
func emptyWorld(t testing.TB, more settings) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "holdfast-e2e")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, git: gitserver.New(t), hub: githubserver.New(t), robot: githubserver.TokenLogin, log: &logBuffer{}}
	t.Cleanup(w.end)
	if err := errors.Join(os.Mkdir(w.path("seen"), 0o777), os.Chmod(w.path("seen"), 0o777), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	w.git.RequireAuth("x-access-token", githubserver.Token)
	w.write("forge-token", githubserver.Token, 0o600)
	w.write("webhook-secret", webhookSecret, 0o600)
	w.config = map[string]any{
		"dataDir": "data",
		"forges": []any{map[string]any{
			"name": "github", "url": w.hub.URL + "api/v3/", "token": map[string]any{"file": "forge-token"},
		}},
	}
	w.set(settings{
		"server.public.address": "127.0.0.1:0", "server.api.address": "127.0.0.1:0", "server.grace": "20s",
		"runs.retryDelay": "200ms", "engines.dirs": []string{w.path("engine")}, "engines.download": false,
		"engines.grace": "2s", "telemetry.logLevel": "info", "sandbox.paths.writable": []string{w.path("seen")},
	})
	plan, apply := slotUsers(t)
	w.set(settings{"agent.slotUsers.plan": plan, "agent.slotUsers.apply": apply})
	w.set(more)
	w.makeEngine()
	return w
}

// slotUsers are the first users of a world's engines, which no other world has.
func slotUsers(t testing.TB) (plan, apply int) {
	t.Helper()
	const each = 50
	first := freeusers.Of(t, 2*each)
	return first, first + each
}

const webhookSecret = "it stays between the two of us"

// set changes holdfast.yaml. A server that runs reads it at its next start.
func (w *world) set(more settings) {
	for path, value := range more {
		keys := strings.Split(path, ".")
		at := w.config
		for _, key := range keys[:len(keys)-1] {
			next, ok := at[key].(map[string]any)
			if !ok {
				next = make(map[string]any)
				at[key] = next
			}
			at = next
		}
		at[keys[len(keys)-1]] = value
	}
}

// useRedis makes the server lock with its own Redis.
func (w *world) useRedis() *redisserver.Server {
	w.t.Helper()
	redis := redisserver.Start(w.t)
	w.t.Cleanup(w.end) // before Redis ends
	w.write("redis.password", redis.Password(), 0o600)
	w.set(settings{
		"lock.type": "redis", "lock.redis.url": redis.URL(), "lock.redis.password": map[string]any{"file": "redis.password"},
	})
	return redis
}

// useApp makes the server a GitHub App, where it else has a personal token.
func (w *world) useApp() {
	w.t.Helper()
	w.git.RequireAuth("", "") // its tokens change
	w.write("app.pem", string(w.hub.AppKey()), 0o600)
	w.robot = githubserver.AppLogin
	w.config["forges"] = []any{map[string]any{
		"name": "github", "url": w.hub.URL + "api/v3/",
		"app": map[string]any{"id": githubserver.AppID, "privateKeyFile": "app.pem"},
	}}
}

// outside are names in the world's folder that engines find and may write to: the
// engine's own script and what tests of the world outside use.
var outside = []string{"engine", "newer", "witness", "outside", "mended", "switch", "open", "let-go", "states"} //nolint:gochecknoglobals // a constant list

// path returns a path below the world's folder.
func (w *world) path(elem ...string) string {
	if len(elem) > 0 && slices.Contains(outside, strings.Split(elem[0], "/")[0]) {
		elem = append([]string{"seen"}, elem...)
	}
	return filepath.Join(append([]string{w.dir}, elem...)...)
}

// write writes a file below the world's folder.
func (w *world) write(name, content string, mode os.FileMode) {
	w.t.Helper()
	path := w.path(filepath.FromSlash(name))
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(content), mode)
	}
	if err == nil {
		err = os.Chmod(path, mode) // the umask has its own idea
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// start starts the server and waits until it has read its repositories.
func (w *world) start() {
	w.t.Helper()
	w.launch()
	w.until("the server is ready", func() (bool, string) {
		status, body := w.get(w.api + "/readyz")
		return status == http.StatusOK, body
	})
}

// launch starts the server and waits until it listens.
func (w *world) launch() {
	w.t.Helper()
	var repos []any
	for _, r := range w.repos {
		repos = append(repos, r.config)
	}
	w.config["repositories"] = repos
	text, err := yaml.Marshal(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.write("holdfast.yaml", string(text), 0o600)
	w.log.startAnew()
	command := slices.Concat(w.under, []string{cmp.Or(w.program, binary), "serve", "--config", w.path("holdfast.yaml")})
	w.server = exec.Command(command[0], command[1:]...)
	w.server.Dir, w.server.Stdout, w.server.Stderr = w.dir, w.log, w.log
	w.server.Env = append(append(os.Environ(), "PATH="+serverPath()), w.env...)
	if err := w.server.Start(); err != nil {
		w.t.Fatal(err)
	}
	server, exited := w.server, make(chan struct{})
	w.exited = exited
	go func() {
		_ = server.Wait()
		close(exited)
	}()
	var found []string
	w.until("the server listens", func() (bool, string) {
		found = listening.FindStringSubmatch(w.log.current())
		return found != nil, "no address in its log"
	})
	w.hooks, w.api = "http://"+found[1], "http://"+found[2]
	for _, r := range w.repos {
		r.hub.SetWebhook(w.hooks+"/webhooks/github", webhookSecret)
	}
}

var listening = regexp.MustCompile(`msg="server is listening" webhooks=(\S+) api=(\S+)`)

// stop ends the server as an init system does and returns its exit code.
func (w *world) stop() int {
	w.t.Helper()
	return w.signal(syscall.SIGTERM)
}

// kill ends the server at once. Its agents live on.
func (w *world) kill() {
	w.t.Helper()
	w.signal(syscall.SIGKILL)
}

func (w *world) signal(sig syscall.Signal) int {
	w.t.Helper()
	if w.server == nil {
		return 0
	}
	_ = w.server.Process.Signal(sig) // it may be gone already
	select {
	case <-w.exited:
	case <-time.After(patience):
		_ = w.server.Process.Kill()
		<-w.exited
		w.t.Errorf("server did not end on %s", sig)
	}
	code := w.server.ProcessState.ExitCode()
	w.server = nil
	return code
}

// agentDir is the folder of the agent that executes runs of that kind. If the
// server is root, plans and applies have an agent each, and else they share one.
func (w *world) agentDir(kind holdfast.RunKind) string {
	if os.Getuid() == 0 && len(w.under) == 0 && (kind == holdfast.RunPlan || kind == holdfast.RunDrift) {
		return w.path("data", "agent-plan")
	}
	return w.path("data", "agent")
}

// agentDirs are the folders of all agents on the server's machine.
func (w *world) agentDirs() []string {
	return slices.Compact([]string{w.agentDir(holdfast.RunPlan), w.agentDir(holdfast.RunApply)})
}

// agentPID returns the process id of the living agent that executes runs of that
// kind, 0 if there is none.
func (w *world) agentPID(kind holdfast.RunKind) int {
	return livingIn(w.agentDir(kind))
}

// agentPIDs are the process ids of the living agents.
func (w *world) agentPIDs() []int {
	var pids []int
	for _, dir := range w.agentDirs() {
		if pid := livingIn(dir); pid != 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// livingIn returns the process id of the agent that lives in a folder, 0 if
// there is none. One that is dead and not yet buried does not live.
func livingIn(dir string) int {
	data, err := os.ReadFile(filepath.Join(dir, "agent.lock"))
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(data)))
	if pid == 0 || syscall.Kill(pid, 0) != nil {
		return 0
	}
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && bytes.Contains(stat, []byte(") Z ")) {
		return 0
	}
	// Numbers of processes come again: one that has another command line is nobody's
	// agent, and must not be taken, or killed, for it.
	if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && !bytes.Contains(line, []byte("\x00"+dir+"\x00")) {
		return 0
	}
	return pid
}

// agentLog returns what the agents have logged.
func (w *world) agentLog() string {
	var log []byte
	for _, dir := range w.agentDirs() {
		data, _ := os.ReadFile(filepath.Join(dir, "agent.log"))
		log = append(log, data...)
	}
	return string(log)
}

// end stops everything, and tells what happened if the test has failed.
func (w *world) end() {
	if w.over {
		return
	}
	w.over = true
	w.releaseAll()
	if w.server != nil {
		if code := w.stop(); code != 0 && !w.t.Failed() {
			w.t.Errorf("server ended with code %d", code)
		}
	}
	w.killLeftBehind()
	if log := w.serverLog() + w.agentLog(); strings.Contains(log, "WARNING: DATA RACE") {
		w.t.Error("there was a data race")
	} else if strings.Contains(log, "\ngoroutine ") {
		w.t.Error("there was a panic")
	}
	if w.t.Failed() {
		failed.add(w.t.Name())
		w.t.Logf("the server's log:\n%s\nthe agents' logs:\n%s\nthe engine's calls:\n%s\ndeliveries that were not accepted, or late:\n%s",
			w.serverLog(), w.agentLog(), strings.Join(w.engineCalls(), "\n"), w.lostDeliveries())
	}
	// Prepared folders cannot be written to, not even by their owner.
	if err := folders.Remove(context.Background(), w.dir); err != nil {
		w.t.Errorf("clean up: %v", err)
	}
}

// killLeftBehind ends what is left of a world, and waits until it is gone.
func (w *world) killLeftBehind() {
	deadline := time.Now().Add(patience)
	for pids := w.leftBehind(); len(pids) > 0; pids = w.leftBehind() {
		if time.Now().After(deadline) {
			w.t.Errorf("processes %v cannot be killed", pids)
			return
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// leftBehind returns the processes that work in the world's folder: agents,
// also those whose server was killed, and their engines. These may see their
// folder under another name; they are what agents have started.
func (w *world) leftBehind() []int {
	pids := w.agentPIDs()
	children := childrenOf()
	for i := 0; i < len(pids); i++ {
		pids = append(pids, children[pids[i]]...)
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range dirs {
		dir, _ := os.Readlink(filepath.Join(proc, "cwd")) // an agent's is hidden from its own user
		line, _ := os.ReadFile(filepath.Join(proc, "cmdline"))
		isAgent := bytes.Contains(line, []byte("\x00agent\x00")) && bytes.Contains(line, []byte(w.dir+"/"))
		if strings.HasPrefix(dir, w.dir+"/") || isAgent {
			pid, _ := strconv.Atoi(filepath.Base(proc))
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// childrenOf returns the living processes by their parents.
func childrenOf() map[int][]int {
	children := make(map[int][]int)
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(data), ") ") // a name may have spaces
		fields := strings.Fields(rest)
		if len(fields) < 2 || fields[0] == "Z" {
			continue
		}
		pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
		parent, _ := strconv.Atoi(fields[1])
		children[parent] = append(children[parent], pid)
	}
	return children
}

// until polls until ok is true and ends the test when its patience does,
// with the state that was seen last.
func (w *world) until(what string, ok func() (done bool, state string)) {
	w.t.Helper()
	deadline, pause := time.Now().Add(patience), 15*time.Millisecond
	for {
		looked := time.Now()
		done, state := ok()
		if done {
			return
		}
		if w.exited != nil {
			select {
			case <-w.exited:
				w.t.Fatalf("the server ended while waiting until %s", what)
			default:
			}
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("waited in vain until %s; now: %s\nwhat the server was doing:\n%s", what, state, w.stacks())
		}
		// Who looks all the time keeps a small machine busy, most of all who starts a program for it.
		time.Sleep(max(pause, 3*time.Since(looked)))
		pause = min(pause+pause/4, 250*time.Millisecond)
	}
}

// get reads an address with the admin's token.
func (w *world) get(address string) (status int, body string) {
	w.t.Helper()
	token, _ := os.ReadFile(w.path("data", "admin.token"))
	req, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	resp, err := ownclient.Client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	if err := apicheck.Check(http.MethodGet, address, apicheck.Answer{Status: resp.StatusCode, Header: resp.Header, Body: data}); err != nil {
		w.t.Errorf("%s is not as it is described: %v\n%s", address, err, data)
	}
	return resp.StatusCode, string(data)
}

// getJSON reads from the API, below /api/v1/, and reports whether it is there.
func (w *world) getJSON(path string, query url.Values, out any) bool {
	w.t.Helper()
	status, body := w.get(w.api + "/api/v1/" + path + "?" + query.Encode())
	if status != http.StatusOK {
		return false
	}
	if err := json.Unmarshal([]byte(body), out); err != nil {
		w.t.Fatalf("read %s: %v", path, err)
	}
	return true
}

// cli runs a command of holdfast against the server, as admin.
func (w *world) cli(args ...string) (stdout, stderr string, code int) {
	w.t.Helper()
	return w.cliAs(filepath.Join("data", "admin.token"), args...)
}

// cliAs is cli with the token in a file of the world's.
func (w *world) cliAs(tokenFile string, args ...string) (stdout, stderr string, code int) {
	w.t.Helper()
	token, err := os.ReadFile(w.path(tokenFile))
	if err != nil {
		w.t.Fatal(err)
	}
	var out, errs bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = w.dir, &out, &errs
	cmd.Env = []string{
		"HOME=" + w.dir, "PATH=" + os.Getenv("PATH"), "GOGC=" + os.Getenv("GOGC"), // it lives for a moment
		"HOLDFAST_SERVER=" + w.api, "HOLDFAST_TOKEN=" + strings.TrimSpace(string(token)),
	}
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// logBuffer keeps what the servers of a world print.
type logBuffer struct {
	mu   sync.Mutex
	b    bytes.Buffer
	from int // where the present server's begins
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) startAnew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.b.Len() > 0 {
		l.b.WriteString("--- started again\n")
	}
	l.from = l.b.Len()
}

func (l *logBuffer) current() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.b.Bytes()[l.from:])
}

func (l *logBuffer) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
