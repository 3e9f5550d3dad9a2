package kubetest_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/ownclient"
)

// world is a server with a repository whose runs are Jobs. It ends with its test.
type world struct {
	t      *testing.T
	space  space
	dir    string
	fleet  string // a working copy, and what the server watches
	agents string // address of its listener for agents
	engine string // a folder with tofu or terraform
	public string // lines of its public listener and issuer
	jobs   string // further settings of its Jobs

	server *exec.Cmd // nil: it does not run
	log    *logBuffer
	api    string
}

// logBuffer is the server's log. It is safe for concurrent use.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// newWorld makes a repository with a runner for everything, and starts a server that watches
// it. More are further lines of holdfast.yaml, and of the runner's job.
func newWorld(t *testing.T, name, image, job string, more ...string) *world {
	t.Helper()
	need(t)
	return newWorldOf(t, newSpace(t, name), func(w *world) string {
		w.write("token", w.space.token)
		return fmt.Sprintf(`  type: kubernetes
  kubernetes:
    server:
      url: %s
      certificateAuthority: |
        %s
      token: {secret: east}
  job:
    namespace: %s
    image: holdfast:%s
    planServiceAccount: holdfast-plan
    applyServiceAccount: holdfast-apply
%s`, api.URL, strings.ReplaceAll(strings.TrimSpace(string(api.CA)), "\n", "\n        "), name, image, job)
	}, more...)
}

// newWorldOf is newWorld with a runner east of any spec.
func newWorldOf(t *testing.T, s space, spec func(*world) string, more ...string) *world {
	t.Helper()
	work, err := os.MkdirTemp("", "holdfast-kubetest")
	if err == nil {
		err = os.Chmod(work, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, space: s, dir: work, fleet: filepath.Join(work, "fleet"), log: &logBuffer{}}
	t.Cleanup(w.end)
	if w.engine, err = w.tofu(); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.agents = l.Addr().String()
	_ = l.Close()
	w.write("fleet/runners/east.yaml", `apiVersion: holdfast.dev/v1
kind: Runner
metadata: {name: east}
spec:
`+spec(w)+`---
apiVersion: holdfast.dev/v1
kind: RunnerRule
metadata: {name: all}
spec: {runner: east}
`)
	w.write("holdfast.yaml", fmt.Sprintf(`dataDir: data
server:
  %[5]s
  api: {address: "127.0.0.1:0"}
  agents: {address: %[1]q, url: "http://%[1]s"}
  grace: 5s
agent: {off: true}
secrets: {east: {file: token}}
repositories:
  - name: fleet
    url: %[2]s
    branch: main
    forge: local
    clusters: ["clusters/**"]
    allow:
      - {kinds: [Cluster], paths: ["clusters/**"]}
      - {kinds: [Runner, RunnerRule], paths: ["runners/**"], runners: ["*"]}
runs: {retryDelay: 200ms, lease: 10s, max: 20}
jobs: {grace: 5s, flags: ["--engine-dir=%[3]s", "--download=false"]%[6]s}
%[4]s
`, w.agents, w.fleet, w.engine, strings.Join(more, "\n"), cmp.Or(w.public, `public: {address: ""}`), w.jobs))
	w.git("init", "-q", "-b", "main", ".")
	w.git("config", "user.name", "You")
	w.git("config", "user.email", "you@example.com")
	w.commit("A runner")
	w.start()
	return w
}

// tofu returns the folder of an engine.
func (w *world) tofu() (string, error) {
	for _, name := range []string{"tofu", "terraform"} {
		if path, err := exec.LookPath(name); err == nil {
			return filepath.Dir(path), nil
		}
	}
	return "", errors.New("there is no engine on PATH")
}

func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) git(args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = w.fleet
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (w *world) commit(subject string) {
	w.t.Helper()
	w.git("add", "-A")
	w.git("commit", "-q", "-m", subject)
}

// cluster writes a cluster with its own module.
func (w *world) cluster(name, code string) {
	w.t.Helper()
	w.write("fleet/infra/"+name+"/main.tf", code)
	w.write("fleet/clusters/"+name+".yaml", fmt.Sprintf(`apiVersion: holdfast.dev/v1
kind: Cluster
metadata: {name: %[1]s}
spec: {project: payments, environment: production, module: {path: infra/%[1]s}}
`, name))
}

var listening = regexp.MustCompile(`msg="server is listening" webhooks=\S* api=(\S+)`)

func (w *world) start() {
	w.t.Helper()
	before := len(w.log.String())
	w.server = exec.Command(filepath.Join(dir, "image", "holdfast"), "serve", "--config", filepath.Join(w.dir, "holdfast.yaml"))
	w.server.Dir, w.server.Stdout, w.server.Stderr = w.dir, w.log, w.log
	if err := w.server.Start(); err != nil {
		w.t.Fatal(err)
	}
	until(w.t, "the server is ready", func() (bool, string) {
		text := w.log.String()[before:]
		found := listening.FindStringSubmatch(text)
		if found == nil {
			return false, text
		}
		w.api = "http://" + found[1]
		answer, err := ownclient.Client.Get(w.api + "/readyz")
		if err != nil {
			return false, err.Error()
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK, answer.Status
	})
}

// kill ends the server at once.
func (w *world) kill(sig syscall.Signal) {
	if w.server != nil {
		_ = w.server.Process.Signal(sig)
		_ = w.server.Wait()
		w.server = nil
	}
}

func (w *world) end() {
	w.kill(syscall.SIGTERM)
	if w.t.Failed() {
		text := w.log.String()
		w.t.Logf("the server's log:\n%s", text[max(0, len(text)-16<<10):])
	}
	_ = exec.Command("chmod", "-R", "u+w", w.dir).Run() // prepared providers are read-only
	_ = os.RemoveAll(w.dir)
}

// holdfast calls the command line.
func (w *world) holdfast(args ...string) (string, error) {
	token, err := os.ReadFile(filepath.Join(w.dir, "data", "admin.token"))
	if err != nil {
		return "", err
	}
	cmd := exec.Command(filepath.Join(dir, "image", "holdfast"), args...)
	cmd.Env = append(os.Environ(), "HOLDFAST_SERVER="+w.api, "HOLDFAST_TOKEN="+strings.TrimSpace(string(token)))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// runs are those of a cluster and kind, the newest first.
func (w *world) runs(cluster string, kind holdfast.RunKind) ([]holdfast.Run, string) {
	out, err := w.holdfast("get", "runs", "--cluster", cluster, "-o", "json")
	if err != nil {
		return nil, out
	}
	var list []holdfast.Run
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, err.Error() + ": " + out
	}
	var some []holdfast.Run
	for _, run := range list {
		if run.Kind == kind {
			some = append(some, run)
		}
	}
	return some, out
}

// untilRun waits until the newest run of a cluster and kind is as it should be.
func (w *world) untilRun(cluster string, kind holdfast.RunKind, what string, is func(holdfast.Run) bool) holdfast.Run {
	w.t.Helper()
	var found holdfast.Run
	until(w.t, what, func() (bool, string) {
		runs, text := w.runs(cluster, kind)
		if len(runs) == 0 {
			return false, text
		}
		found = runs[0]
		return is(found), fmt.Sprintf("%s %s %s %s %s attempt %d", found.ID, found.Status, found.Reason, found.Detail, found.Step, found.Attempt)
	})
	return found
}

func is(status holdfast.RunStatus) func(holdfast.Run) bool {
	return func(run holdfast.Run) bool { return run.Status == status }
}
