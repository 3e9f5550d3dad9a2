package runner_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/realengine"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner"
)

// lab executes runs of one cluster with a real engine, whose starts it counts,
// over an agent and a server: the cluster's state is in Holdfast's own backend
// unless its code says otherwise.
type lab struct {
	t      *testing.T
	server *fakeServer
	calls  string // file with a line for each start of the engine
	world  string // folder that providers make things in
	work   string // the executor's folder, where a test looks at it
	engine string // its name
	bin    string // folder with the engine
	ours   bool   // the state is in Holdfast's own backend
	disk   *syncs // the agent's
}

func newLab(t *testing.T, providers ...string) *lab {
	t.Helper()
	return newScriptLab(t, `exec "$engine" "$@"`, providers...)
}

// newScriptLab is a lab with a shell script in the engine's place, as in scriptEngine, in
// which WORLD is the lab's world.
func newScriptLab(t *testing.T, script string, providers ...string) *lab {
	t.Helper()
	l := &lab{t: t, server: newFakeServer(t), calls: filepath.Join(t.TempDir(), "calls"), world: t.TempDir(), ours: true, disk: &syncs{}}
	bin, name := scriptEngine(t, fmt.Sprintf("echo \"$*\" >>%q\n", l.calls), strings.ReplaceAll(script, "WORLD", l.world))
	l.engine, l.bin = name, bin
	e, _ := newExecutor(t, func(o *runner.ExecutorOptions) {
		useEngine(o, bin)
		if len(providers) > 0 {
			o.Engines.CLIConfigFile = providerMirror(t, providers...)
		}
	})
	l.server.answer = l.stored
	_, _ = startAgentOn(t, l.disk, runner.AgentOptions{Server: runner.Server{URL: l.server.url}, Dir: t.TempDir(), Executor: e})
	return l
}

// scriptEngine returns a folder with a shell script in the engine's place, and the
// engine's name. In the script $engine is the real engine, "$@" its arguments. What begins
// it is executed for the version, too, which the engine is asked for once for all scripts.
func scriptEngine(t *testing.T, begin, script string) (bin, name string) {
	t.Helper()
	dir, name := realEngine(t)
	engine := filepath.Join(dir, name)
	version, err := realengine.Answer(engine)
	if err != nil {
		t.Fatal(err)
	}
	bin = t.TempDir()
	text := fmt.Sprintf("#!/bin/sh\nengine=%q\n%s%s%s\n", engine, begin, version, script)
	if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return bin, name
}

// useEngine gives an executor the engine in a folder, and none of those on PATH.
func useEngine(o *runner.ExecutorOptions, bin string) {
	o.Engines.Dirs = []string{bin}
	o.Engines.Env["PATH"] = realengine.BarePath("sh", "cat", "sleep", "touch", "git", "ssh")
}

// newRealExecutor returns an Executor with the real engine, which starts it for runs only.
func newRealExecutor(t *testing.T) (*runner.Executor, string) {
	t.Helper()
	bin, _ := scriptEngine(t, "", `exec "$engine" "$@"`)
	return newExecutor(t, func(o *runner.ExecutorOptions) { useEngine(o, bin) })
}

// stored answers for the artefacts of former runs.
func (l *lab) stored(w http.ResponseWriter, r *http.Request) bool {
	run, artefact, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/agent/v1/runs/"), "/artefacts/")
	if !ok || r.Method != http.MethodGet {
		return false
	}
	l.server.get(w, run+"/"+artefact)
	return true
}

// run executes a run of the root module in files, in which WORLD stands for the
// lab's world, and returns its result and how often the engine was started for
// which command.
func (l *lab) run(id string, kind holdfast.RunKind, files map[string]string, change func(*protocol.Assignment)) (protocol.Result, map[string]int) {
	l.t.Helper()
	before := len(l.started())
	l.assign(id, kind, files, change)
	result := l.server.result(l.t, id)
	starts := map[string]int{}
	for _, call := range l.started()[before:] {
		command, _, _ := strings.Cut(call, " ")
		starts[command]++
	}
	delete(starts, "version")
	return result, starts
}

// assign lets a run begin.
func (l *lab) assign(id string, kind holdfast.RunKind, files map[string]string, change func(*protocol.Assignment)) {
	l.t.Helper()
	filled := map[string]string{}
	for name, text := range files {
		filled[name] = strings.ReplaceAll(text, "WORLD", l.world)
	}
	a, settings := engineAssignment(id, kind), assignment(id, kind)
	a.Token, a.Lease, a.Deadline, a.StateLocation = settings.Token, settings.Lease, settings.Deadline, settings.StateLocation
	a.Engine, a.OwnState = holdfast.EngineRef{Name: l.engine}, l.ours
	a.Bundle = holdfast.DigestOf([]byte(id))
	if change != nil {
		change(&a)
	}
	l.server.set(func() { l.server.objects[string(a.Bundle)] = tarball(filled) })
	l.server.assign(a)
}

func (l *lab) started() []string {
	data, _ := os.ReadFile(l.calls)
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// in has the lab report to a test below its own until that one ends.
func (l *lab) in(t *testing.T) {
	t.Helper()
	above := l.t
	l.t = t
	t.Cleanup(func() { l.t = above })
}

// want stops the test unless the run ended so.
func (l *lab) want(got protocol.Result, id string, status holdfast.RunStatus, reason holdfast.Reason) {
	l.t.Helper()
	if got.Status != status || got.Reason != reason {
		l.t.Fatalf("%s: got %s (%s: %s), want %s (%s)\nfailure: %+v\nlog:\n%s", id, got.Status, got.Reason, got.Detail, status, reason,
			got.Failure, l.log(id))
	}
}

// apply plans and applies.
func (l *lab) apply(id string, files map[string]string) {
	l.t.Helper()
	planned, _ := l.run(id+"-plan", holdfast.RunPlan, files, nil)
	l.want(planned, id+"-plan", holdfast.RunPlanned, "")
	applied, _ := l.run(id, holdfast.RunApply, files, func(a *protocol.Assignment) { a.Reviews = review(id+"-plan", planned) })
	l.want(applied, id, holdfast.RunApplied, "")
}

func (l *lab) log(id string) string {
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	return string(l.server.logs[id])
}

// artefact decodes an artefact of a run and reports whether there is one.
func (l *lab) artefact(id, name string, into any) bool {
	l.t.Helper()
	l.server.mu.Lock()
	data, ok := l.server.objects[id+"/"+name]
	l.server.mu.Unlock()
	if ok {
		if err := json.Unmarshal(data, into); err != nil {
			l.t.Fatalf("artefact %s of %s: %v", name, id, err)
		}
	}
	return ok
}

func (l *lab) plan(id string) holdfast.Plan {
	l.t.Helper()
	l.server.mu.Lock()
	document, info := l.server.objects[id+"/"+protocol.ArtefactDocument], l.server.objects[id+"/"+protocol.ArtefactInfo]
	l.server.mu.Unlock()
	plan, err := shownPlan(document, info)
	if err != nil {
		l.t.Fatalf("%s made no plan: %v\n%s", id, err, l.log(id))
	}
	return plan
}

// resources returns a line for each resource that a run has listed; nil if it
// has listed none at all.
func (l *lab) resources(id string) []string {
	l.t.Helper()
	var list []holdfast.Resource
	if !l.artefact(id, protocol.ArtefactResources, &list) {
		return nil
	}
	lines := []string{}
	for _, r := range list {
		provider := strings.Replace(r.Provider, "registry.opentofu.org/", "registry.terraform.io/", 1)
		lines = append(lines, strings.Join([]string{r.Address, r.Type, provider, uuid.ReplaceAllString(r.ID, "UUID")}, " "))
	}
	if !slices.IsSorted(lines) {
		l.t.Errorf("not sorted: %v", lines)
	}
	return lines
}

// edit changes an object of the cloud behind the engine's back.
func (l *lab) edit(name string, change func(object map[string]any)) {
	l.t.Helper()
	file := filepath.Join(l.world, name+".json")
	data, err := os.ReadFile(file)
	if err != nil {
		l.t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		l.t.Fatal(err)
	}
	change(object)
	if data, err = json.Marshal(object); err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// put makes a file in the world.
func (l *lab) put(name, text string) {
	l.t.Helper()
	if err := os.WriteFile(filepath.Join(l.world, name), []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) remove(name string) {
	l.t.Helper()
	if err := os.Remove(filepath.Join(l.world, name)); err != nil {
		l.t.Fatal(err)
	}
}

var uuid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
