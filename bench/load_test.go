package main

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// recorded reads testdata/load.txt: what some files of /proc said before and after a part,
// each below its name.
func recorded(t *testing.T) map[string]fstest.MapFS {
	t.Helper()
	data, err := os.ReadFile("testdata/load.txt")
	if err != nil {
		t.Fatal(err)
	}
	recorded := map[string]fstest.MapFS{"before": {}, "after": {}}
	for _, section := range strings.Split("\n"+string(data), "\n-- ")[1:] {
		name, text, _ := strings.Cut(section, " --\n")
		when, name, _ := strings.Cut(name, "/")
		recorded[when][name] = &fstest.MapFile{Data: []byte(text + "\n")}
	}
	return recorded
}

// In the recording the bench is 5436. Its server, 15786, had started an agent that ended,
// and another one, which lives and has brackets in its name. Two suites of tests kept both
// processors busy meanwhile.
func TestLoadIsOfOthers(t *testing.T) {
	t.Parallel()
	proc := recorded(t)
	read := func(when string) load {
		l, err := readLoad(proc[when], 5436)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	before, after := read("before"), read("after")
	if want := (load{capacity: 2380451 + 1089948 + 2043179 + 233458 + 12440 + 13554, busy: 2380451 + 1089948 + 2043179, own: 16 + 11 + 22 + 39 + 1, kernel: 2 + 2097 + 14 + 2559 + 2414 + 4289}); before != want {
		t.Errorf("before: %+v, want %+v", before, want)
	}
	during := after.since(before)
	want := load{
		capacity: 17532 + 76 + 13282 + 91, busy: 17532 + 76 + 13282,
		own:    1 + 1 + 14 + 4 + 15 + 8 + 14 + 4, // of itself, the server, the agent that ended, the one that lives
		kernel: 8 + 9 + 14 + 51,
	}
	if during != want {
		t.Errorf("during: %+v, want %+v", during, want)
	}
	if got, want := during.others(), float64(want.busy-want.own-want.kernel)/float64(want.capacity); math.Abs(got-want) > 1e-9 || got < 0.97 {
		t.Errorf("others used %v of the processors, want %v", got, want)
	}
}

// What a descendant has used counts as ours, however it ended: as its parent's time, as an
// orphan that we have adopted, and before anybody has waited for it.
func TestDescendantsAreOurs(t *testing.T) {
	t.Parallel()
	process := func(pid, parent, own, children int) string {
		return strconv.Itoa(pid) + " (holdfast) S " + strconv.Itoa(parent) + " 1 1 0 -1 4194304 0 0 0 0 " +
			strconv.Itoa(own) + " 0 " + strconv.Itoa(children) + " 0 20 0 1 0 1 1 1\n"
	}
	const idle = "cpu 0 0 0 1000 0 0 0 0 0 0\n"
	for name, test := range map[string]struct {
		processes []string
		want      int64
	}{
		"the bench alone":              {[]string{process(1, 0, 500, 500), process(10, 1, 7, 0)}, 7},
		"a server and its agent":       {[]string{process(10, 1, 7, 0), process(11, 10, 20, 0), process(12, 11, 30, 5)}, 62},
		"they have ended":              {[]string{process(10, 1, 7, 55)}, 62},
		"the agent without its server": {[]string{process(10, 1, 7, 20), process(12, 10, 30, 5)}, 62},
		"processes of others":          {[]string{process(10, 1, 7, 0), process(9, 1, 100, 100), process(13, 9, 100, 100)}, 7},
		"one whose parent is not seen": {[]string{process(10, 1, 7, 0), process(14, 8, 100, 100)}, 7},
		"a circle":                     {[]string{process(10, 1, 7, 0), process(15, 16, 1, 1), process(16, 15, 1, 1)}, 7},
	} {
		proc := fstest.MapFS{"stat": {Data: []byte(idle)}, "net": {Mode: fs.ModeDir}}
		for _, text := range test.processes {
			pid, _, _ := strings.Cut(text, " ")
			proc[pid+"/stat"] = &fstest.MapFile{Data: []byte(text)}
		}
		if l, err := readLoad(proc, 10); err != nil || l.own != test.want {
			t.Errorf("%s: own time %d, %v, want %d", name, l.own, err, test.want)
		}
	}
}

func TestShareOfOthers(t *testing.T) {
	t.Parallel()
	const capacity = 2 * 60 * ticksPerSecond // two processors for a minute
	for name, test := range map[string]struct {
		l         load
		want      float64
		disturbed bool
	}{
		"a quiet machine":            {load{capacity: capacity, busy: 9000, own: 8700, kernel: 100}, 200. / capacity, false},
		"just quiet":                 {load{capacity: capacity, busy: 9000, own: 8400}, 0.05, false},
		"no longer quiet":            {load{capacity: capacity, busy: 9000, own: 8399}, 601. / capacity, true},
		"a test suite":               {load{capacity: capacity, busy: capacity, own: 5000}, 7000. / capacity, true},
		"processes counted exactly":  {load{capacity: capacity, busy: 5000, own: 5010}, 0, false},
		"a machine without a clock":  {load{busy: 10}, 0, false},
		"all of it is the kernel's":  {load{capacity: capacity, busy: 5000, own: 1000, kernel: 4000}, 0, false},
		"all is taken by neighbours": {load{capacity: capacity, busy: capacity}, 1, true},
	} {
		got := test.l.others()
		if math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s: others used %v, want %v", name, got, test.want)
		}
		if written := (outcome{others: got}).written(); written == test.disturbed {
			t.Errorf("%s: written is %v", name, written)
		}
	}
}

// Waiting for disks and interrupts are not processes of others, and time that other virtual
// machines took is.
func TestTimeOfAllProcessors(t *testing.T) {
	t.Parallel()
	l, err := parseLoad("cpu  1 20 300 4000 50000 600000 7000000 80000000 9 9\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
	if want := (load{capacity: 87_654_321, busy: 80_000_321}); err != nil || l != want {
		t.Errorf("%+v, %v, want %+v", l, err, want)
	}
	for _, text := range []string{"", "cpu 1 2 3\n", "cpu0 1 2 3 4 5 6 7 8\n", "cpu 1 2 3 4 x 6 7 8\n"} {
		if _, err := parseLoad(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
	for _, text := range []string{"", "1 (a", "1 (a) S 1 2", "1 (a) S 1 1 1 0 -1 4194304 0 0 0 0 x 0 0 0 0 0\n"} {
		if _, err := parseProcess(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
	if _, err := readLoad(fstest.MapFS{}, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without /proc the error is %v", err)
	}
}
