package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/testenv/realengine"
)

// The engine is a real one behind a small script, which notes every call and
// can be made to wait before it starts: a plan that is being made, or an apply
// that is about to begin, lasts as long as a story needs. An engine takes long to
// start, so what every agent asks for first, the version, has been asked for once.

const engineScript = `#!/bin/sh
%[3]s
export GOGC=400 # an engine lives for a moment: collecting garbage is a fifth of its work
# The first line of a root module's main.tf names its cluster, that of a rendered one's cluster.tf does.
name= first=
[ ! -r main.tf ] || IFS= read -r first <main.tf
case $first in
"# "*[!a-z0-9-]*) ;;
"# "*) name=${first#"# "} ;;
esac
if [ -z "$name" ] && [ -r cluster.tf ]; then
	IFS= read -r first <cluster.tf
	case $first in
	*" for cluster "*:*) name=${first##*" for cluster "} name=${name%%%%:*} ;;
	esac
fi
[ "$1" = version ] || echo "$1 $name" >>%[1]s/calls
held() {
	while [ -e %[1]s/hold/"$1" ] || [ -e %[1]s/hold/"$1-$name" ]; do
		[ -e %[1]s/hold ] || exit 1
		touch %[1]s/held/"$1-$name" 2>/dev/null
		sleep 0.05
	done
}
held "$1"
if [ -e %[1]s/fail/"$1-$name" ]; then
	cat %[1]s/fail/"$1-$name" >&2
	exit 1
fi
if [ -e %[1]s/hold/"after-$1-$name" ]; then
	%[2]s "$@"
	code=$?
	held "after-$1"
	exit $code
fi
exec %[2]s "$@"
`

// realEngine returns where an installed engine can be executed by others and in a
// sandbox, which sees of this machine what the system has.
func realEngine(name string) (string, error) {
	real, err := exec.LookPath(name)
	if err != nil || strings.HasPrefix(real, "/usr/") || strings.HasPrefix(real, "/opt/") {
		return real, err
	}
	return copiedEngine(name, real)
}

// engineCopies is the folder of engines that a sandbox would not see elsewhere.
func engineCopies() string { return filepath.Join(filepath.Dir(binary), "engines") }

var engineCopy sync.Mutex //nolint:gochecknoglobals // of all tests

func copiedEngine(name, real string) (string, error) {
	engineCopy.Lock()
	defer engineCopy.Unlock()
	to := filepath.Join(engineCopies(), name)
	if _, err := os.Stat(to); err == nil {
		return to, nil
	}
	data, err := os.ReadFile(real)
	if err == nil {
		err = os.MkdirAll(engineCopies(), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, data, 0o755)
	}
	return to, err
}

// serverPath is the PATH of servers: that of the tests without the folders of engines.
// A world has its own engines, and each agent would start those on PATH as well, to
// learn their versions.
var serverPath = sync.OnceValue(func() string { return realengine.BarePath("sh", "sleep", "touch", "git", "ssh") })

// makeEngine puts the script in front of the installed engines. Without one a
// test is skipped on a laptop and fails in CI.
func (w *world) makeEngine() {
	w.t.Helper()
	found := false
	for _, name := range []string{"tofu", "terraform"} {
		real, err := realEngine(name)
		if err != nil {
			continue
		}
		found = true
		answer, err := realengine.Answer(real)
		if err != nil {
			w.t.Fatal(err)
		}
		w.write("engine/"+name, fmt.Sprintf(engineScript, w.path("engine"), real, answer), 0o755)
	}
	if _, err := os.Stat(engineCopies()); err == nil {
		w.set(settings{"sandbox.paths.readOnly": []string{engineCopies()}})
	}
	if !found && os.Getenv("CI") == "true" {
		w.t.Fatal("neither terraform nor tofu is on PATH")
	} else if !found {
		w.t.Skip("neither terraform nor tofu is on PATH")
	}
	for name, mode := range map[string]os.FileMode{"hold": 0o755, "held": 0o777} {
		err := os.Mkdir(w.path("engine", name), mode)
		if err == nil {
			err = os.Chmod(w.path("engine", name), mode)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	w.write("engine/calls", "", 0o666)
}

// hold makes the engine wait before a command (init, plan, show, apply), for
// one cluster or, with an empty name, for all, and at the end of one that is named
// after-apply, for one cluster; release lets it continue.
func (w *world) hold(command, cluster string) {
	w.t.Helper()
	w.write("engine/hold/"+heldName(command, cluster), "", 0o644)
}

func (w *world) release(command, cluster string) {
	w.t.Helper()
	for _, dir := range []string{"hold", "held"} {
		err := os.Remove(w.path("engine", dir, heldName(command, cluster)))
		if err != nil && !os.IsNotExist(err) {
			w.t.Fatal(err)
		}
	}
}

func heldName(command, cluster string) string {
	if cluster == "" {
		return command
	}
	return command + "-" + cluster
}

// fail makes the engine fail at a command for a cluster, with those words, until
// it succeeds again.
func (w *world) fail(command, cluster, words string) {
	w.t.Helper()
	w.write("engine/fail/"+heldName(command, cluster), words+"\n", 0o644)
}

func (w *world) succeed(command, cluster string) {
	w.t.Helper()
	if err := os.Remove(w.path("engine", "fail", heldName(command, cluster))); err != nil {
		w.t.Fatal(err)
	}
}

// untilHeld waits until the engine waits before the command for a cluster.
func (w *world) untilHeld(command, cluster string) {
	w.t.Helper()
	w.until("the engine waits before "+command+" of "+cluster, func() (bool, string) {
		_, err := os.Stat(w.path("engine", "held", command+"-"+cluster))
		return err == nil, fmt.Sprint(err)
	})
}

// releaseAll lets every engine continue, for good.
func (w *world) releaseAll() {
	_ = os.RemoveAll(w.path("engine", "hold"))
}

// engineCalls returns what the engine was asked to do, as "plan alpha", in
// order; all commands but version.
func (w *world) engineCalls() []string {
	data, err := os.ReadFile(w.path("engine", "calls"))
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(strings.Split(string(data), "\n"), func(s string) bool { return s == "" })
}

// countCalls returns how often the engine was asked to do something, such as
// "apply alpha", or "apply" for any cluster.
func (w *world) countCalls(call string) int {
	n := 0
	for _, c := range w.engineCalls() {
		if command, _, _ := strings.Cut(c, " "); c == call || command == call {
			n++
		}
	}
	return n
}
