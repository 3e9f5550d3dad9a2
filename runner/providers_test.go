package runner_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner"
)

// testProviders are the providers that tests use: by name, with namespace and
// version.
var testProviders = map[string][2]string{
	"local": {"hashicorp", "2.5.0"}, "time": {"hashicorp", "0.14.2"}, "cloud": {"holdfast-dev", "1.0.0"},
}

// providerMirror returns an engine configuration that takes providers from a folder:
// hashicorp/local and hashicorp/time unless others are named. Their binaries are in
// HOLDFAST_TEST_PROVIDERS, otherwise where `go install` puts them.
func providerMirror(t *testing.T, names ...string) string {
	t.Helper()
	from := os.Getenv("HOLDFAST_TEST_PROVIDERS")
	if from == "" {
		out, err := exec.CommandContext(t.Context(), "go", "env", "GOPATH").Output()
		if err != nil {
			t.Fatal(err)
		}
		from = filepath.Join(strings.TrimSpace(string(out)), "bin")
	}
	mirror := t.TempDir()
	if len(names) == 0 {
		names = []string{"local", "time"}
	}
	for _, name := range names {
		namespace, version := testProviders[name][0], testProviders[name][1]
		binary := filepath.Join(from, "terraform-provider-"+name)
		if _, err := os.Stat(binary); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatal(err)
			}
			t.Skipf("no provider: %v", err)
		}
		for _, registry := range []string{"registry.terraform.io", "registry.opentofu.org"} {
			dir := filepath.Join(mirror, registry, namespace, name, version, runtime.GOOS+"_"+runtime.GOARCH)
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(binary, filepath.Join(dir, "terraform-provider-"+name+"_v"+version)); err != nil {
				t.Fatal(err)
			}
		}
	}
	config := filepath.Join(mirror, "engine.rc")
	text := fmt.Sprintf("disable_checkpoint = true\nprovider_installation {\n  filesystem_mirror { path = %q }\n}\n", mirror)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}

// TestProvidersAreShared: clusters with real providers and other variables use
// one prepared folder, from their first plan to their apply with the lock file
// of the plan.
func TestProvidersAreShared(t *testing.T) {
	t.Parallel()
	realEngine(t)
	config := providerMirror(t)
	var work string
	e, _ := newExecutor(t, func(o *runner.ExecutorOptions) { o.Engines.CLIConfigFile, work = config, o.WorkDir })
	states := newStateServer(t)
	made := t.TempDir()
	files := func(name string) map[string]string {
		return map[string]string{"main.tf": `
terraform {
  backend "http" {}
  required_providers {
    local = { source = "hashicorp/local" }
    time  = { source = "hashicorp/time" }
  }
}
variable "file" { type = string }
resource "local_file" "x" {
  content  = "x"
  filename = var.file
}
module "m" { source = "./m" }
`, "m/main.tf": `resource "time_static" "x" {}`, "x.auto.tfvars.json": fmt.Sprintf(`{"file": %q}`, filepath.Join(made, name))}
	}
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			name := fmt.Sprintf("cluster-%d", i)
			s := newMemorySession(files(name))
			s.state = states.URL + "/" + name
			planned := e.Execute(t.Context(), engineAssignment(name+"-plan", holdfast.RunPlan), s)
			if planned.Status != holdfast.RunPlanned {
				t.Errorf("plan: %+v\n%s", planned.Failure, s.logged())
				return
			}
			a := engineAssignment(name+"-apply", holdfast.RunApply)
			a.Reviews, a.LockFile = review(name+"-plan", planned), s.artefact(protocol.ArtefactLockFile)
			applied := e.Execute(t.Context(), a, s)
			if applied.Status != holdfast.RunApplied {
				t.Errorf("apply: %s %s %+v\n%s", applied.Status, applied.Detail, applied.Failure, s.logged())
			}
		})
	}
	wg.Wait()
	if prepared, _ := filepath.Glob(filepath.Join(work, "shared", "*", "manifest.json")); len(prepared) != 2 { // and its other name
		t.Errorf("prepared folders: %v", prepared)
	}
	if files, _ := os.ReadDir(made); len(files) != 3 {
		t.Errorf("%d files made, want 3", len(files))
	}
}
