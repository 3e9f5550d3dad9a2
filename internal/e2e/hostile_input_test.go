package e2e_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/testenv/gitserver"
)

// Documents and modules that mean harm are faults of their own files, and the
// cluster beside them is planned.
func TestHostileDocumentsAreFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	escape := func(name, where string) files {
		return files{"clusters/" + name + ".yaml": strings.Replace(
			document(name)["clusters/"+name+".yaml"], "infra/"+name, where, 1)}
	}
	pr := w.fleet().open(join(
		cluster("sane", "nodes: 1"),
		files{"clusters/bomb.yaml": yamlBomb()},
		escape("dots", "../outside"),
		escape("deep-dots", "infra/../../outside"),
		escape("absolute", "/etc"),
		escape("linked", "infra/linked"),
		files{"infra/linked": gitserver.Symlink + "../../../etc"},
		document("holey"),
		moduleFile("holey", `output "passwd" { value = file("${path.module}/passwd") }`),
		files{"infra/holey/passwd": gitserver.Symlink + "/etc/passwd"},
		files{"clusters/link.yaml": gitserver.Symlink + "/etc/passwd"},
	))
	w.fleet().untilStatus(pr.head, holdfast.ContextPlan, holdfast.StatusFailure)
	pr.untilComment("clusters/bomb.yaml", "clusters/dots.yaml", "clusters/deep-dots.yaml", "clusters/absolute.yaml",
		"clusters/linked.yaml", "infra/holey/passwd", "clusters/link.yaml", "terraform_data.node[0]")
	if strings.Contains(pr.comment(), "root:x:0") {
		t.Error("the comment shows a file of the machine")
	}
	if calls := strings.Join(w.engineCalls(), ","); strings.Contains(calls, "holey") || strings.Contains(calls, "linked") {
		t.Errorf("engines were called for what leads out of the tree: %s", calls)
	}
}

// yamlBomb is a small document of a billion nodes.
func yamlBomb() string {
	text := "apiVersion: holdfast.dev/v1\nkind: Cluster\nmetadata: {name: bomb}\nspec:\n" +
		"  project: shop\n  environment: production\n  module: {path: infra/sane}\n  variables:\n    a0: &a0 [lol, lol, lol]\n"
	for i := range 12 {
		n := strconv.Itoa(i)
		text += "    a" + strconv.Itoa(i+1) + ": &a" + strconv.Itoa(i+1) + " [" + strings.Repeat("*a"+n+", ", 9) + "*a" + n + "]\n"
	}
	return text
}

// A cluster file of 100 MB is refused by its size, and never held in memory.
func TestHugeClusterFileIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.env = []string{"GOGC=100"} // that of a server: tests may be run with another one
	w.start()
	huge := "apiVersion: holdfast.dev/v1\nkind: Cluster\n" + strings.Repeat("# all work and no play\n", 100<<20/23)
	pr := w.fleet().open(join(cluster("sane", "nodes: 1"), files{"clusters/huge.yaml": huge}))
	w.fleet().untilStatus(pr.head, holdfast.ContextPlan, holdfast.StatusFailure)
	pr.untilComment("clusters/huge.yaml", "terraform_data.node[0]")
	if peak := peakMemory(t, w.server.Process.Pid); peak > 400<<20 && !hasRaceDetector() {
		t.Errorf("the server used %d MB for a file that it refuses", peak>>20)
	}
}

// peakMemory is the most memory that a process has used, in bytes.
func peakMemory(t *testing.T, pid int) int64 {
	t.Helper()
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0 // not Linux
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	return 0
}
