package modulecode_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

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
		root := modulecode.Read(t.Context(), dir, dir, engine)
		var providers []string
		for _, need := range root.Needs {
			if name, ok := strings.CutPrefix(need, "provider "); ok {
				name, _, _ = strings.Cut(name, "\x00") // of which module
				providers = append(providers, name)
			}
		}
		slices.Sort(providers)
		if got := strings.Join(root.Requires, " ") + ": " + strings.Join(providers, " "); got != want {
			t.Errorf("for %q the code is read to ask for %q, want %q", engine, got, want)
		}
	}
}

// TestExpressionsThatWouldNotEnd: chains of operators are nested without brackets,
// and nested loops never end. Neither ends an agent, or keeps it busy.
func TestExpressionsThatWouldNotEnd(t *testing.T) {
	t.Parallel()
	loop := "1"
	for range 12 {
		loop = "[for a in [" + strings.Repeat("1, ", 100) + "] : " + loop + "]"
	}
	for name, code := range map[string]string{
		"sums":   "locals {\n  a = 1" + strings.Repeat("+1", 700_000) + "\n}\n",
		"splats": "locals {\n  a = b" + strings.Repeat("[*]", 400_000) + "\n}\n",
		"loops": "variable \"token\" {\n  sensitive = true\n  default = " + loop + "\n}\nmodule \"m\" {\n  source = " + loop + "\n}\n" +
			"variable \"x\" {\n  ephemeral = " + loop + "\n}\n",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "a.auto.tfvars"), []byte("token = "+loop+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		modulecode.Read(t.Context(), dir, dir, "terraform")
		if _, err := modulecode.Parse(filepath.Join(dir, "main.tf")); name != "loops" && !errors.Is(err, modulecode.ErrTooDeep) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := modulecode.VariableSecrets(loop); !slices.Equal(got, []string{loop}) {
		t.Errorf("%d secrets of a loop", len(got))
	}
	expr, diags := hclsyntax.ParseExpression([]byte(loop), "", hcl.InitialPos)
	if _, err := modulecode.Constant(expr); diags.HasErrors() || !errors.Is(err, modulecode.ErrTooDeep) {
		t.Errorf("a loop of loops: %v, %v", err, diags)
	}
	expr, _ = hclsyntax.ParseExpression([]byte(`{for k, v in {a = "b"} : k => [for x in [1, 2] : "${v}${x}"]}`), "", hcl.InitialPos)
	if value, err := modulecode.Constant(expr); err != nil || value.LengthInt() != 1 {
		t.Errorf("an ordinary loop: %v, %v", value, err)
	}
}

// TestSecretsThatAreNotRead: the values of secret variables are in files that are read
// here as the engine reads them, or the root module says that they are not.
func TestSecretsThatAreNotRead(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", modulecode.MaxFile)
	for name, c := range map[string]struct {
		file, text, name, code string
		want                   string // in the error; empty: none
	}{
		"large JSON":          {"a.auto.tfvars.json", `{"token": "` + large + `"}`, "token", "sensitive = true", "a.auto.tfvars.json: larger than"},
		"large":               {"terraform.tfvars", `token = "` + large + `"`, "token", "sensitive = true", "terraform.tfvars: larger than"},
		"nested":              {"terraform.tfvars", "token = " + strings.Repeat("[", 2000) + strings.Repeat("]", 2000), "token", "sensitive = true", "terraform.tfvars: line 1: expressions are nested"},
		"nothing is secret":   {"terraform.tfvars", `size = "` + large + `"`, "size", "", ""},
		"no variables at all": {"terraform.tfvars", "token = ", "token", "sensitive = true", ""},
	} {
		dir := t.TempDir()
		for file, text := range map[string]string{"main.tf": "variable \"" + c.name + "\" {\n  " + c.code + "\n}\n", c.file: c.text} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := modulecode.Read(t.Context(), dir, dir, "terraform").Unread
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
