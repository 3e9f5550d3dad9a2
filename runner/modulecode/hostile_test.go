package modulecode_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/runner/modulecode"
)

// TestCodeThatWouldEndAnAgent: an agent reads the code before an engine does, outside of
// every limit of the run.
func TestCodeThatWouldEndAnAgent(t *testing.T) {
	t.Parallel()
	const n = 150_000
	many := strings.Repeat
	for name, c := range map[string]struct{ file, code, want string }{
		"directives in a file of variables": {"x.tfvars", "p = \"" + many("%{if p}", n) + "\"\n", "x.tfvars: line 1: expressions are nested deeper than 1,000 levels"},
		"a number in a file of variables":   {"x.tfvars", "p = 1e600000000\n", "x.tfvars: line 1: number has more than 1,000 digits"},
		"lines in a file of variables":      {"x.tfvars", "p = <<X\n" + many("b\n", n) + "X\n", "x.tfvars: line 75001: texts have too many lines"},
		"directives in a test":              {"x.tftest.hcl", "a = \"" + many("%{if p}", n) + "\"\n", ""},
		"a number as a default":             {"main.tf", "variable \"q\" {\n  sensitive = true\n  default   = 1e600000000\n}\n", ""},
		"a number that is made":             {"main.tf", "variable \"q\" {\n  sensitive = true\n  default   = \"1e600000000\" * 1\n}\n", ""},
		"JSON in JSON": {
			"main.tf.json", "{\"resource\": [\"\u0600\",\",[" + many("[", n) + "\"]}", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for file, text := range map[string]string{"variables.tf": "variable \"p\" {\n  sensitive = true\n}\n", c.file: c.code} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			root := modulecode.Read(t.Context(), dir, dir, "terraform")
			if c.want == "" {
				if root.Unread != nil || len(root.Secrets) > 0 {
					t.Errorf("%d secrets, %v", len(root.Secrets), root.Unread)
				}
			} else if root.Unread == nil || !strings.HasPrefix(root.Unread.Error(), c.want) && !strings.Contains(root.Unread.Error(), "too many lines") {
				t.Errorf("%v, want %q", root.Unread, c.want)
			}
		})
	}
	for _, text := range []string{"[1e600000000]", "[1e-3000000]", "[\"1e600000000\" * 1]", "[\"" + many("%{if p}", 9_000) + "\"]"} {
		if got := modulecode.VariableSecrets(text); !slices.Equal(got, []string{text}) {
			t.Errorf("%.40s has %d secrets", text, len(got))
		}
	}
	if got, want := modulecode.VariableSecrets("[1e300, 0.5]"), []string{"[1e300, 0.5]", "1" + many("0", 300), "0.5"}; !slices.Equal(got, want) {
		t.Errorf("secrets %q, want %q", got, want)
	}
}

// TestReadingEnds: an attempt that was canceled, or is beyond its time, reads no other file.
func TestReadingEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte("provider \"a\" {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if root := modulecode.Read(ctx, dir, dir, "terraform"); !root.Opaque || len(root.Needs) > 0 {
		t.Errorf("it is read: %v", root.Needs)
	}
}
