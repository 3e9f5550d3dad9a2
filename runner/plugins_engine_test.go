//go:build !race

package runner_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/protocol"
	"github.com/holdfast-dev/holdfast/runner"
)

// TestProvidersOfARepository: an engine without a configuration of where providers
// come from takes those that lie in terraform.d/plugins of the root module. They are
// for that root module alone: another one that asks for the same providers gets
// them from where it would find them itself.
func TestProvidersOfARepository(t *testing.T) {
	t.Parallel()
	realEngine(t)
	e, _ := newExecutor(t, func(o *runner.ExecutorOptions) { o.Engines.Env["https_proxy"] = "http://127.0.0.1:1" })
	states := newStateServer(t)
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	program, err := archive.Create("terraform-provider-thing_v1.0.0")
	if err == nil {
		_, err = program.Write([]byte("#!/bin/sh\nexit 1\n"))
	}
	if err == nil {
		err = archive.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	const code = `terraform {
  backend "http" {}
  required_providers {
    thing = { source = "example.com/acme/thing" }
  }
}
`
	own := fmt.Sprintf("terraform.d/plugins/example.com/acme/thing/terraform-provider-thing_1.0.0_%s_%s.zip", runtime.GOOS, runtime.GOARCH)
	initialised := func(run string, files map[string]string) (bool, string) {
		s := newMemorySession(files)
		s.state = states.URL + "/" + run
		a := engineAssignment(run, holdfast.RunPlan)
		a.Bundle = holdfast.DigestOf(tarball(files))
		e.Execute(t.Context(), a, s)
		return s.artefact(protocol.ArtefactLockFile) != nil, s.logged()
	}
	if ok, log := initialised("run-1", map[string]string{"main.tf": code, own: packed.String()}); !ok {
		t.Fatalf("the engine does not find what its repository has, so that the test proves nothing:\n%s", log)
	}
	for run, files := range map[string]map[string]string{
		"run-2": {"main.tf": code},
		"run-3": {"main.tf": code, "README.md": "another repository"},
		"run-4": {"main.tf": code, strings.Replace(own, "1.0.0", "0.9.0", 1): "not even an archive"},
	} {
		if ok, log := initialised(run, files); ok {
			t.Errorf("%s has the provider of another repository:\n%s", run, log)
		}
	}
}

// TestUnpackedProvidersOfARepository: engines link to a provider that is not packed. It
// is prepared with all others, and is there when the workspace is another one.
func TestUnpackedProvidersOfARepository(t *testing.T) {
	t.Parallel()
	realEngine(t)
	e, _ := newExecutor(t, func(o *runner.ExecutorOptions) { o.Isolation = isolation(t) })
	states := newStateServer(t)
	found, _ := filepath.Glob(filepath.Join(filepath.Dir(providerMirror(t, "cloud")), "registry.terraform.io", "*", "cloud", "*", "*", "terraform-provider-cloud_v*"))
	if len(found) != 1 {
		t.Fatalf("found %q", found)
	}
	program, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"main.tf": `terraform {
  backend "http" {}
  required_providers {
    cloud = { source = "example.com/acme/cloud" }
  }
}
provider "cloud" { folder = "/tmp" }
resource "cloud_cluster" "x" { name = "x" }
`,
		fmt.Sprintf("terraform.d/plugins/example.com/acme/cloud/1.0.0/%s_%s/terraform-provider-cloud_v1.0.0", runtime.GOOS, runtime.GOARCH): string(program),
	}
	for _, id := range []string{"run-1", "run-2"} { // the second has what the first has prepared
		s := newMemorySession(files)
		s.state = states.URL + "/prod-eu"
		a := engineAssignment(id, holdfast.RunPlan)
		a.Bundle = holdfast.DigestOf(tarball(files))
		got := e.Execute(t.Context(), a, s)
		wantStatus(t, got, holdfast.RunPlanned, "", s)
	}
}
