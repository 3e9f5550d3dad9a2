package engine_test

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
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
		"tests/a.tftest.hcl": "variables {\n  a = 1\n}\nrun \"a\" {\n  command = plan\n}\n",
		"more.tf.json":       `{"//": "a comment", "terraform": {"backend": {"http": {}}}, "variable": {"a": {}}}`,
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
	a := protocol.Assignment{Bundle: bundle}
	a.OwnState, a.Env = true, env
	return engine.PreparedKey(e, modulecode.Read(t.Context(), dir, dir, e.Name), a, nil, nil, false)
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
		"a module of a test":        {"tests/a.tftest.hcl": "run \"a\" {\n  module {\n    source = \"./m\"\n  }\n}\n"},
		"a provider of a test":      {"a.tofutest.hcl": "provider \"x\" {}\n"},
		"a test in JSON":            {"a.tftest.json": `{"run": {"a": {"module": {"source": "./m"}}}}`},
		"a state":                   {"terraform.tfstate": "{}"},
		"a repository":              {"HEAD": "ref: refs/heads/main\n", "config": ""},
		"a repository in a folder":  {".git/config": ""},
		"a repository of Mercurial": {".hg/hgrc": ""},
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
	for _, name := range []string{"TF_ENCRYPTION", "TF_CLI_ARGS_init"} {
		env := map[string]string{name: "of a program"}
		if keyOf(t, ordinary(), "sha256:one", env) == keyOf(t, ordinary(), "sha256:two", env) {
			t.Errorf("two bundles share what init prepares with %s", name)
		}
	}
}

// TestPreparedKeyInARepository: git finds a repository in the folders around the root
// module, too.
func TestPreparedKeyInARepository(t *testing.T) {
	t.Parallel()
	bundle := t.TempDir()
	dir := filepath.Join(bundle, "a", "b")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if modulecode.Read(t.Context(), dir, bundle, modulecode.Tofu).Whole {
		t.Error("no repository is taken for one")
	}
	if err := os.WriteFile(filepath.Join(bundle, "HEAD"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !modulecode.Read(t.Context(), dir, bundle, modulecode.Tofu).Whole {
		t.Error("the repository of the bundle is not found")
	}
}

// TestPreparedKeyOfNeeds: code that needs other providers and modules, in an order or
// by words that differ in nothing else, has another key.
func TestPreparedKeyOfNeeds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ one, other map[string]string }{
		"a comment that takes a line in": {
			map[string]string{"a.tf": "terraform {\n  required_providers {\n    b = { source = \"acme/b\" # one\n    version = \"1.0.0\" }\n  }\n}\n"},
			map[string]string{"a.tf": "terraform {\n  required_providers {\n    b = { source = \"acme/b\" # one version = \"1.0.0\"\n }\n  }\n}\n"},
		},
		"which file overrides the other": {
			map[string]string{
				"a.tf":          "terraform {\n  required_providers {\n    b = { source = \"acme/b\" }\n  }\n}\n",
				"a_override.tf": "terraform {\n  required_providers {\n    b = { source = \"other/b\" }\n  }\n}\n",
			},
			map[string]string{
				"a.tf":          "terraform {\n  required_providers {\n    b = { source = \"other/b\" }\n  }\n}\n",
				"a_override.tf": "terraform {\n  required_providers {\n    b = { source = \"acme/b\" }\n  }\n}\n",
			},
		},
		"a folder that a call is overridden with": {
			map[string]string{
				"a.tf": "module \"m\" { source = \"./m\" }\n", "a_override.tf": "module \"m\" { source = \"./n\" }\n",
				"m/a.tf": "provider \"b\" {}\n", "n/a.tf": "provider \"c\" {}\n",
			},
			map[string]string{
				"a.tf": "module \"m\" { source = \"./m\" }\n", "a_override.tf": "module \"m\" { source = \"./n\" }\n",
				"m/a.tf": "provider \"b\" {}\n", "n/a.tf": "provider \"d\" {}\n",
			},
		},
		"two spaces in the name of a folder": {
			map[string]string{"a.tf": "module \"m\" { source = \"./m m\" }\n", "m m/a.tf": "provider \"b\" {}\n", "m  m/a.tf": "provider \"c\" {}\n"},
			map[string]string{"a.tf": "module \"m\" { source = \"./m  m\" }\n", "m m/a.tf": "provider \"b\" {}\n", "m  m/a.tf": "provider \"c\" {}\n"},
		},
		"which module names a provider": {
			map[string]string{"a.tf": "module \"m\" { source = \"./m\" }\nresource \"b_c\" \"d\" {}\n", "m/a.tf": ""},
			map[string]string{"a.tf": "module \"m\" { source = \"./m\" }\n", "m/a.tf": "resource \"b_c\" \"d\" {}\n"},
		},
		"a provider in place of that of the type": {
			map[string]string{"a.tf": "resource \"b_c\" \"d\" {}\nresource \"e_f\" \"g\" {}\n"},
			map[string]string{"a.tf": "resource \"b_c\" \"d\" { provider = e }\nresource \"e_f\" \"g\" {}\n"},
		},
		"the version of a provider": {
			map[string]string{"a.tf": "provider \"b\" { version = \"1.0.0\" }\n"},
			map[string]string{"a.tf": "provider \"b\" { version = \"2.0.0\" }\n"},
		},
		"an import": {
			map[string]string{"a.tf": "import {\n  to = b_c.d\n  id = 1\n}\n"},
			map[string]string{"a.tf": "import {\n  to = e_f.g\n  id = 1\n}\n"},
		},
		"a check": {
			map[string]string{"a.tf": "check \"a\" {\n  data \"b_c\" \"d\" {}\n}\n"},
			map[string]string{"a.tf": "check \"a\" {\n  data \"e_f\" \"d\" {}\n}\n"},
		},
		"an action": {
			map[string]string{"a.tf": "action \"b_c\" \"d\" {}\n"},
			map[string]string{"a.tf": "action \"e_f\" \"d\" {}\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if keyOf(t, c.one, "sha256:one", nil) == keyOf(t, c.other, "sha256:one", nil) {
				t.Error("they share what init prepares")
			}
		})
	}
	for name, code := range map[string]string{
		"a file":     `module "m" { source = file("source") }`,
		"a template": `module "m" { source = "./${file("source")}" }`,
		"a version":  "module \"m\" {\n  source = \"acme/b/c\"\n  version = file(\"version\")\n}\n",
		"a variable": `module "m" { source = var.source }`,
	} {
		if keyOf(t, map[string]string{"a.tf": code}, "sha256:one", nil) == keyOf(t, map[string]string{"a.tf": code}, "sha256:two", nil) {
			t.Errorf("a source that %s decides is shared with another bundle", name)
		}
	}
	code := map[string]string{"a.tf.json": `{"module": {"m": {"source": "./${file(\"source\")}"}}}`}
	if keyOf(t, code, "sha256:one", nil) == keyOf(t, code, "sha256:two", nil) {
		t.Error("a source that a template in JSON decides is shared with another bundle")
	}
}

// TestPreparedKeyOfABackend: a folder without the settings of Holdfast's backend is
// nothing for those who need them.
func TestPreparedKeyOfABackend(t *testing.T) {
	t.Parallel()
	m := modulecode.Root{Backend: "http", BareBackend: true}
	var own, other protocol.Assignment
	own.OwnState = true
	if engine.PreparedKey(engine.Binary{}, m, own, nil, nil, false) == engine.PreparedKey(engine.Binary{}, m, other, nil, nil, false) {
		t.Error("they share what init prepares")
	}
}
