package modulecode_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/runner/modulecode"
)

// TestCodeOfAnEngine: OpenTofu's files count for OpenTofu, in place of those of
// the same name, and for it alone.
func TestCodeOfAnEngine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.tf":           "terraform {\n  required_version = \"> 1.1\"\n}\nprovider \"one\" {}\n",
		"a.tofu":         "terraform {\n  required_version = \"> 1.6\"\n}\nprovider \"two\" {}\n",
		"b.tofu":         "provider \"three\" {}\nmodule \"m\" { source = \"./m\" }\n",
		"c.tf":           "provider \"four\" {}\n",
		"d.tf.json":      `{"provider": {"five": {}}}`,
		"d.tofu.json":    `{"provider": {"six": {}}}`,
		"m/main.tf":      "provider \"seven\" {}\n",
		"m/main.tofu":    "provider \"eight\" {}\n",
		"x.tofutest.hcl": "provider \"nine\" {}\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for engine, want := range map[string]string{
		"terraform": "> 1.1: five four one",
		"tofu":      "> 1.6: eight four six three two",
		"":          "> 1.6: eight four six three two", // these files are for OpenTofu
	} {
		root := modulecode.Read(dir, dir, engine)
		var providers []string
		for _, need := range root.Needs {
			if name, ok := strings.CutPrefix(need, "provider "); ok {
				providers = append(providers, name)
			}
		}
		slices.Sort(providers)
		if got := strings.Join(root.Requires, " ") + ": " + strings.Join(providers, " "); got != want {
			t.Errorf("for %q the code is read to ask for %q, want %q", engine, got, want)
		}
	}
}
