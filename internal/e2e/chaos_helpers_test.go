package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast"
	v1 "github.com/holdfast-dev/holdfast/api/v1"
)

// What is told of crashes happens in the middle of an apply. Its resource runs
// a script that says when it starts and stops, in a file that everybody may
// write to, and lasts until the story opens its gate.

const workModule = `
variable "generation" {
  type = string
}

variable "script" {
  type = string
}

resource "terraform_data" "before" {
  input = var.generation
}

resource "terraform_data" "work" {
  triggers_replace = [var.generation, terraform_data.before.id]

  provisioner "local-exec" {
    command = var.script
  }
}

output "generation" {
  value = terraform_data.before.output
}
`

// worker is a cluster whose apply runs a script, and runs it again whenever the
// generation changes.
func worker(name, generation, script string) files {
	return workerWith(name, generation, script, workModule)
}

func workerWith(name, generation, script, module string) files {
	variables, err := json.Marshal(map[string]string{"generation": generation, "script": script})
	if err != nil {
		panic(err) // strings always marshal
	}
	return join(document(name, "variables: "+string(variables)),
		files{"infra/" + name + "/main.tf": "# " + name + "\n" + module})
}

// witness is a file in a folder that everybody may write to.
func (w *world) witness(name string) string {
	w.t.Helper()
	dir := w.path("witness")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // the agent is another user
		w.t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// gated is a script that writes start into the witness name, waits for that
// name's gate to open, and writes stop. If two of them ever run at once it
// writes overlap: the kernel lets go of the lock when the last of them dies.
func (w *world) gated(name string) string {
	w.t.Helper()
	return fmt.Sprintf(`umask 0; exec 9>>%[1]s.lock; flock -n 9 || echo overlap >>%[1]s; echo start >>%[1]s; `+
		`n=0; while [ ! -e %[1]s.gate ] && [ $n -lt 6000 ]; do sleep 0.05; n=$((n+1)); done; echo stop >>%[1]s`,
		w.witness(name))
}

// timed is gated without a gate: the script lasts for some seconds.
func (w *world) timed(name, seconds string) string {
	w.t.Helper()
	return fmt.Sprintf(`umask 0; exec 9>>%[1]s.lock; flock -n 9 || echo overlap >>%[1]s; echo start >>%[1]s; `+
		`sleep %[2]s; echo stop >>%[1]s`, w.witness(name), seconds)
}

func (w *world) openGate(name string) { w.write("witness/"+name+".gate", "", 0o644) }

// said are the words of a witness so far, such as "start stop".
func (w *world) said(name string) string {
	w.t.Helper()
	data, _ := os.ReadFile(w.witness(name))
	return strings.Join(strings.Fields(string(data)), " ")
}

// untilSaid waits until a witness has said exactly that.
func (w *world) untilSaid(name, words string) {
	w.t.Helper()
	w.until(fmt.Sprintf("%s has said %q", name, words), func() (bool, string) {
		said := w.said(name)
		return said == words, said
	})
}

// newest is a cluster's newest run of that kind, the zero Run if there is none.
func (w *world) newest(name string, kind holdfast.RunKind) v1.Run {
	w.t.Helper()
	for _, run := range w.runs(name) {
		if run.Kind == kind {
			return run
		}
	}
	return v1.Run{}
}

// applies are a cluster's applies, oldest first.
func (w *world) applies(name string) []v1.Run {
	w.t.Helper()
	applies := slices.DeleteFunc(w.runs(name), func(run v1.Run) bool { return run.Kind != holdfast.RunApply })
	slices.Reverse(applies)
	return applies
}

// untilRun waits until a cluster's newest run of that kind has the status.
func (w *world) untilRun(name string, kind holdfast.RunKind, status holdfast.RunStatus) v1.Run {
	w.t.Helper()
	var run v1.Run
	w.until(fmt.Sprintf("the %s of %s is %s", kind, name, status), func() (bool, string) {
		run = w.newest(name, kind)
		return run.Status == status, fmt.Sprintf("%s %s %q %+v", run.Status, run.Reason, run.Detail, run.Failure)
	})
	return run
}

// logOf is what the last attempt of a run has printed.
func (w *world) logOf(run string) string {
	w.t.Helper()
	_, body := w.get(w.api + "/api/v1/runs/" + run + "/log")
	return body
}

// killAgent ends the agent that executes runs of that kind, as kill -9 does, and
// with it its engines.
func (w *world) killAgent(kind holdfast.RunKind) {
	w.t.Helper()
	engines := w.engines() // of all its agents: of those that tests kill, one alone executes something
	if err := syscall.Kill(w.agentPID(kind), syscall.SIGKILL); err != nil {
		w.t.Fatalf("kill the agent: %v", err)
	}
	w.until("its engines have died with it", func() (bool, string) {
		alive := slices.DeleteFunc(engines, func(pid int) bool {
			_, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "exe"))
			return err != nil // also of one that nobody has waited for
		})
		return len(alive) == 0, fmt.Sprint(alive)
	})
}

// engines are the process ids of the world's engines, without what they started.
func (w *world) engines() []int {
	w.t.Helper()
	var pids []int
	for _, pid := range w.leftBehind() {
		exe, _ := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "exe"))
		line, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		name := filepath.Base(exe)
		engine := strings.HasPrefix(name, "terraform") || strings.HasPrefix(name, "tofu")
		if engine && !strings.Contains(string(line), "-provisioner") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// needRoot is for what only root can play: a laptop's user skips it, CI is root.
func needRoot(w *world) {
	w.t.Helper()
	if os.Getuid() == 0 {
		return
	}
	if os.Getenv("CI") == "true" {
		w.t.Fatal("CI must run the end-to-end tests as root")
	}
	w.t.Skip("only root can start the agent as another user")
}

// crash kills the server. Until the next start nothing minds that there is none.
func (w *world) crash() {
	w.t.Helper()
	w.kill()
	w.exited = nil
}

// terminate asks the server to end, as an init system does, and does not wait.
func (w *world) terminate() {
	w.t.Helper()
	if err := w.server.Process.Signal(syscall.SIGTERM); err != nil {
		w.t.Fatal(err)
	}
}

// ended waits for the end of a server that was asked to, and returns its exit code.
func (w *world) ended() int {
	w.t.Helper()
	select {
	case <-w.exited:
	case <-time.After(patience):
		w.t.Fatal("the server did not end")
	}
	code := w.server.ProcessState.ExitCode()
	w.server, w.exited = nil, nil
	return code
}

// untilLogged waits until the server has logged that.
func (w *world) untilLogged(words string) {
	w.t.Helper()
	w.until(fmt.Sprintf("the server logs %q", words), func() (bool, string) {
		return strings.Contains(w.log.current(), words), "it does not"
	})
}

// newestOnBranch is a cluster's newest run that is not a pull request's, and no job
// that only releases a lock or saves a state.
func (w *world) newestOnBranch(name string) v1.Run {
	for _, run := range w.runs(name) {
		if run.PullRequest.IsZero() && run.Kind.Plans() {
			return run
		}
	}
	return v1.Run{}
}

// release is the command line that the answer about a lock ends with.
var release = regexp.MustCompile(`release it: (holdfast unlock [^(\n]+)`)
