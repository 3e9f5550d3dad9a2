package e2e_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// What a plan executes detaches itself twice, and means to stay: to change what
// is prepared for other runs, to swap the plan, to look at the agent, to write the
// state. It finds none of that, and is dead when the run ends; a plan of other code
// is not taken for this cluster's. One that takes too much ends with a cause that
// says so. What is applied is what was shown.
func TestCodeInAPlanStaysInItsSandbox(t *testing.T) {
	t.Parallel()
	memory := "256MiB"
	if hasRaceDetector() { // the first process of a sandbox is the binary, and the detector takes more
		memory = "1GiB"
	}
	w := newWorld(t, settings{"runs.retries": 0, "runs.limits.overrides": []any{
		map[string]any{"cluster": "fat", "memory": memory}, map[string]any{"cluster": "many", "processes": 64},
	}})
	secret := filepath.Join(w.dir, "private")
	if err := os.WriteFile(secret, []byte("stolen"), 0o644); err != nil { // everybody may read it
		t.Fatal(err)
	}
	daemon, loot := w.witness("daemon"), w.witness("loot")
	w.badEngine("plan", fmt.Sprintf(`umask 0
case $(head -n 1 main.tf) in
"# alpha")
(setsid sh -c 'while :; do echo alive >>%[1]s; cp /dev/null plan.bin; cp /dev/null ../plan.bin; sleep 0.05; done' </dev/null >/dev/null 2>&1 &)
until [ -s %[1]s ]; do sleep 0.05; done
cat %[2]s >>%[3]s 2>/dev/null
for f in %[4]s/*; do echo "sees $f" >>%[3]s; done 2>/dev/null
for p in .terraform/modules/* .terraform/providers; do
	real=$(readlink "$p") && touch "$real/poison" 2>/dev/null && echo "poisoned $real" >>%[3]s
done
for d in /proc/[0-9]*; do
	tr '\0' ' ' <$d/cmdline 2>/dev/null | grep -q 'token-file' && echo "sees the agent" >>%[3]s
done
echo '{"version":4,"terraform_version":"1.0.0","serial":99,"lineage":"forged","outputs":{},"resources":[]}' >"$HOME/forged"
$engine state push -force "$HOME/forged" >>"$HOME/pushed" 2>&1 && echo "pushed a state" >>%[3]s
ls /proc/self/fd | tr '\n' ' ' | sed 's/^/descriptors /' >>%[3]s
echo >>%[3]s ;;
"# swap")
cp main.tf "$HOME/keep"
printf 'resource "terraform_data" "node" {\n  provisioner "local-exec" { command = "true" }\n}\n' >main.tf
$engine "$@" >/dev/null
cp /workspace/plan.bin "$HOME/plan.bin"
cp "$HOME/keep" main.tf
$engine "$@"
cp "$HOME/plan.bin" /workspace/plan.bin
exit 2 ;;
"# vars")
$engine "$@" -var nodes=7
exit 2 ;;
"# fat")
head -c 2000000000 /dev/zero | tail -c 1900000000 >"$HOME/much" || exit 1
[ -s "$HOME/much" ] || exit 1 ;;
"# many")
while sleep 1000 & do :; done
exit 2 ;;
esac`, daemon, secret, loot, w.path("data")))
	w.start()
	pr := w.fleet().open(cluster("alpha", "nodes: 1"))
	pr.untilPlanned("1 to create")
	greedy := w.fleet().open(join(cluster("fat", "nodes: 1"), cluster("many", "nodes: 1"), cluster("swap", "nodes: 1"), cluster("vars", "nodes: 1")))
	w.until("nothing of the plan lives", func() (bool, string) {
		if run := w.newest("alpha", holdfast.RunPlan); run.Status != holdfast.RunPlanned {
			return false, string(run.Status)
		}
		return len(w.mention(daemon)) == 0, fmt.Sprint(w.mention(daemon))
	})
	said, err := os.ReadFile(loot)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"stolen", "poisoned", "sees the agent", "sees " + w.path("data") + "/k", "pushed"} {
		if bytes.Contains(said, []byte(bad)) {
			t.Errorf("the plan came home with:\n%s", said)
			break
		}
	}
	if !strings.Contains(string(said), "descriptors 0 1 2 3") || strings.Contains(string(said), "descriptors 0 1 2 3 4") { // ls has 3 open
		t.Errorf("descriptors of the engine: %s", said)
	}
	pr.merge()
	pr.untilApplied("1 created")
	if rec := w.record("alpha"); rec.StateSerial >= 99 {
		t.Errorf("the state has serial %d", rec.StateSerial)
	}

	w.fleet().untilStatus(greedy.head, holdfast.ContextPlan, holdfast.StatusFailure)
	for name, words := range map[string][2]string{
		"fat":  {"OutOfMemory", "hit its limit of memory"},
		"many": {"TooManyProcesses", "hit its limit of processes"},
	} {
		run := w.untilRun(name, holdfast.RunPlan, holdfast.RunErrored)
		if string(run.Reason) != words[0] {
			t.Errorf("%s ended for %s: %+v\n%s", name, run.Reason, run.Failure, w.logOf(run.ID))
		}
		greedy.untilComment(words[1], "runs.limits.")
		w.do("describe run "+run.ID, words[0], words[1], "runs.limits.")
	}
	if run := w.untilRun("vars", holdfast.RunPlan, holdfast.RunErrored); run.Reason != "UntrustedPlan" {
		t.Errorf("vars ended for %s: %+v", run.Reason, run.Failure)
	}
	greedy.untilComment(`another value of variable "nodes" than the run was given`)
	if os.Getuid() == 0 { // elsewhere the path of the workspace is another one
		if run := w.untilRun("swap", holdfast.RunPlan, holdfast.RunErrored); run.Reason != "UntrustedPlan" {
			t.Errorf("swap ended for %s: %+v", run.Reason, run.Failure)
		}
		greedy.untilComment("another infra/swap/main.tf than the repository")
	}
}

// What the plan of an apply executes detaches itself, makes a plan of other code, and
// waits for the apply to begin, to put that in place of the one that was compared. By
// then it is dead: what was shown is applied.
func TestPlanFileOfAnApplyIsNotSwapped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{"runs.retries": 0})
	ready, begun, swapped, executed := w.witness("ready"), w.witness("begun"), w.witness("swapped"), w.witness("executed")
	w.badEngine(`plan -o "$1" = apply`, fmt.Sprintf(`umask 0
if [ "$1" = apply ]; then
	echo begun >>%[2]s
	for i in 1 2 3 4 5 6 7 8 9 10; do [ -s %[3]s ] || sleep 0.1; done
	exec $engine "$@"
fi
for a in "$@"; do case $a in -out=*) out=${a#-out=} ;; esac; done
cp main.tf "$HOME/keep"
printf 'resource "terraform_data" "node" {\n  count = 1\n  provisioner "local-exec" { command = "echo yes >>%[4]s" }\n}\nvariable "nodes" {}\n' >main.tf
$engine "$@" >"$HOME/said" 2>&1 || [ $? = 2 ] || exit 1
cp "$out" "$HOME/other" && cp "$HOME/keep" main.tf
n=$(cat %[1]s 2>/dev/null | wc -l)
(out=$out setsid sh -c 'echo ready >>%[1]s; until [ -s %[2]s ]; do sleep 0.02; done; cp "$HOME/other" "$out" && echo yes >>%[3]s' </dev/null >/dev/null 2>&1 &)
until [ "$(cat %[1]s 2>/dev/null | wc -l)" -gt "$n" ]; do sleep 0.02; done`, ready, begun, swapped, executed))
	w.start()
	pr := w.fleet().open(cluster("alpha", "nodes: 1"))
	pr.untilPlanned("1 to create")
	pr.merge()
	pr.untilApplied("1 created")
	if said, err := os.ReadFile(ready); err != nil || bytes.Count(said, []byte("ready")) != 2 {
		t.Fatalf("what was to swap the plan was there %q, want once in the plan and once in the apply: %v", said, err)
	}
	for what, file := range map[string]string{"swapped": swapped, "executed": executed} {
		if said, err := os.ReadFile(file); err == nil {
			t.Errorf("another plan was %s: %q", what, said)
		}
	}
	if left := w.mention(begun); len(left) > 0 {
		t.Errorf("there lives %v", left)
	}
}

// mention returns the processes whose command lines have a word in them.
func (w *world) mention(word string) []string {
	var list []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && bytes.Contains(data, []byte(word)) {
			list = append(list, file)
		}
	}
	return list
}
