package plan_test

import (
	"archive/zip"
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/testenv/peak"
	"github.com/holdfast-dev/holdfast/runner/plan"
	"github.com/holdfast-dev/holdfast/runner/planfile"
	"github.com/holdfast-dev/holdfast/runner/redact"
)

const (
	memoryFile = "HOLDFAST_TEST_PLAN" // in the environment: the plan that this process reads
	mostMemory = 300 << 20
	many       = 2000
)

// TestLargePlanTakesLittleMemory: a plan that updates 2,000 resources, of 8 kB before
// and 8 kB after, costs an agent less than 300 MB. A process of its own does what an
// attempt does with its plan, so that the kernel's count of the most memory that it
// ever had is of nothing else.
func TestLargePlanTakesLittleMemory(t *testing.T) {
	if file := os.Getenv(memoryFile); file != "" {
		readLarge(t, file)
		return
	}
	t.Parallel()
	file := filepath.Join(t.TempDir(), "plan.json")
	writeLarge(t, file)
	writeStates(t, file)
	peak.Alone(t, memoryFile, file)
}

// readLarge holds what an attempt holds: the state as it came, what it and the plan
// file's differ in, and the document.
func readLarge(t *testing.T, name string) {
	state, err := os.ReadFile(name + ".state")
	if err != nil {
		t.Fatal(err)
	}
	redactor := redact.New(nil)
	secrets, ok := redact.OfState(state)
	if !ok {
		t.Fatal("the state is not one")
	}
	redactor.Add(secrets...)
	compared := compareStates(t, name, state)
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	found, err := plan.Read(file, plan.Options{Key: bytes.Repeat([]byte{1}, 32), Redactor: redactor, Compared: &compared})
	if err != nil {
		t.Fatal(err)
	}
	if err := found.Document.Encode(io.Discard); err != nil {
		t.Fatal(err)
	}
	if n := found.Document.Counts(); n.Update != many || found.Document.Digest() == "" {
		t.Fatalf("%+v", n)
	}
	if held, err := plan.ContentsOf(state); err != nil || len(held.Objects) != many {
		t.Fatalf("the state holds %d objects, %v", len(held.Objects), err)
	}
	peak.Bound(t, mostMemory)
}

// compareStates compares the given state with the one in the plan file.
func compareStates(t *testing.T, name string, state []byte) plan.Compared {
	archive, err := planfile.Open(name+".tfplan", 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	given, err := planfile.ReadState(bytes.NewReader(state))
	if err != nil {
		t.Fatal(err)
	}
	prior, err := archive.State()
	if err != nil {
		t.Fatal(err)
	}
	found, err := new(planfile.Plan).CheckState(given, prior)
	if err != nil || len(found.Drifted)+len(found.Unshown)+len(found.Providers) > 0 {
		t.Fatalf("the states differ: %v", err)
	}
	runtime.KeepAlive(given) // as its outputs are
	return plan.Compared{Outputs: map[string]plan.GivenOutput{}}
}

func largeValue(what string, i int) string {
	return strings.Repeat(fmt.Sprintf("%s %d of it. ", what, i), 8<<10/16)
}

// writeTo writes a file with write.
func writeTo(t *testing.T, name string, write func(w *bufio.Writer)) {
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(file)
	write(w)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// list writes an element for each resource: format has its number and its value,
// before the change and after it.
func list(w *bufio.Writer, format string) {
	for i := range many {
		if i > 0 {
			_ = w.WriteByte(',')
		}
		fmt.Fprintf(w, format, i, largeValue("former", i), largeValue("value", i))
	}
}

// writeStates writes the state as it is given, and a plan file with it.
func writeStates(t *testing.T, name string) {
	writeTo(t, name+".state", func(w *bufio.Writer) {
		fmt.Fprint(w, `{"version":4,"terraform_version":"1.11.4","serial":1,"lineage":"l","outputs":{},"resources":[{"mode":"managed",`+
			`"type":"terraform_data","name":"x","provider":"provider[\"terraform.io/builtin/terraform\"]","instances":[`)
		list(w, `{"index_key":%[1]d,"schema_version":0,"attributes":{"id":"i-%[1]d","input":%[2]q},"sensitive_attributes":[]}`)
		fmt.Fprint(w, `]}]}`)
	})
	state, err := os.ReadFile(name + ".state")
	if err != nil {
		t.Fatal(err)
	}
	writeTo(t, name+".tfplan", func(w *bufio.Writer) {
		archive := zip.NewWriter(w)
		for member, data := range map[string][]byte{"tfplan": nil, "tfstate": state, "tfstate-prev": nil} {
			file, err := archive.Create(member)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := file.Write(data); err != nil {
				t.Fatal(err)
			}
		}
		if err := archive.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// writeLarge writes a plan as an engine does, with each value in the change, in what
// is planned, in the prior state and in the configuration.
func writeLarge(t *testing.T, name string) {
	const resource = `{"address":"terraform_data.x[%[1]d]","mode":"managed","type":"terraform_data","name":"x","index":%[1]d,` +
		`"provider_name":"terraform.io/builtin/terraform",`
	writeTo(t, name, func(w *bufio.Writer) {
		fmt.Fprint(w, `{"format_version":"1.2","terraform_version":"1.11.4","planned_values":{"root_module":{"resources":[`)
		list(w, resource+`"values":{"input":%[3]q},"sensitive_values":{}}`)
		fmt.Fprint(w, `]}},"resource_changes":[`)
		list(w, resource+`"change":{"actions":["update"],"before":{"id":"i-%[1]d","input":%[2]q},`+
			`"after":{"id":"i-%[1]d","input":%[3]q},"after_unknown":{},"before_sensitive":{},"after_sensitive":{}}}`)
		fmt.Fprint(w, `],"prior_state":{"format_version":"1.0","terraform_version":"1.11.4","values":{"root_module":{"resources":[`)
		list(w, resource+`"values":{"id":"i-%[1]d","input":%[2]q},"sensitive_values":{}}`)
		fmt.Fprint(w, `]}}},"configuration":{"root_module":{"resources":[`)
		list(w, `{"address":"terraform_data.x%[1]d","mode":"managed","type":"terraform_data","name":"x%[1]d","expressions":{"input":{"constant_value":%[3]q}}}`)
		fmt.Fprint(w, `]}}}`)
	})
}
