package library_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast/policy"
	"github.com/holdfast-dev/holdfast/policy/library"
)

// The policies compile, and their own tests pass and cover all of them.
func TestPolicies(t *testing.T) {
	t.Parallel()
	set := policy.Compile(library.WithTests(), nil)
	report := set.Test(t.Context(), "", policy.Limits{})
	for _, f := range report.Faults {
		t.Error(f.Error())
	}
	for _, r := range report.Tests {
		if !r.Passed {
			t.Errorf("%s:%d: %s: %s", r.File, r.Line, r.Name, r.Error)
		}
	}
	for _, f := range report.Coverage {
		if len(f.Missed) > 0 {
			t.Errorf("%s: tests cover %.1f %%, and not lines %v", f.File, f.Percent, f.Missed)
		}
	}
	for _, p := range policy.Compile(library.Sources(), nil).Policies() {
		if p.Title == "" || p.Description == "" {
			t.Errorf("%s does not say what it wants", p.ID)
		}
	}
}

var update = flag.Bool("update", false, "write docs/shipped-policies.md")

// The page is what the policies say of themselves.
func TestPage(t *testing.T) {
	t.Parallel()
	file := filepath.Join("..", "..", "docs", "shipped-policies.md")
	if *update {
		if err := os.WriteFile(file, []byte(library.Page()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != library.Page() {
		t.Errorf("%s is not what `make docs` writes", file)
	}
}
