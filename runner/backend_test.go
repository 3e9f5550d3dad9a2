//go:build !race

package runner_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/runner/modulecode"
)

func keeps(kind string) string { return "terraform {\n  backend \"" + kind + "\" {}\n}\n" }

// codeOfBackends is code in which several files say where the state is, with
// what terraform and tofu go by.
func codeOfBackends() map[string]struct {
	files           map[string]string
	terraform, tofu string
} {
	type c = struct {
		files           map[string]string
		terraform, tofu string
	}
	return map[string]c{
		"one":                    {map[string]string{"main.tf": keeps("inmem")}, "inmem", "inmem"},
		"none":                   {map[string]string{"main.tf": "locals {}\n"}, "", ""},
		"overridden":             {map[string]string{"main.tf": keeps("inmem"), "a_override.tf": keeps("local")}, "local", "local"},
		"override.tf":            {map[string]string{"zz.tf": keeps("inmem"), "override.tf": keeps("local")}, "local", "local"},
		"override, JSON":         {map[string]string{"zz.tf": keeps("inmem"), "override.tf.json": `{"terraform": {"backend": {"local": {}}}}`}, "local", "local"},
		"two overrides":          {map[string]string{"b_override.tf": keeps("inmem"), "a_override.tf": keeps("local"), "zz.tf": keeps("local")}, "inmem", "inmem"},
		"nothing to override":    {map[string]string{"main.tf": "locals {}\n", "a_override.tf": keeps("inmem")}, "inmem", "inmem"},
		"blocks of settings":     {map[string]string{"main.tf": keeps("inmem") + "terraform {\n  required_version = \">= 0.1\"\n}\n"}, "inmem", "inmem"},
		"looks like an override": {map[string]string{"main.tf": keeps("inmem"), "override_a.tf": "locals {}\n", "xoverride.tf": "locals {}\n"}, "inmem", "inmem"},
		"in place of another":    {map[string]string{"main.tf": keeps("inmem"), "main.tofu": keeps("local")}, "inmem", "local"},
		"beside others":          {map[string]string{"main.tf": "locals {}\n", "state.tofu": keeps("local")}, "", "local"},
		"an override for one":    {map[string]string{"main.tf": keeps("inmem"), "a_override.tofu": keeps("local")}, "inmem", "local"},
		"an override in place":   {map[string]string{"main.tf": keeps("inmem"), "a_override.tf": keeps("local"), "a_override.tofu": "locals {}\n"}, "local", "inmem"},
	}
}

// TestStateIsWhereTheEngineKeepsIt: the backend that the code is read to have is
// the one that the engine itself goes by.
func TestStateIsWhereTheEngineKeepsIt(t *testing.T) {
	t.Parallel()
	installed, name := realEngine(t)
	engine := filepath.Join(installed, name)
	for what, tc := range codeOfBackends() {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for file, text := range tc.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for engine, want := range map[string]string{"terraform": tc.terraform, "tofu": tc.tofu} {
				if got := modulecode.Read(t.Context(), dir, dir, engine).Backend; got != want {
					t.Errorf("for %s it is read to be %q, want %q", engine, got, want)
				}
			}
			cmd := exec.CommandContext(t.Context(), engine, "init", "-input=false", "-no-color")
			cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "CHECKPOINT_DISABLE=1"}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("init: %v\n%s", err, out)
			}
			var kept struct{ Backend struct{ Type string } }
			data, err := os.ReadFile(filepath.Join(dir, ".terraform", "terraform.tfstate"))
			if err == nil {
				err = json.Unmarshal(data, &kept)
			}
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if want := map[string]string{"terraform": tc.terraform, "tofu": tc.tofu}[name]; kept.Backend.Type != want {
				t.Errorf("%s goes by %q, want %q", name, kept.Backend.Type, want)
			}
		})
	}
}

// TestStateThatIsNotWhereTheAssignmentSays: a run whose state is to be in
// Holdfast's own backend does not begin with code that has another one.
func TestStateThatIsNotWhereTheAssignmentSays(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	files := map[string]string{"main.tf": keeps("http"), "z_override.tf": keeps("inmem")}
	result, starts := l.run("run-1", holdfast.RunPlan, files, nil)
	l.want(result, "run-1", holdfast.RunErrored, "InvalidConfiguration")
	if len(starts) > 0 {
		t.Errorf("the engine was started: %v", starts)
	}
}
