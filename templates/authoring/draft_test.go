package authoring_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/templates/authoring"
)

// All that is wrong with a template, its examples and its tests is told at once.
func TestOpenFaults(t *testing.T) {
	t.Parallel()
	files := scaffolded(t, "kubernetes")
	for name, tc := range map[string]struct {
		files map[string][]byte
		want  []string // each is in one fault
	}{
		"nothing": {files: files},
		"the template, a test and an example": {
			files: replaced(t, replaced(t, replaced(t, files, "template.yaml", "cidr: \"${var.cidr}\"", "cdir: \"${var.cidr}\""),
				"tests/basic.yaml", "faults:", "fault:"), "examples/basic.yaml", "spec:", "sepc:"),
			want: []string{`k/template.yaml:24:45: module "network" has no variable "cdir"`, `k/examples/basic.yaml:5:1: unknown key "sepc"`, `k/tests/basic.yaml:15:5: unknown key "fault"`},
		},
		"an example that is refused": {
			files: replaced(t, files, "examples/basic.yaml", "node_count: 3", "node_count: 3000"),
			want:  []string{"k/examples/basic.yaml:11:17: variable node_count must be at most 100, not 3000"},
		},
		"an example of something else": {
			files: map[string][]byte{
				"template.yaml": files["template.yaml"], "modules/local/network/main.tf": files["modules/local/network/main.tf"],
				"modules/local/kubernetes/main.tf": files["modules/local/kubernetes/main.tf"], "modules/monitoring/main.tf": files["modules/monitoring/main.tf"],
				"examples/basic.yaml": []byte("a: b\n"),
			},
			want: []string{"k/examples/basic.yaml: example has no cluster"},
		},
		"an example of another template": {
			files: replaced(t, files, "examples/basic.yaml", "{path: ..}", "{name: kubernetse, version: 0.1.0}"),
			want:  []string{`there is no template kubernetse (did you mean "kubernetes"?)`},
		},
		"an example by name and version": {files: replaced(t, files, "examples/basic.yaml", "{path: ..}", "{name: kubernetes, version: 0.1.0}")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, faults, err := authoring.Open(t.Context(), below("k", tc.files), "k")
			if err != nil {
				t.Fatal(err)
			}
			if len(faults) != len(tc.want) {
				t.Fatalf("%d faults, want %d:\n%v", len(faults), len(tc.want), faults)
			}
			for i, want := range tc.want {
				if !strings.Contains(faults[i].Error(), want) {
					t.Errorf("fault %v, want %q", faults[i], want)
				}
			}
			if d.Template == nil {
				if _, err := d.Test(t.Context(), authoring.TestOptions{}); err == nil {
					t.Error("tests of a template with faults were run")
				}
			}
		})
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	tree := below(".", map[string][]byte{
		"a/template.yaml": nil, "b/c/template.yaml": nil, "b/c/modules/template.tf": nil, ".cache/x/template.yaml": nil, "template.yaml/x": nil,
	})
	got, err := authoring.Find(tree, ".")
	if diff := cmp.Diff([]string{"a", "b/c"}, got); diff != "" || err != nil {
		t.Errorf("found (-want +got):\n%s%v", diff, err)
	}
	if got, err := authoring.Find(tree, "b/c"); err != nil || len(got) != 1 {
		t.Errorf("found %v, %v", got, err)
	}
}
