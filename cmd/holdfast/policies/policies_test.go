package policies_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/cmd/holdfast/cli"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/policies"
	"github.com/holdfast-dev/holdfast/cmd/holdfast/table"
)

var update = flag.Bool("update", false, "write the golden files")

// run runs the command policy, and returns what it prints.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := policies.NewPolicyCommand(&cli.App{Printer: table.Printer{Out: &out, Err: &out}})
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(&out)
	c.SilenceErrors, c.SilenceUsage = true, true
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

// What people read, and whether a script goes on after it.
func TestPolicy(t *testing.T) {
	t.Parallel()
	const folder = "testdata/policies"
	tests := map[string]struct {
		args []string
		ok   bool
	}{
		"eval-public":   {[]string{"eval", folder + "/fixtures/public.json", "--policies", folder}, false},
		"eval-private":  {[]string{"eval", folder + "/fixtures/private.json", "--policies", folder}, true},
		"eval-document": {[]string{"eval", "testdata/document.json", "--policies", folder}, false},
		"eval-json":     {[]string{"eval", folder + "/fixtures/public.json", "--policies", folder, "-o", "json"}, false},
		"eval-shipped":  {[]string{"eval", folder + "/fixtures/private.json", "--shipped"}, true},
		"test":          {[]string{"test", folder}, true},
		"test-coverage": {[]string{"test", folder, "--min-coverage", "99"}, false},
		"test-none":     {[]string{"test", folder, "--run", "nothing"}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := run(t, tt.args...)
			if (err == nil) != tt.ok {
				t.Errorf("error %v", err)
			}
			var exit *cli.ExitCodeError
			if err != nil && !errors.As(err, &exit) {
				got += "Error: " + err.Error() + "\n"
			}
			file := filepath.Join("testdata", name+".golden.txt")
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

// What cannot be read says so.
func TestRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plan, empty := "testdata/policies/fixtures/public.json", filepath.Join(dir, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args []string
		want string
	}{
		"no policies":   {[]string{"eval", plan}, "name a folder with --policies, or --shipped"},
		"empty folder":  {[]string{"eval", plan, "--policies", empty}, "has no policy"},
		"no folder":     {[]string{"eval", plan, "--policies", filepath.Join(dir, "none")}, "no such file"},
		"no plan":       {[]string{"eval", file("plan.txt", "hello"), "--shipped"}, "is not a plan"},
		"another JSON":  {[]string{"eval", file("other.json", "{}"), "--shipped"}, "is not a plan"},
		"unknown key":   {[]string{"eval", file("key.json", `{"format_version": "1.2", "holdfast": {"clusters": 1}}`), "--shipped"}, `unknown field "clusters"`},
		"settings":      {[]string{"eval", plan, "--shipped", "--settings", file("settings.json", "[]")}, "is not a JSON object"},
		"test nothing":  {[]string{"test"}, "name a folder"},
		"no group word": {[]string{"evil"}, "does not know"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := run(t, tt.args...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
