package modulecode

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// filesIn reads which files the code in a folder reads; names of templates are below it.
func filesIn(t *testing.T, code map[string]string) ([]string, error) {
	t.Helper()
	dir := t.TempDir()
	for name, code := range code {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Reader{
		Engine: Terraform, Module: "modules/m", Cwd: "/workspace/root", Workspace: "main",
		Open: func(name string) (io.ReadCloser, error) { return os.Open(filepath.Join(dir, filepath.Base(name))) },
	}.FilesRead(t.Context(), dir)
}

// Files are found where functions name them by a constant, in both forms of code.
func TestFilesRead(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 20<<10)
	for name, c := range map[string]struct {
		code map[string]string
		want []string
	}{
		"functions": {map[string]string{"main.tf": `resource "x" "y" {
  provisioner "local-exec" {
    command = "run ${templatefile("/opt/job.tpl", { a = filemd5("${path.module}/../up.txt") })} ${file(var.name)}"
  }
  a = core::fileset("/opt/set", "*.yaml")
}
locals { a = [for f in ["x"] : file("/opt/${f}")] }
locals { b = file(pathexpand("/opt/nested")) }
locals { c = filename("/opt/none") }
`}, []string{"/opt/job.tpl", "/opt/set", "modules/m/../up.txt"}},
		"JSON": {
			map[string]string{"main.tf.json": `{"locals": {"a": "${fileexists(\"/opt/flag\")} and ${trimspace(file(\"/opt/json\"))}", "file": "file(\"/opt/text\")"}}`},
			[]string{"/opt/flag", "/opt/json"},
		},
		"keys of JSON":           {map[string]string{"main.tf.json": `{"locals": {"a": {"${file(\"/opt/key\")}": 1}}}`}, []string{"/opt/key"}},
		"JSON of two":            {map[string]string{"main.tf.json": `{"locals": {"a": "${file(\"/opt/one\")}"}, "locals": {"b": ""}}`}, []string{"/opt/one"}},
		"long texts":             {map[string]string{"main.tf.json": `{"locals": {"a": "${file(\"/opt/long\")}` + long + `"}}`}, []string{"/opt/long"}},
		"the engine's part":      {map[string]string{"main.tf": `locals { a = "${path.cwd}/${file("${path.cwd}/../${terraform.workspace}/a")}" }`}, []string{"/workspace/root/../main/a"}},
		"a list":                 {map[string]string{"main.tf": `locals { a = file(["/opt/list"]...) }`}, []string{"/opt/list"}},
		"other engine":           {map[string]string{"main.tf": `locals { a = file("/opt/a") }`, "b.tofu": "locals {"}, []string{"/opt/a"}},
		"pattern that leads out": {map[string]string{"main.tf": `locals { a = fileset(path.module, "../../../up/*/x") }`}, []string{"../up"}},
		"pattern in a folder":    {map[string]string{"main.tf": `locals { a = fileset("/opt/set/{a,b}", "x") }`}, []string{"/opt/set"}},
		"unknown pattern":        {map[string]string{"main.tf": `locals { a = fileset("/opt/set", var.x) }`}, []string{"/opt/set"}},
		"templates": {map[string]string{
			"main.tf": `locals { a = templatefile("${path.module}/t.tpl", {}) }`,
			"t.tpl":   `%{ if true }${templatefile("u.tpl", {})}${file("/opt/one")}%{ endif }`,
			"u.tpl":   `${templatefile("t.tpl", {})} ${filemd5("/opt/two")}`,
		}, []string{"/opt/one", "/opt/two", "modules/m/t.tpl", "t.tpl", "u.tpl"}},
		"templates of templatestring": {map[string]string{
			"main.tf": "locals { a = \"$${file(\\\"/opt/one\\\")}\" }\nlocals { b = file(\"t.tpl\") }\n",
			"t.tpl":   `${file("/opt/two")}`,
		}, []string{"/opt/one", "/opt/two", "t.tpl"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := filesIn(t, c.code)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("files %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

// Code that is beyond the bounds of what is read is an error that names the file, and
// not where that is on this machine.
func TestFilesReadOfTooMuch(t *testing.T) {
	t.Parallel()
	deep, large := strings.Repeat("[", 1100)+strings.Repeat("]", 1100), strings.Repeat("x", MaxFile)
	loops := "1"
	for range 4 {
		loops = "[for a in [" + strings.Repeat("1, ", 50) + "] : " + loops + "]"
	}
	for name, c := range map[string]struct {
		code map[string]string
		file string
		want error
	}{
		"deep":           {map[string]string{"a.tf": "locals { a = " + deep + " }"}, "a.tf", ErrTooDeep},
		"large":          {map[string]string{"a.tf": "/*" + large + "*/"}, "a.tf", errTooLarge},
		"deep JSON":      {map[string]string{"a.tf.json": `{"locals": {"a": "E\n# ${file(` + deep + `)}"}}`}, "a.tf.json", ErrTooDeep},
		"a long chain":   {map[string]string{"a.tf.json": `{"locals": {"a": "${file(1` + strings.Repeat("+1", 100_000) + `)}"}}`}, "a.tf.json", ErrTooDeep},
		"loops":          {map[string]string{"a.tf": "locals { a = file(" + loops + ") }"}, "a.tf", ErrTooDeep},
		"deep template":  {map[string]string{"a.tf": `locals { a = templatefile("t.tpl", {}) }`, "t.tpl": "${file(" + deep + ")}"}, "template t.tpl", ErrTooDeep},
		"large template": {map[string]string{"a.tf": `locals { a = templatefile("t.tpl", {}) }`, "t.tpl": large + "x"}, "template t.tpl", errTooLarge},
		"broken":         {map[string]string{"a.tf": "locals {"}, "a.tf: line 1", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := filesIn(t, c.code)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.file) || strings.Contains(err.Error(), "/") {
				t.Errorf("%v", err)
			}
		})
	}
}
