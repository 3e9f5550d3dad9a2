package offline_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/offline"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

var update = flag.Bool("update", false, "write the golden files")

// run runs the command cost, and returns what it prints.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := offline.NewCostCommand(&cli.App{Printer: table.Printer{
		Out: &out, Err: &out, Now: func() time.Time { return time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC) },
	}})
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(&out)
	c.SilenceErrors, c.SilenceUsage = true, true
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

// What people read: of an engine's JSON, of a plan document, of a folder, by a price book.
func TestCost(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"engine":   {"testdata/plans/engine.json"},
		"region":   {"testdata/plans/engine.json", "--region", "us-east-1"},
		"document": {"testdata/plans/document.json"},
		"folder":   {"testdata/plans", "--prices", "testdata/prices.yaml", "--region", "us-east-1"},
		"json":     {"testdata/plans/document.json", "-o", "json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := run(t, args...)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", "cost-"+name+".golden.txt")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCostRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	empty := filepath.Join(dir, "empty[1]")
	if err := os.Mkdir(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"takes files with plans, or folders":                   {},
		"no such file or directory":                            {filepath.Join(dir, "none.json")},
		"has no plan":                                          {empty},
		"state.json is not a plan":                             {write("state.json", `{"serial": 3}`)},
		"binary.json is not a plan":                            {write("binary.json", "PK\x03\x04")},
		"version 7 is not 1":                                   {write("version.json", `{"version":7,"resources":[],"outputs":[]}`)},
		"prices.yaml:1:1: this document is not a price book":   {"testdata/plans/document.json", "--prices", write("prices.yaml", "a: b\n")},
		"read price book: open " + dir + "/none.yaml: no such": {"testdata/plans/document.json", "--prices", filepath.Join(dir, "none.yaml")},
	} {
		if _, err := run(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}

// What programs read has the amounts as texts: a floating-point number would change them.
func TestCostAsJSON(t *testing.T) {
	t.Parallel()
	got, err := run(t, "testdata/plans/document.json", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Totals []struct {
			Currency string
			Change   struct{ Low, High string }
		}
	}
	if err := json.Unmarshal([]byte(got), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Totals) != 1 || report.Totals[0].Currency != "USD" || report.Totals[0].Change.Low != "72" {
		t.Errorf("%+v", report)
	}
}
