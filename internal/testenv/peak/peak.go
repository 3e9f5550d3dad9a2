// Package peak measures the most memory that some work needs, in its own process: the
// kernel's count is of a whole process, from its start. It needs Linux.
package peak

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Alone runs the calling test again, in a process that has nothing but variable=value in
// its environment.
func Alone(t *testing.T, variable, value string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+regexp.QuoteMeta(t.Name())+"$", "-test.v")
	cmd.Env = []string{variable + "=" + value}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// Bound ends the test if this process has ever had more than so many bytes of memory.
func Bound(t *testing.T, most int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kb, err := strconv.Atoi(strings.Fields(rest + " ?")[0])
	if err != nil || kb<<10 > most {
		t.Fatalf("the process has used %d MB, %v", kb>>10, err)
	}
	t.Logf("the process has used %d MB", kb>>10)
}
