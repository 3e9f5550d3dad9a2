package engine_test

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/engine"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
)

// ordinary is a root module whose prepared folder others may share.
func ordinary() map[string]string {
	return map[string]string{
		"main.tf": `terraform {
  required_version = "> 1.1"
  required_providers {
    x = { source = "acme/x" }
  }
  provider_meta "x" {
    a = 1
  }
}
resource "x_y" "z" {}
locals { a = 1 }
output "a" { value = local.a }
moved {
  from = x_y.a
  to   = x_y.z
}
`,
		"more.tf.json": `{"//": "a comment", "terraform": {"backend": {"http": {}}}, "variable": {"a": {}}}`,
	}
}

// keyOf returns the key of the prepared folder of a root module in a bundle.
func keyOf(t *testing.T, code map[string]string, bundle holdfast.Digest, env map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range code {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := engine.Binary{Name: modulecode.Tofu, Version: "1.12.0"}
	a := holdfast.Assignment{Bundle: bundle, OwnState: true, Env: env}
	return engine.PreparedKey(e, modulecode.Read(dir, dir, e.Name), a, nil, nil, false)
}

// TestPreparedKeyOfCodeThatInitExecutes: what init may execute, or what is not known
// here, is in the bundle: no other one gets what it has prepared.
func TestPreparedKeyOfCodeThatInitExecutes(t *testing.T) {
	t.Parallel()
	const program = `key_provider "external" "k" { command = ["./k"] }`
	for name, more := range map[string]map[string]string{
		"encryption":                {"a.tf": "terraform {\n  encryption {\n    " + program + "\n  }\n}\n"},
		"encryption for OpenTofu":   {"a.tofu": "terraform {\n  encryption {\n    " + program + "\n  }\n}\n"},
		"encryption that overrides": {"a_override.tf": "terraform {\n  encryption {\n    " + program + "\n  }\n}\n"},
		"encryption in JSON":        {"a.tf.json": `{"terraform": {"encryption": {"key_provider": {"external": {"k": {"command": ["./k"]}}}}}}`},
		"encryption in a list":      {"a.tf.json": `{"terraform": [{"required_version": "> 1.0"}, {"encryption": [{}]}]}`},
		"code in a list":            {"a.tf.json": `[{"terraform": {"encryption": {}}}]`},
		"a state store":             {"a.tf": "terraform {\n  state_store \"x_y\" {\n    provider \"x\" {}\n  }\n}\n"},
		"an unknown block":          {"a.tf": "unheard_of {}\n"},
		"an unknown argument":       {"a.tf": "terraform {\n  unheard_of = 1\n}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code := ordinary()
			maps.Copy(code, more)
			if keyOf(t, code, "sha256:one", nil) == keyOf(t, code, "sha256:two", nil) {
				t.Error("two bundles share what init prepares")
			}
			if keyOf(t, code, "sha256:one", map[string]string{"TF_VAR_a": "1"}) == keyOf(t, code, "sha256:one", map[string]string{"TF_VAR_a": "2"}) {
				t.Error("other values of variables share what init prepares")
			}
		})
	}
	if keyOf(t, ordinary(), "sha256:one", nil) != keyOf(t, ordinary(), "sha256:two", nil) {
		t.Error("two bundles with the same needs do not share what init prepares")
	}
	env := map[string]string{"TF_ENCRYPTION": `{"key_provider": {"external": {"k": {"command": ["./k"]}}}}`}
	if keyOf(t, ordinary(), "sha256:one", env) == keyOf(t, ordinary(), "sha256:two", env) {
		t.Error("two bundles share what init prepares with TF_ENCRYPTION")
	}
}
