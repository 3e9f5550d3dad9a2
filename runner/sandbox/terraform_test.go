//go:build linux

package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/runner/sandbox"
)

// TestStartTerraform plans and applies with a real engine in every mode: each
// start is another sandbox, and the plan is taken out in between.
func TestStartTerraform(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts an engine")
	}
	engine, err := exec.LookPath("terraform")
	if err != nil {
		engine, err = exec.LookPath("tofu")
	}
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	if engine, err = filepath.EvalSymlinks(engine); err != nil {
		t.Fatal(err)
	}
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			l := newLab(t, mode)
			source := `resource "terraform_data" "a" {
  input = path.cwd
  provisioner "local-exec" { command = "id -u; echo hello >/dev/stdout" }
}`
			if err := os.WriteFile(filepath.Join(l.dir, "main.tf"), []byte(source), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(l.dir, "tmp"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := l.Give(t.Context(), l.dir, l.slot); err != nil {
				t.Fatal(err)
			}
			plan := filepath.Join(openDir(t), "plan")
			start := func(want string, mounts []sandbox.Mount, args ...string) {
				t.Helper()
				c := l.command("")
				c.Path, c.Args, c.Mounts = engine, append(args, "-no-color"), append(c.Mounts, mounts...)
				c.Env = map[string]string{
					"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": l.at, "TMPDIR": filepath.Join(l.at, "tmp"),
					"TF_IN_AUTOMATION": "1", "CHECKPOINT_DISABLE": "1",
				}
				exit, said := l.run(t, c)
				if exit.Code != 0 || !strings.Contains(said, want) {
					t.Fatalf("%v: %+v: %s", args, exit, said)
				}
			}
			start("has been successfully initialized", nil, "init", "-input=false")
			start("1 to add", nil, "plan", "-input=false", "-out=plan")
			if err := l.Take(l.dir, "plan", l.slot, 1<<20, plan); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(l.dir, "plan")); err != nil {
				t.Fatal(err)
			}
			bound := []sandbox.Mount{{Source: plan}}
			start(l.at, bound, "show", plan)
			start("hello", bound, "apply", "-input=false", plan)
		})
	}
}
