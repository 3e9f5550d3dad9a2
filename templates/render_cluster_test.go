package templates_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"github.com/holdfast-dev/holdfast/templates"
)

// TestClusterFile: it is written by hand, and as the writer of HCL would.
func TestClusterFile(t *testing.T) {
	t.Parallel()

	text := strings.Replace(richCluster, "  region: eu-west-1\n", `  region: eu-west-1
  engine: {version: "~> 1.10, != 1.10.1"}
  state:
    type: s3
    bucket: "a ${b} \"c\" %{d}"
    key: "zwölf\n\u0000"
    region: eu-west-1
    use_lockfile: true
    max_retries: 5
    allowed_account_ids: ["1", "2"]
    endpoints: {s3: http://x, "odd name": "${y}", nested: {deep: [{a: 1}]}}
    assume_role: {}
`, 1)
	text = strings.Replace(text, "environment: staging", "environment: env1", 1)
	root := resolve(t, tree(richFiles()), clusterOf(t, "c/c.yaml", text))
	files := filesOf(root)
	got := files["cluster.tf"]
	if diff := cmp.Diff(string(hclwrite.Format([]byte(got))), got); diff != "" {
		t.Errorf("not formatted:\n%s", diff)
	}
	file, diags := hclsyntax.ParseConfig([]byte(got), "cluster.tf", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatalf("%v\n%s", diags, got)
	}
	blocks := file.Body.(*hclsyntax.Body).Blocks
	backend := blocks[0].Body.Blocks[0]
	for name, want := range map[string]string{"bucket": `a ${b} "c" %{d}`, "key": "zwölf\n\x00", "region": "eu-west-1"} {
		v, diags := backend.Body.Attributes[name].Expr.Value(nil)
		if diags.HasErrors() || v.AsString() != want {
			t.Errorf("%s is %#v, want %q", name, v, want)
		}
	}
	if len(blocks) != 2 || backend.Labels[0] != "s3" || len(backend.Body.Attributes) != 8 {
		t.Errorf("cluster.tf:\n%s", got)
	}
	if !slices.ContainsFunc(root.Files(), func(f templates.File) bool { return f.Name == "cluster.tf" }) {
		t.Error("no cluster.tf")
	}
}
