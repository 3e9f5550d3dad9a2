package library_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/holdfast-dev/holdfast/templates/document"
)

// standIns makes a mirror of providers that stand in for real ones: each has the schemas of
// the facts, and a cloud that does whatever it is asked to. It returns the engine's
// configuration for it. The program is in HOLDFAST_TEST_PROVIDERS, otherwise where `go
// install` puts it; on a laptop a test may go without, in CI it may not.
func standIns(t *testing.T) string {
	t.Helper()
	from := os.Getenv("HOLDFAST_TEST_PROVIDERS")
	if from == "" {
		out, err := exec.CommandContext(t.Context(), "go", "env", "GOPATH").Output()
		if err != nil {
			t.Fatal(err)
		}
		from = filepath.Join(strings.TrimSpace(string(out)), "bin")
	}
	program, err := filepath.Abs(filepath.Join(from, "terraform-provider-facts"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil && os.Getenv("CI") != "" {
		t.Fatalf("there is no %s: run make tools", program)
	} else if err != nil {
		t.Skipf("there is no %s: run make tools", program)
	}
	mirror := t.TempDir()
	for name, p := range facts(t) {
		if name == "terraform" {
			continue
		}
		dir := filepath.Join(mirror, "registry.terraform.io", filepath.FromSlash(p.Source), p.Version, runtime.GOOS+"_"+runtime.GOARCH)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(program, filepath.Join(dir, fmt.Sprintf("terraform-provider-%s_v%s", name, p.Version))); err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", mirror)
}

// TestCloudExamplesAreApplied has the engine apply the advanced examples with stand-ins
// for the providers, and wants to find nothing to do afterwards: what the modules do with
// values that are unknown before an apply, such as the keys of for_each, only an engine can
// tell. Then it switches everything off that was installed: what takes it away needs the
// providers once more, after nothing is left that names them. TestCostOfExamples has it plan
// the basic ones.
func TestCloudExamplesAreApplied(t *testing.T) {
	t.Parallel()

	config := standIns(t)
	tree := diskTree{os.DirFS("kubernetes")}
	for name, doc := range examples(t, tree) {
		if strings.HasPrefix(name, "local-") || strings.HasSuffix(name, "-basic") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := standInEnv(t, doc)
			dir := applyTwice(t, unpack(t, resolve(t, tree, doc)), config, env)
			for variable := range doc.Cluster.Variables {
				if strings.HasPrefix(variable, "enable_") {
					doc.Cluster.Variables[variable] = false
				}
			}
			off := unpack(t, resolve(t, tree, doc))
			if strings.Contains(string(off["root/main.tf"].Data), `module "essentials"`) {
				t.Fatal("the essentials are called although all of them are off")
			}
			write(t, filepath.Dir(dir), off)
			out, err := terraform(t, dir, config, env, "apply", "-input=false", "-no-color", "-auto-approve")
			if err != nil {
				t.Fatalf("terraform apply: %v\n%s", err, out)
			}
			if !strings.Contains(out, "module.essentials.helm_release.monitoring[0]: Destruction complete") {
				t.Errorf("what was installed is not taken away:\n%s", out)
			}
		})
	}
}

// standInEnv is what the stand-ins need of the environment.
func standInEnv(t *testing.T, doc document.Document) []string {
	t.Helper()
	schemas, err := filepath.Abs("testdata/schemas")
	if err != nil {
		t.Fatal(err)
	}
	return []string{
		"FACTS=" + schemas, "FACTS_REPLACES=" + filepath.Join(filepath.Dir(schemas), "replaces.json"), "FACTS_REGION=" + doc.Cluster.Region,
		"FACTS_NEEDS=aws.region,google.region,azurerm.features,kubernetes.host,kubernetes.cluster_ca_certificate,helm.kubernetes",
	}
}

// localBackend keeps the state beside the root module: there is no server.
func localBackend() fstest.MapFS {
	return fstest.MapFS{"backend_override.tf": {Data: []byte("terraform {\n  backend \"local\" {}\n}\n")}}
}

// applyTwice applies a root module and finds nothing to do afterwards. It
// returns the module's folder.
func applyTwice(t *testing.T, bundle fstest.MapFS, config string, env []string) string {
	t.Helper()
	return engineRuns(t, bundle, config, env,
		[]string{"apply", "-input=false", "-no-color", "-auto-approve"},
		[]string{"plan", "-input=false", "-no-color", "-detailed-exitcode"})
}

// engineRuns runs commands of the engine in a root module, after an init. It
// returns the module's folder.
func engineRuns(t *testing.T, bundle fstest.MapFS, config string, env []string, commands ...[]string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, bundle)
	dir = filepath.Join(dir, "root")
	write(t, dir, localBackend())
	for _, args := range append([][]string{{"init", "-input=false", "-no-color"}}, commands...) {
		if out, err := terraform(t, dir, config, env, args...); err != nil {
			t.Fatalf("terraform %s: %v\n%s", args[0], err, out)
		}
	}
	return dir
}
