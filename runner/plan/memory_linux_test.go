package plan_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/runner/plan"
	"github.com/holdfast-dev/holdfast/runner/redact"
)

const (
	memoryFile = "HOLDFAST_TEST_PLAN" // in the environment: the plan that this process reads
	mostMemory = 300 << 20
)

// TestLargePlanTakesLittleMemory: 2,000 resources of 8 kB each cost an agent less
// than 300 MB. A process of its own reads the plan, so that the kernel's count of
// the most memory that it ever had is of nothing else.
func TestLargePlanTakesLittleMemory(t *testing.T) {
	if file := os.Getenv(memoryFile); file != "" {
		readLarge(t, file)
		return
	}
	t.Parallel()
	file := filepath.Join(t.TempDir(), "plan.json")
	writeLarge(t, file)
	cmd := exec.Command(os.Args[0], "-test.run=^TestLargePlanTakesLittleMemory$", "-test.v")
	cmd.Env = []string{memoryFile + "=" + file}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

func readLarge(t *testing.T, name string) {
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	found, err := plan.Read(file, plan.Options{Key: bytes.Repeat([]byte{1}, 32), Redactor: redact.New(nil)})
	if err != nil {
		t.Fatal(err)
	}
	if err := found.Document.Encode(io.Discard); err != nil {
		t.Fatal(err)
	}
	if n := found.Document.Counts().Create; n != 2000 || found.Document.Digest() == "" {
		t.Fatalf("%d resources", n)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil || kb<<10 > mostMemory {
				t.Fatalf("the process has used %d MB, %v", kb>>10, err)
			}
			t.Logf("the process has used %d MB", kb>>10)
			return
		}
	}
	t.Fatal("the kernel does not say how much was used")
}

// writeLarge writes a plan as an engine does, with each value in the change, in
// what is planned and in the configuration.
func writeLarge(t *testing.T, name string) {
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(file)
	value := func(i int) string { return strings.Repeat(fmt.Sprintf("value %d of it. ", i), 8<<10/16) }
	list := func(format string) {
		for i := range 2000 {
			if i > 0 {
				_ = w.WriteByte(',')
			}
			fmt.Fprintf(w, format, i, value(i))
		}
	}
	fmt.Fprint(w, `{"format_version":"1.2","terraform_version":"1.11.4","planned_values":{"root_module":{"resources":[`)
	list(`{"address":"terraform_data.x[%[1]d]","mode":"managed","type":"terraform_data","name":"x","index":%[1]d,` +
		`"provider_name":"terraform.io/builtin/terraform","values":{"input":%[2]q},"sensitive_values":{}}`)
	fmt.Fprint(w, `]}},"resource_changes":[`)
	list(`{"address":"terraform_data.x[%[1]d]","mode":"managed","type":"terraform_data","name":"x","index":%[1]d,` +
		`"provider_name":"terraform.io/builtin/terraform","change":{"actions":["create"],"before":null,` +
		`"after":{"input":%[2]q},"after_unknown":{"id":true},"before_sensitive":false,"after_sensitive":{}}}`)
	fmt.Fprint(w, `],"configuration":{"root_module":{"resources":[`)
	list(`{"address":"terraform_data.x%[1]d","mode":"managed","type":"terraform_data","name":"x%[1]d","expressions":{"input":{"constant_value":%[2]q}}}`)
	fmt.Fprint(w, `]}}}`)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}
