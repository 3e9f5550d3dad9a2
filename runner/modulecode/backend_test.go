package modulecode_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast/runner/modulecode"
)

// backendText reads code as Terraform's and returns what it says of the backend.
func backendText(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return modulecode.Read(t.Context(), dir, dir, modulecode.Terraform).BackendText
}

// TestBackendText: what says the same of a backend has the same text, what says something
// else has another one, and what an engine has to evaluate has none.
func TestBackendText(t *testing.T) {
	t.Parallel()
	block := func(code string) map[string]string {
		return map[string]string{"main.tf": "terraform {\n  backend \"s3\" {\n" + code + "\n  }\n}\n"}
	}
	plain := backendText(t, block("bucket = \"b\"\nkey = \"k\"\nassume_role = { arn = \"r\" }"))
	if plain == "" {
		t.Fatal("a backend of constants has no text")
	}
	for name, files := range map[string]map[string]string{
		"another order, comments": block("# of the fleet\nkey = \"k\" # its own\nassume_role = {\n  arn = \"r\"\n}\nbucket     = \"${\"b\"}\""),
		"JSON":                    {"main.tf.json": `{"terraform": {"backend": {"s3": {"bucket": "b", "key": "k", "assume_role": {"arn": "r"}}}}}`},
		"overridden": {
			"main.tf":     "terraform {\n  backend \"s3\" {\n    bucket = var.other\n  }\n}\n",
			"override.tf": block("bucket = \"b\"\nkey = \"k\"\nassume_role = { arn = \"r\" }")["main.tf"],
		},
	} {
		if got := backendText(t, files); got != plain {
			t.Errorf("%s: %q, want %q", name, got, plain)
		}
	}
	different := map[string]string{plain: "the first"}
	for name, files := range map[string]map[string]string{
		"another value":   block("bucket = \"b\"\nkey = \"other\"\nassume_role = { arn = \"r\" }"),
		"another name":    block("bucket = \"b\"\nobject = \"k\"\nassume_role = { arn = \"r\" }"),
		"one less":        block("bucket = \"b\"\nkey = \"k\""),
		"inside another":  block("bucket = \"b\"\nkey = \"k\"\nassume_role {\n  arn = \"r\"\n}"),
		"a number":        block("bucket = \"b\"\nkey = 1"),
		"a text":          block("bucket = \"b\"\nkey = \"1\""),
		"nothing":         block(""),
		"another backend": {"main.tf": "terraform {\n  backend \"gcs\" {}\n}\n"},
	} {
		text := backendText(t, files)
		if other, there := different[text]; there || text == "" {
			t.Errorf("%s is %q, as %s", name, text, other)
		}
		different[text] = name
	}
	for name, files := range map[string]map[string]string{
		"a variable":         block("bucket = var.bucket"),
		"a local, in a list": block("endpoints = [\"a\", local.b]"),
		"a function":         block("bucket = file(\"name\")"),
		"in a block":         block("assume_role {\n  arn = var.role\n}"),
		"a template in JSON": {"main.tf.json": `{"terraform": {"backend": {"s3": {"bucket": "${var.bucket}"}}}}`},
		"HCP Terraform":      {"main.tf": "terraform {\n  cloud {\n    organization = \"o\"\n  }\n}\n"},
		"a provider's":       {"main.tf": "terraform {\n  state_store \"x\" {}\n}\n"},
		"no backend":         {"main.tf": "locals {}\n"},
	} {
		if got := backendText(t, files); got != "" {
			t.Errorf("%s: %q, want nothing", name, got)
		}
	}
}
