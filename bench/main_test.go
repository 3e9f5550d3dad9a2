package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/templates"
)

func TestFiguresAreKeptAndShown(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "results.json")
	figures := []figure{
		figure{Name: "pull request", N: 10, Value: 1.23456, Unit: "s"}.against(2.46912),
		{Name: "memory", Value: 61.04, Unit: "MiB"},
		figure{Name: "fleet: push", N: 100, Value: 4, Unit: "ms"}.against(8),
		{Name: "fleet: start", N: 100, Value: 0.25, Unit: "s"},
		figure{Name: "fleet: push", N: 1000, Value: 5, Unit: "ms"}.against(10),
		{Name: "drift: wait", N: 1000, Unit: "s"},
	}
	if err := writeFigures(path, figures); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run([]string{"-out", path, "-markdown"}, &out); err != nil {
		t.Fatal(err)
	}
	want := `| What | N | Measured | Floor | Ratio |
|---|--:|--:|--:|--:|
| pull request | 10 | 1.23 s | 2.47 s | 0.50 |
| memory |  | 61.0 MiB |  |  |

| Of a fleet of | 100 | 1000 | Growth | Floor | Ratio |
|---|--:|--:|--:|--:|--:|
| push | 4.00 ms | 5.00 ms | × 1.25 | 10.0 ms | 0.50 |
| start | 0.25 s |  |  |  |  |
| drift: wait |  | 0.00 s |  |  |  |
`
	if out.String() != want {
		t.Errorf("table:\n%swant:\n%s", &out, want)
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		values []int
		want   int
	}{{[]int{7}, 7}, {[]int{3, 1}, 1}, {[]int{9, 1, 5}, 5}} {
		if got := median(test.values); got != test.want {
			t.Errorf("median of %v is %d, want %d", test.values, got, test.want)
		}
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"-holdfast", "/nowhere/holdfast"},
		{"-holdfast", "main.go", "-sizes", "1,many"},
		{"-holdfast", "main.go", "-sizes", "0"},
		{"-holdfast", "main.go", "-only", "nothing"},
		{"-holdfast", "main.go", "-fleets", "100,"},
		{"-markdown", "-out", "/nowhere/results.json"},
	} {
		if err := run(args, &strings.Builder{}); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}

func TestFleetsAreFleets(t *testing.T) {
	t.Parallel()
	members := fleet(250)
	files := fleetFiles(members)
	seen := make(map[string]bool)
	for _, m := range members {
		docs, faults := templates.ParseClusters(m.path(), []byte(files[m.path()]))
		if len(docs) != 1 || len(faults) > 0 || docs[0].Cluster.Name != m.name || docs[0].Cluster.Project != m.project || seen[m.name] {
			t.Fatalf("%s has %d documents, faults: %v", m.path(), len(docs), faults)
		}
		seen[m.name] = true
		if m.document(1) == m.document(0) {
			t.Errorf("an edit of %s changes nothing", m.name)
		}
	}
}

func TestDecisionsAreHeard(t *testing.T) {
	t.Parallel()
	log := &logBuffer{}
	d := watchDecisions(log)
	decided := d.await("b")
	for _, text := range []string{
		"time=1 msg=decided cluster=a pull_", "request=\"\"\ntime=2 msg=\"run was claimed\" cluster=c\n", "msg=decided cluster=b x\nmsg=decided cluster=a y\n",
	} {
		if _, err := log.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-decided:
	default:
		t.Error("the decision about b was not heard")
	}
	if n := d.distinct(); n != 2 {
		t.Errorf("%d clusters were decided about, want 2", n)
	}
}
