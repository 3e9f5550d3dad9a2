package failure_test

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var initialised = regexp.MustCompile(`(?m)^init \S+/runner/failure @.*, (\d+) bytes, \d+ allocs$`)

// A program that has this package in it does not pay for its expressions at its start.
func TestExpressionsAreCompiledWhenTheyAreNeeded(t *testing.T) {
	t.Parallel()
	start := exec.Command(os.Args[0], "-test.run=^$")
	start.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var said strings.Builder
	start.Stderr = &said
	if err := start.Run(); err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	m := initialised.FindStringSubmatch(said.String())
	if m == nil {
		t.Fatalf("the initialisation of the package is not reported:\n%s", said.String())
	}
	const most = 64 << 10 // the expressions, compiled, are twenty times as large
	if allocated, _ := strconv.Atoi(m[1]); allocated > most {
		t.Errorf("the initialisation allocates %d bytes, want at most %d", allocated, most)
	}
}
