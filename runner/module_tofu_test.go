package runner_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner"
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
		writeFile(t, filepath.Join(dir, name), text, 0o600)
	}
	for engine, want := range map[string]string{
		"terraform": "> 1.1: five four one",
		"tofu":      "> 1.6: eight four six three two",
		"":          "> 1.6: eight four six three two", // these files are for OpenTofu
	} {
		requires, needs := runner.CodeOf(dir, engine)
		var providers []string
		for _, need := range needs {
			if name, ok := strings.CutPrefix(need, "provider "); ok {
				providers = append(providers, name)
			}
		}
		slices.Sort(providers)
		if got := strings.Join(requires, " ") + ": " + strings.Join(providers, " "); got != want {
			t.Errorf("for %q the code is read to ask for %q, want %q", engine, got, want)
		}
	}
}

// TestSourceThatDependsOnValues: what OpenTofu makes of a module's source is
// prepared for these values only. Terraform refuses it.
func TestSourceThatDependsOnValues(t *testing.T) {
	t.Parallel()
	_, name := realEngine(t)
	e, _ := newExecutor(t, nil)
	states := newStateServer(t)
	for i, flavour := range []string{"a", "b", "a"} {
		s := newMemorySession(map[string]string{
			"root/main.tf": `
terraform {
  backend "http" {}
}
variable "flavour" { type = string }
module "m" { source = "../mod-${var.flavour}" }
output "it" { value = module.m.it }
`,
			"root/cluster.auto.tfvars.json": fmt.Sprintf("{\"flavour\": %q}", flavour),
			"mod-a/main.tf":                 "output \"it\" { value = \"made by a\" }\n",
			"mod-b/main.tf":                 "output \"it\" { value = \"made by b\" }\n",
		})
		s.state = states.URL + "/x"
		a := engineAssignment(fmt.Sprintf("run-%d", i), holdfast.RunPlan)
		a.Dir, a.Bundle = "root", holdfast.DigestOf([]byte(flavour))
		got := e.Execute(t.Context(), a, s)
		if name == "terraform" {
			wantStatus(t, got, holdfast.RunErrored, "InvalidConfiguration", s)
			continue
		}
		wantStatus(t, got, holdfast.RunPlanned, "", s)
		if log := s.logged(); !strings.Contains(log, "made by "+flavour) || strings.Contains(log, "Initializing modules") != (i < 2) {
			t.Errorf("with %s it says:\n%s", flavour, log)
		}
	}
}
