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
// is prepared for other runs, to swap the plan, to look at the agent. It finds
// none of that, and is dead when the run ends.
func TestCodeInAPlanStaysInItsSandbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	secret := filepath.Join(w.dir, "private")
	if err := os.WriteFile(secret, []byte("stolen"), 0o644); err != nil { // everybody may read it
		t.Fatal(err)
	}
	daemon, loot := w.witness("daemon"), w.witness("loot")
	w.badEngine("plan", fmt.Sprintf(`umask 0
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
ls /proc/self/fd | tr '\n' ' ' | sed 's/^/descriptors /' >>%[3]s
echo >>%[3]s`, daemon, secret, loot, w.path("data")))
	w.start()
	pr := w.fleet().open(cluster("alpha", "nodes: 1"))
	pr.untilPlanned("1 to create")
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
	for _, bad := range []string{"stolen", "poisoned", "sees the agent", "sees " + w.path("data") + "/k"} {
		if bytes.Contains(said, []byte(bad)) {
			t.Errorf("the plan came home with:\n%s", said)
			break
		}
	}
	if !strings.Contains(string(said), "descriptors 0 1 2 3") || strings.Contains(string(said), "descriptors 0 1 2 3 4") { // ls has 3 open
		t.Errorf("descriptors of the engine: %s", said)
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
