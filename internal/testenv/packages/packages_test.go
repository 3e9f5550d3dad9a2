package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sources of packages, by path and file.
var sources = map[string]map[string]string{
	"m/docs": {"a_test.go": "func TestA(t *testing.T) { go call() }"},
	"m/agent": {
		"a.go":           "func Run() { go call() }",
		"a_test.go":      "func TestA(t *testing.T) {}",
		"engine_test.go": "//go:build linux && !race\n\nfunc TestEngine(t *testing.T) {}\nfunc FuzzEngine(f *testing.F) {}\nfunc help() {}",
		"other_test.go":  "//go:build !linux\n\nfunc TestOther(t *testing.T) {}",
	},
	"m/timer":   {"a.go": "func Run() { time.AfterFunc(1, call) }", "a_test.go": "func TestA(t *testing.T) {}"},
	"m/group":   {"a.go": "func Run() { var g errgroup.Group; g.Go(call) }", "a_test.go": "func TestA(t *testing.T) {}"},
	"m/each":    {"a.go": "func Run() { parallel.Each(ctx, 2, call) }", "a_test.go": "func TestA(t *testing.T) {}"},
	"m/handler": {"a.go": "type h struct{}\n\nfunc (h) ServeHTTP(w, r int) {}", "a_test.go": "func TestA(t *testing.T) {}"},
	"m/loops":   {"a.go": "func Run() { sequence.Each(call) }", "a_test.go": "func TestA(t *testing.T) {}"},
	"m/bare":    {"a.go": "func Run() { go call() }"},
	"m/locked": {
		"a.go":      "import \"sync\"\n\nvar mu sync.Mutex",
		"a_test.go": "var once sync.Once\n\nfunc TestOne(t *testing.T) { once.Do(call) }",
		"b_test.go": "//go:build !race\n\nfunc TestUnseen(t *testing.T) { go call() }",
		"c_test.go": `
func TestMain(m *testing.M) { go call() }

func TestAtOnce(t *testing.T) { var g sync.WaitGroup; g.Go(call) }

func within(do func()) { go do() }

func (w world) helped() { w.within(1) }

func TestHelped(t *testing.T) { newWorld().helped() }

func TestAlone(t *testing.T) { newWorld().alone() }

// TestElsewhere starts something in another package.
//
//holdfast:race
func TestElsewhere(t *testing.T) {}`,
		"d_test.go": `
func caseAtOnce(t *testing.T) { go call() }

func caseAlone(t *testing.T) {}

var suite = map[string]func(*testing.T){"at once": caseAtOnce}

var others = []func(*testing.T){caseAlone}

func TestSuite(t *testing.T) { each(t, suite) }

func TestOthers(t *testing.T) { each(t, others) }`,
	},
	"m/cmd/holdfast": {
		"a.go":      "func main() { go call() }",
		"a_test.go": "func TestA(t *testing.T) {}\n\nfunc TestB(t *testing.T) { go call() }",
	},
	"m/server/fleet":   {"a.go": "func Run() {}", "a_test.go": "func TestFew(t *testing.T) { go call() }"},
	"m/runner/sandbox": {"a.go": "func Run() { go call() }", "a_test.go": "func TestA(t *testing.T) { go call() }"},
}

func TestPackages(t *testing.T) {
	t.Parallel()
	var all []*testedPackage
	for _, path := range slices.Sorted(maps.Keys(sources)) {
		dir := t.TempDir()
		for name, text := range sources[path] {
			head := ""
			if strings.HasPrefix(text, "//go:build ") {
				head, text, _ = strings.Cut(text, "\n\n")
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(head+"\n\npackage p\n\n"+text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p, err := read(path, dir)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	got := make(map[string]string)
	for _, kind := range []string{servers, raced, mixed, mixedTests, apart, apartTests, plain} {
		lines, err := list(all, kind)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			got[line] += kind + " "
		}
	}
	want := map[string]string{
		"m/docs": "servers ", "m/agent": "raced apart ", "m/timer": "raced ", "m/group": "raced ", "m/each": "raced ",
		"m/handler": "raced ", "m/loops": "plain ", "m/bare": "plain ", "m/locked": "mixed ",
		"m/cmd/holdfast": "mixed ", "m/runner/sandbox": "plain ", "m/server/fleet": "raced ",
		"^(TestB|TestAtOnce|TestElsewhere|TestHelped|TestSuite)$": "tests ",
		"^(TestEngine|FuzzEngine)$":                               "apart-tests ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("packages and tests by kind (-want +got):\n%s", diff)
	}
	lines, err := list(all, shell)
	if err != nil || !slices.Contains(lines, "apart_tests='^(TestEngine|FuzzEngine)$'") || !slices.Contains(lines, "raced='m/agent m/each m/group m/handler m/server/fleet m/timer'") {
		t.Errorf("for a shell: %v\n%s", err, strings.Join(lines, "\n"))
	}
	if _, err := list(all, "fast"); err == nil {
		t.Error("an unknown kind is taken")
	}
}
