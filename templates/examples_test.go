package templates_test

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/templates"
	"github.com/holdfast-dev/holdfast/templates/document"
)

// terraform returns the engine's path. On a laptop a test may go without; in CI
// it may not.
func terraform(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts an engine")
	}
	bin, err := exec.LookPath("terraform")
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal("terraform is not on PATH")
	} else if err != nil {
		t.Skip("terraform is not on PATH: nothing is planned")
	}
	return bin
}

// TestExamples resolves every cluster of the examples and plans it.
func TestExamples(t *testing.T) {
	t.Parallel()

	for dir, want := range map[string]map[string]string{
		"../examples/demo": {
			"dev-eu":  "Plan: 7 to add",
			"prod-eu": "Plan: 10 to add",
			"prod-us": "Plan: 10 to add",
		},
		"../examples/module": {"sandbox": "Plan: 1 to add"},
		"../examples/fleet":  {"network-eu": "Plan: 3 to add", "prod-eu": "Plan: 2 to add"},
	} {
		tr := diskTree(t, dir)
		resolver := templates.NewResolver(nil)
		planned := 0
		for name := range tr.MapFS {
			if path.Dir(name) != "clusters" {
				continue
			}
			data, err := tr.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			docs, faults := document.ParseClusters(name, data)
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			for _, doc := range docs {
				root, faults, err := resolver.Resolve(t.Context(), tr, doc)
				if err != nil || len(faults) > 0 {
					t.Fatalf("%v\n%v", err, faults)
				}
				planned++
				t.Run(doc.Cluster.Name, func(t *testing.T) {
					t.Parallel()
					plan(t, root, want[doc.Cluster.Name])
				})
			}
		}
		if planned != len(want) {
			t.Errorf("%s has %d clusters, want %d", dir, planned, len(want))
		}
	}
}

// unpack writes a bundle to a folder and returns the root module's.
func unpack(t *testing.T, root *templates.Root) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range contents(t, root) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, filepath.FromSlash(root.Dir))
}

func plan(t *testing.T, root *templates.Root, want string, env ...string) {
	t.Helper()
	bin := terraform(t)
	dir := unpack(t, root)
	// There is no state server here: the backend becomes a local one.
	override := "terraform {\n  backend \"local\" {}\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "backend_override.tf"), []byte(override), 0o600); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "cli.tfrc")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-input=false", "-no-color"}, {"plan", "-input=false", "-no-color"}} {
		cmd := exec.CommandContext(t.Context(), bin, args...)
		cmd.Dir = dir
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "CHECKPOINT_DISABLE=1", "GOGC=400", "TF_CLI_CONFIG_FILE=" + config}, env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("terraform %s: %v\n%s", args[0], err, out)
		}
		if args[0] == "plan" && !strings.Contains(string(out), want) {
			t.Errorf("plan is\n%s\nwant %q", out, want)
		}
	}
}

// TestEngineReadsTheFormat plans what is rendered of conditions, configured
// providers, secrets and pools that are not alike.
func TestEngineReadsTheFormat(t *testing.T) {
	t.Parallel()

	text := strings.Replace(richTemplate, "          source: hashicorp/helm\n          version: \"~> 3.0\"\n          arguments: {kubernetes: {host: \"${module.kubernetes.endpoint}\"}}",
		"          source: terraform.io/builtin/terraform", 1)
	text = strings.Replace(text, `        - name: aws
          source: registry.example.com/hashicorp/aws
          version: "~> 6.0"
          arguments: {region: "${cluster.region}"}
          blocks:
            - {type: default_tags, arguments: {tags: "${var.tags}"}}
            - {type: features, blocks: [{type: inner}]}
`, "", 1)
	text = strings.Replace(strings.Replace(text, "name: helm", "name: terraform", 1),
		`            type: "${var.instance_type}"`, "            type: \"${var.instance_type}\"\n            pools: \"${var.pools}\"", 1)
	files := with(richFiles(), "t/template.yaml", text,
		"t/modules/kubernetes/main.tf", `variable "node_count" { type = number }
variable "type" { type = string }
variable "environment" { type = string }
variable "password" {
  type      = string
  sensitive = true
}
variable "agent" {
  type    = string
  default = "no agent"
}
variable "pools" {
  type = list(object({ name = string, count = optional(number, 1), instance_type = optional(string) }))
}
resource "terraform_data" "cluster" {
  input = {
    agent  = var.agent
    pools  = jsonencode(var.pools)
    secret = sha256(var.password)
    length = nonsensitive(length(var.password))
  }
}
output "endpoint" { value = "https://example.com" }
`, "t/modules/monitoring/main.tf", "variable \"name\" {}\noutput \"agent\" { value = \"agent of ${var.name}\" }\n",
		"t/modules/logs/main.tf", "variable \"agent\" {}\nresource \"terraform_data\" \"logs\" { input = var.agent }\n")
	doc := clusterWith(t, "node_count: 3", "db_password: {secret: {env: DB}}", "pools: [{name: a}, {name: b, count: 2}, {name: c, instance_type: t3.medium}]")
	off := resolve(t, tree(files), doc)
	plan(t, off, `+ agent  = "no agent"`, "TF_VAR_db_password=correct horse")
	plan(t, off, `+ length = 13`, "TF_VAR_db_password=correct horse")
	plan(t, off, "+ count         = 2", "TF_VAR_db_password=x")
	plan(t, off, "1 to add", "TF_VAR_db_password=x")

	doc = clusterWith(t, "node_count: 3", "enable_monitoring: true", "db_password: {secret: {env: DB}}", "pools: []")
	plan(t, resolve(t, tree(files), doc), "2 to add", "TF_VAR_db_password=x")
}

// BenchmarkResolve makes the root modules of a thousand clusters of one
// template, as after a change of all of them.
func BenchmarkResolve(b *testing.B) {
	tr := diskTree(b, "../examples/demo")
	text, err := tr.ReadFile("clusters/prod-eu.yaml")
	if err != nil {
		b.Fatal(err)
	}
	var docs []document.Document
	for i := range 1000 {
		docs = append(docs, clusterOf(b, "clusters/x.yaml", strings.Replace(string(text), "prod-eu", fmt.Sprintf("prod-%d", i), 1)))
	}
	b.ReportAllocs()
	for b.Loop() {
		resolver := templates.NewResolver(nil)
		for _, doc := range docs {
			if _, faults, err := resolver.Resolve(b.Context(), tr, doc); err != nil || faults != nil {
				b.Fatal(err, faults)
			}
		}
	}
}
