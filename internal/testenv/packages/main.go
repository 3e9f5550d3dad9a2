// Command packages lists the packages whose tests are run in one way. The Makefile asks it.
//
// Usage: packages KIND
//
//	servers      They start servers with agents and engines, from the binary that users
//	             have, one package after the other.
//	kubernetes   They start a Kubernetes API server, or need Helm. `make test-kubernetes` runs
//	             them.
//	browsers     They look at pages in Chromium. `make test-console` runs them.
//	raced        Their code starts goroutines, or serves HTTP, which does. All of their
//	             tests are for the race detector.
//	mixed        Some of their tests start goroutines, to call at once what has to bear
//	             it. These tests are for the race detector: the kind "tests" lists them,
//	             as an expression for -run, or for -skip where the others are run. Small
//	             packages of that kind are raced as a whole.
//	apart        They are raced, except for the tests in files that are built without the
//	             race detector only (//go:build !race): tests of what an engine does, of
//	             memory, or of a story that is replayed from each of its steps. The kind
//	             "apart-tests" lists these.
//	plain        All others. Nothing runs at the same time in them, so that the race
//	             detector could find nothing. A lock alone is not a reason to look for
//	             races: where nothing is started, nobody meets at it.
//	shell        All of the above, as variables of a shell: raced, apart_tests and so on.
//	why          All packages with their kinds, and what starts something in them.
//
// A test starts goroutines if it does, or a function of the tests that it calls or hands
// on. One that starts them in other packages says so in its comment: //holdfast:race.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("usage: packages KIND")
	}
	all, err := load()
	if err != nil {
		return err
	}
	lines, err := list(all, args[0])
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}

// load reads the packages of the module in the working folder.
func load() ([]*testedPackage, error) {
	command := exec.Command(cmp.Or(os.Getenv("GO"), "go"), "list", "-f", "{{.ImportPath}}\t{{.Dir}}", "./...")
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	var all []*testedPackage
	for line := range strings.Lines(string(out)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		p, err := read(path, dir)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		all = append(all, p)
	}
	return all, nil
}

const (
	servers    = "servers"
	kubernetes = "kubernetes"
	browsers   = "browsers"
	raced      = "raced"
	mixed      = "mixed"
	mixedTests = "tests"
	apart      = "apart"
	apartTests = "apart-tests"
	plain      = "plain"
	shell      = "shell"
	why        = "why"
)

// variables are the kinds that "shell" has.
var variables = []string{servers, kubernetes, browsers, raced, mixed, mixedTests, apart, apartTests, plain}

// list returns what is asked for, a line each.
func list(all []*testedPackage, kind string) ([]string, error) {
	if kind == shell {
		return assignments(all)
	}
	var lines []string
	for _, p := range all {
		kinds := p.kinds()
		switch kind {
		case servers, kubernetes, browsers, raced, mixed, apart, plain:
			if slices.Contains(kinds, kind) {
				lines = append(lines, p.path)
			}
		case mixedTests:
			if slices.Contains(kinds, mixed) {
				lines = append(lines, p.concurrent()...)
			}
		case apartTests:
			if slices.Contains(kinds, apart) {
				lines = append(lines, p.unraced...)
			}
		case why:
			lines = append(lines, p.path+": "+strings.Join(kinds, ", ")+p.reason(kinds))
		default:
			return nil, fmt.Errorf("kind %q: must be one of %s", kind,
				strings.Join(append(slices.Clone(variables), shell, why), ", "))
		}
	}
	if kind == mixedTests || kind == apartTests {
		return []string{"^(" + strings.Join(lines, "|") + ")$"}, nil
	}
	return lines, nil
}

// assignments are what a shell reads.
func assignments(all []*testedPackage) ([]string, error) {
	var lines []string
	for _, kind := range variables {
		found, err := list(all, kind)
		if err != nil {
			return nil, err
		}
		lines = append(lines, fmt.Sprintf("%s='%s'", strings.ReplaceAll(kind, "-", "_"), strings.Join(found, " ")))
	}
	return lines, nil
}

var (
	ofKubernetes = regexp.MustCompile(`/(deploy|internal/kubetest)$`)
	ofServers    = regexp.MustCompile(`/(docs|internal/e2e)$`)
	ofBrowsers   = regexp.MustCompile(`/internal/consoletest$`)
	// What these tests bound is the tests' own binary, within limits of
	// memory that the race detector does not fit into.
	limited = regexp.MustCompile(`/(policy/confined|runner/sandbox)$`)
	// Most tests of these packages call one thing after the other; with the race detector
	// each takes five times as long. What their code starts is met by those that are raced.
	large = regexp.MustCompile(`/(cmd/holdfast|gitsource|reconciler)$`)
	// The tests of these packages take less time with the race detector than a second
	// test binary takes to be linked.
	small = regexp.MustCompile(`/(cost/cache|datastore/(peers|seal)|forge/local|internal/flock|reconciler/breaker|runner/engine|server/fleet)$`)
)

// kinds says how the tests of the package are run.
func (p *testedPackage) kinds() []string {
	switch {
	case ofKubernetes.MatchString(p.path):
		return []string{kubernetes}
	case ofBrowsers.MatchString(p.path):
		return []string{browsers}
	case ofServers.MatchString(p.path):
		return []string{servers}
	case limited.MatchString(p.path):
		return []string{plain}
	case p.start != "" && p.tested && !large.MatchString(p.path):
		if len(p.unraced) > 0 {
			return []string{raced, apart}
		}
		return []string{raced}
	case len(p.concurrent()) > 0 && small.MatchString(p.path):
		return []string{raced}
	case len(p.concurrent()) > 0:
		return []string{mixed}
	default:
		return []string{plain}
	}
}

// reason says why a package is of such kinds, for people.
func (p *testedPackage) reason(kinds []string) string {
	switch {
	case slices.Contains(kinds, raced):
		if p.start != "" {
			return ", starts something at " + p.start
		}
		return ", small, started by " + strings.Join(p.concurrent(), ", ")
	case slices.Contains(kinds, mixed):
		return ", started by " + strings.Join(p.concurrent(), ", ")
	default:
		return ""
	}
}
